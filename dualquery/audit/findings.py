"""What the checks of the audit found, as one page and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Finding:
    """How much a check tried, how near the truth came to the charge, and what was wrong."""

    tried: int = 0  # runs, strategies or releases, as the check counts them
    pairs: int = 0  # of neighbouring tables that were compared
    share: float = 0.0  # largest part of a charge that the truth needed: 1 without a violation
    violations: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # what was not tried, and why

    def compare(self, truth: float, charged: float, what: str) -> None:
        """Hold a true cost against what is charged for it; both >= 0."""
        if not truth <= charged * (1.0 + TOLERANCE) + TINY:  # NaN is a finding, too
            self.violations.append(f"{what}: {truth:.6g} in truth, {charged:.6g} charged")
        if truth > TINY:
            self.share = max(self.share, truth / max(charged, TINY))

    def add(self, other: Finding) -> None:
        """Add what another part of the same check found."""
        self.tried += other.tried
        self.pairs += other.pairs
        self.share = max(self.share, other.share)
        self.violations += other.violations
        self.remarks += other.remarks


ERROR = 1e-6
"""Chance at most that a check of repeated draws or honest releases reports a violation."""

TOLERANCE, TINY = 1e-9, 1e-12
"""Rounding of the audit's own sums, relative and absolute: no finding exceeds a charge by less."""


@dataclass(frozen=True)
class Result:
    """A check, the bug planted meanwhile or "", and what was found."""

    check: str
    bug: str
    finding: Finding
    seconds: float
    fault: str = ""  # the exception that ended it, if one did

    @property
    def caught(self) -> bool:
        """Whether the check found something; one that breaks has caught nothing."""
        return bool(self.finding.violations) and not self.fault


@dataclass(frozen=True)
class Audit:
    """All results: the checks, then the planted bugs."""

    quick: bool
    results: Sequence[Result]
    catches: Sequence[Result]
    seconds: float

    @property
    def violations(self) -> list[str]:
        """All violations of what is not planted."""
        return [line for result in self.results for line in result.finding.violations]

    @property
    def missed(self) -> list[str]:
        """The planted bugs that no check caught."""
        return [result.bug for result in self.catches if not result.caught]

    @property
    def passed(self) -> bool:
        """Whether nothing was found and every planted bug was caught."""
        return not self.violations and not self.missed


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
        found = result.finding
        wrong = len(result.finding.violations)
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
