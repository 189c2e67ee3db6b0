"""Reproducible measurements: one file an experiment, run by ``python -m experiments NAME``.

Every experiment uses seeds, prints the baselines beside its result and writes ``results.json``.
None of its output is private data's own: the tables are public ones.
"""
