"""One page about a release, for people: what it protects, what it says, how far to trust it."""

from dualquery.report.page import report

__all__ = ["report"]
