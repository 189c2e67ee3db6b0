"""Arithmetic on public numbers: events, accountants, calibration, and a release's statement."""
