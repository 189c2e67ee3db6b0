"""Checks a release from outside, with nothing of the rest of dualquery."""

from dualquery.verification.check import Report, verify

__all__ = ["Report", "verify"]
