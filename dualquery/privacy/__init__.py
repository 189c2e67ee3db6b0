"""Arithmetic on public numbers: events, accountants, calibration, the stated guarantee."""
