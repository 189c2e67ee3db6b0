"""What a check of the audit found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Finding:
    """How much a check tried, how near the truth came to the charge, and what was wrong."""

    tried: int = 0
    """Runs, strategies or releases, as the check counts them."""
    pairs: int = 0
    """Pairs of neighbouring tables that were compared."""
    share: float = 0.0
    """Largest part of a charge that the truth needed: at most 1 without a violation."""
    violations: list[str] = field(default_factory=list)
    """What was found wrong, one line each."""
    remarks: list[str] = field(default_factory=list)
    """What was not tried, and why."""

    def compare(self, truth: float, charged: float, what: str) -> None:
        """Hold a true cost against what is charged for it; both >= 0."""
        if truth > charged * (1.0 + TOLERANCE) + TINY:
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


TOLERANCE = 1e-9
"""Relative rounding of the audit's own sums; a charge that is exceeded by less is no finding."""

TINY = 1e-12
"""The same, absolute."""
