"""The audit's results: one page for people, and data for machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dualquery.audit.findings import Finding
from dualquery.audit.suite import Audit, Result

SECTIONS = {
    "sensitivity": (
        "What the room counts",
        "Random workloads, strategies, limits and models on small domains; every pair of legal "
        "records. A case is a workload.",
    ),
    "games": (
        "Tiny games",
        "Every accountant's delta(epsilon) against the truth on all neighbours among tables of a "
        "few rows. A case is a path of draws.",
    ),
    "releases": (
        "Releases, made again and again",
        "The share is that of a lower confidence bound on epsilon in the epsilon that is stated.",
    ),
}
"""The parts of the audit, by the first word of a check's name."""


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
        "# Audit",
        "",
        f"dualquery {version}, {date}, `{command}`, {audit.seconds / 60:.0f} minutes: "
        f"**{'passed' if audit.passed else 'FAILED'}**. {verdict(audit)}.",
        "",
        "A *share* is the largest part of a charge that the truth needed: 1 is a charge without "
        "slack, more is a violation.",
        "",
    ]
    for key, (title, said) in SECTIONS.items():
        lines += [f"## {title}", "", said, ""]
        lines += ["| check | cases | pairs of tables | share | violations |"]
        lines += ["|---|---|---|---|---|"]
        lines += [_line(name, finding) for name, finding in of_section(audit, key)]
        lines.append("")
    lines += ["## Planted bugs", "", "| bug | check | caught |", "|---|---|---|"]
    for each in audit.catches:
        lines.append(f"| {each.bug} | {each.check} | {'yes' if each.caught else '**NO**'} |")
    remarks = [line for result in audit.results for line in result.finding.remarks]
    for title, found in (("Violations", audit.violations), ("Not tried", remarks)):
        if found:
            lines += ["", f"## {title}", "", *(f"- {' '.join(line.split())}" for line in found)]
    return "\n".join(lines) + "\n"


def of_section(audit: Audit, section: str) -> Iterator[tuple[str, Finding]]:
    """Yield what was found in a part, both relations of neighbours together."""
    found: dict[str, Finding] = {}
    for result in audit.results:
        part, _, name = result.check.partition("/")
        if part == section:
            found.setdefault(name.partition("/")[0], Finding()).add(result.finding)
    yield from found.items()


def _line(name: str, finding: Finding) -> str:
    share = f"{finding.share:.4f}" if finding.tried else ""
    wrong = f"**{len(finding.violations)}**" if finding.violations else "0"
    return f"| {name} | {finding.tried:,} | {finding.pairs:,} | {share} | {wrong} |"
