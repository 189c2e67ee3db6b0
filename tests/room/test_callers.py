"""Who passes over rows, who counts, and who draws private randomness: nobody but those listed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.callers import found, imports, unlisted

PASSES = {
    "dualquery/room/": "the private room: what it counts leaves it with noise only",
    "dualquery/rows/": "the passes themselves, and the operator's cache of exact counts",
    "dualquery/queries/": "a family counts its own queries in rows that it is handed",
    "dualquery/releases/evaluation.py": "true errors, for the operator and not private",
    "experiments/": "measures true errors of public data sets",
    "mwem/sampled/family.py": "counts in its own population of synthetic records",
    "mwem/sampled/rounds.py": "counts in its own population of synthetic records",
    "mwem/sampled/mechanism.py": "compares the queries' literals; counts nothing",
}
"""Files and folders that pass over rows or count in them, and why they may."""

RANDOMNESS = {
    "dualquery/room/": "the private room: its draws are charged",
    "dualquery/releases/making.py": "makes the source and hands it to the curator",
    "experiments/benchmarks/": "times the draws, on made-up counts",
    "experiments/contingency.py": "makes the source and hands it to the curator",
    "experiments/datacubes.py": "makes the source and hands it to the curator",
}
"""Files and folders that import the source of private randomness, and why they may."""

METHODS = frozenset({"total", "stream"})
"""Methods of rows that pass over them: not even to be named elsewhere."""

COUNTERS = frozenset({"counts", "count_conjunctions"})
"""Functions and methods that count in rows they are given."""

SUMS = ("dualquery.rows.histogram.", "dualquery.queries.counting.")
"""Modules of sums over rows: who imports them is about to count."""


SOURCE = "dualquery.room.randomness"
"""The source of private randomness; its `check_seed` is a rule about options."""


def passes(tree: ast.AST) -> Iterator[str]:
    """Yield what in a module passes over rows or counts in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            yield f"line {node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Call):
            called = node.func
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name in COUNTERS:
                yield f"line {node.lineno}: {name}(...)"
    for line, name in imports(tree):
        if f"{name}.".startswith(SUMS):
            yield f"line {line}: imports {name}"


def private_draws(tree: ast.AST) -> Iterator[str]:
    """Yield where a module gets hold of the source of private randomness."""
    for line, name in imports(tree):
        if f"{name}.".startswith(f"{SOURCE}.") and name != f"{SOURCE}.check_seed":
            yield f"line {line}: imports {name}"


def test_only_those_listed_pass_over_rows_or_count() -> None:
    assert unlisted(found(passes), PASSES) == {}


def test_only_the_room_draws_private_randomness() -> None:
    assert unlisted(found(private_draws), RANDOMNESS) == {}


def test_a_mechanism_that_counts_or_draws_would_be_seen() -> None:
    source = """
from dualquery.queries.counting.planner import ConjunctionCounts
from dualquery.rows import histogram
from dualquery.room import randomness
from dualquery.room.randomness import SystemRandomness, check_seed
def run(self, task, plan, curator, session):
    look = curator._data.rows.total
    for block in rows.stream(): ...
    return task.queries.counts(rows, threads=1)
"""
    tree = ast.parse(source)
    seen = " ".join(passes(tree))
    for part in (".total", ".stream", "counts(...)", "counting.planner", "rows.histogram"):
        assert part in seen
    assert [line.split(" imports ")[0] for line in private_draws(tree)] == ["line 4:", "line 5:"]
