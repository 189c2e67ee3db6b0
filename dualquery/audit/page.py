"""The results of an audit as one page, and as data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dualquery.audit.suite import Audit, Result


def to_data(audit: Audit, version: str, date: str) -> dict[str, Any]:
    """Return the results, JSON-able."""
    return {
        "passed": audit.passed,
        "quick": audit.quick,
        "version": version,
        "date": date,
        "seconds": round(audit.seconds),
        "checks": [_check_data(result) for result in audit.results],
        "planted": [
            {
                "name": result.bug,
                "check": result.check,
                "caught": result.caught,
                "violation": next(iter(result.finding.violations), None),
            }
            for result in audit.catches
        ],
    }


def _check_data(result: Result) -> dict[str, Any]:
    found = asdict(result.finding)
    found["largest_share"] = found.pop("share")
    return {"name": result.check, **found, "seconds": result.seconds}


def verdict(audit: Audit) -> str:
    """Return the result in one sentence."""
    caught = len(audit.catches) - len(audit.missed)
    return (
        f"{len(audit.violations)} violations in {len(audit.results)} checks; "
        f"{caught} of {len(audit.catches)} planted bugs caught"
    )


def to_markdown(audit: Audit, version: str, date: str) -> str:
    """Return the page."""
    command = "dualquery audit --quick" if audit.quick else "dualquery audit"
    lines = [
        f"# Audit\n\ndualquery {version}, {date}, `{command}`, {audit.seconds / 60:.0f} minutes: "
        f"**{'passed' if audit.passed else 'FAILED'}**. {verdict(audit)}.\n",
        "A *share* is the largest part of a charge that the truth needed: 1 is a charge without "
        "slack, more is a violation; of releases it is that of a lower confidence bound on "
        "epsilon. A case is a workload, a path of draws, or a release.\n",
        "| check | cases | pairs of tables | share | violations |\n|---|---|---|---|---|",
    ]
    for result in audit.results:
        found, wrong = result.finding, len(result.finding.violations)
        share = f"{found.share:.4f}" if found.tried else ""
        lines.append(
            f"| {result.check} | {found.tried:,} | {found.pairs:,} | {share} | "
            f"{f'**{wrong}**' if wrong else 0} |"
        )
    lines.append("\n## Planted bugs\n\n| bug | check | caught |\n|---|---|---|")
    for each in audit.catches:
        lines.append(f"| {each.bug} | {each.check} | {'yes' if each.caught else '**NO**'} |")
    remarks = [line for result in audit.results for line in result.finding.remarks]
    for title, said in (("Violations", audit.violations), ("Not tried", remarks)):
        if said:
            lines += [f"\n## {title}\n", *(f"- {' '.join(line.split())}" for line in said)]
    return "\n".join(lines) + "\n"
