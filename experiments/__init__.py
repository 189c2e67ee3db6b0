"""Reproducible measurements: one file an experiment, ``python -m experiments NAME``."""
