"""Who passes over rows, counts, draws private randomness, opens tables: only those listed."""

import ast
import re
from collections.abc import Iterator

from tests.callers import found, imports, unlisted

PASSES = {
    "dualquery/room/": "the private room: what it counts leaves it with noise only",
    "dualquery/rows/": "the passes themselves, and the operator's cache of exact counts",
    "dualquery/queries/": "a family counts its own queries in rows that it is handed",
    "dualquery/releases/compare/evaluation.py": "true errors, for the operator and not private",
    "experiments/": "measures true errors of public data sets",
    "mwem/sampled/family.py": "counts in its own population of synthetic records",
    "mwem/sampled/rounds.py": "counts in its own population of synthetic records",
}
"""Files and folders that pass over rows or count in them, and why they may."""

RANDOMNESS = {
    "dualquery/room/": "the private room: its draws are charged",
    "dualquery/audit/": "watches the draws about made-up tables",
    "dualquery/releases/make/making.py": "makes the source and hands it to the curator",
    "experiments/contingency.py": "makes the source and hands it to the curator",
    "experiments/datacubes.py": "makes the source and hands it to the curator",
}
"""Files and folders that import the source of private randomness, and why they may."""

METHODS = frozenset({"total", "stream"})
"""Methods of rows that pass over them: not even to be named elsewhere."""

COUNTERS = frozenset({"counts"})  # methods that count in rows they are given

SUMS = ("dualquery.rows.histogram.", "dualquery.queries.counting.")
"""Modules of sums over rows: who imports them is about to count."""


SOURCE = "dualquery.room.randomness"
"""The source of private randomness; its `check_seed` is a rule about options."""


OPENERS = (
    "dualquery.data.given_table",
    "dualquery.data.opening",
    "dualquery.data.readers",
    "dualquery.rows.engines",
    "dualquery.releases.make.making",
    "dualquery.api",
    "dualquery.synthesizer",
    "dualquery.releases.compare.evaluation",
)
"""Modules that open tables, or do a job that does."""

EXPORTED = frozenset(
    {
        "dualquery.Engine", "dualquery.Synthesizer", "dualquery.Table", "dualquery.evaluate",
        "dualquery.release",
        "dualquery.data.FORMATS", "dualquery.data.load", "dualquery.data.parse_source",
        "dualquery.data.source_of",
    }
)  # fmt: skip
"""The same under the names of the packages."""

HARMLESS = frozenset(
    {
        "dualquery.data.given_table.Unit",
        "dualquery.data.given_table.Weight",
        "dualquery.data.opening.FilePath",
        "dualquery.data.opening.is_file",
        "dualquery.data.readers.csv.Dialect",
        "dualquery.data.readers.formats.is_public",
        "dualquery.rows.engines.Dataset",
        "dualquery.rows.engines.RecordsSource",
        "dualquery.api.expected_error",
        "dualquery.releases.compare.evaluation.Evaluation",
        "dualquery.releases.compare.evaluation.Errors",
    }
)
"""Types, texts and rules about names in these modules: nobody can read a row with them."""


_FRAMES = re.compile(
    r"(read|scan)_(csv|parquet|ipc|feather|ndjson|json|excel|ods|avro|delta|database|table|lines)\w*"
)
_ARRAYS = frozenset({"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "ParquetFile"})
_NAME = re.compile(r"[\w.]+(:\w+)?")

STATED = {
    "dualquery/api.py": "a release has a privacy statement",
    "dualquery/synthesizer.py": "warns if its release is not private",
    "dualquery/releases/make/schema_learning.py": "a learned schema says what it cost",
    "dualquery/releases/compare/evaluation.py": "says that it is not private",
    "dualquery/cli/commands/release.py": "prints and stores the statement",
    "dualquery/cli/commands/compare_solvers.py": "prints the statement; its files have it, too",
    "dualquery/cli/commands/evaluate.py": "says that it is not private",
    "dualquery/cli/commands/report.py": "the page says that it is not private",
    "dualquery/cli/commands/schema.py": "says that a draft is not private",
}
"""Files that open a table, and the statement that this ends in (`tests/room/test_openers.py`)."""

UNSTATED = {
    "dualquery/__init__.py": "names of the package: what they do is listed below their own files",
    "dualquery/requests.py": "holds the table for `release`, which is listed here",
    "dualquery/cli/commands/budget_plan.py": "says what of a table would be read; opens none",
    "dualquery/cli/commands/dry_run.py": "reads the rows of public tables only, to count them",
    "dualquery/cli/shared_options.py": "declares options; hands the table to commands listed here",
    "dualquery/data/": "readers: they hand rows to a caller, who is listed here",
    "dualquery/runtime/array_files.py": "reads arrays of a file for a caller, who is listed here",
    "dualquery/rows/": "engines: they hand rows to a caller, who is listed here",
    "dualquery/audit/": "makes releases of made-up tables, and cuts them to units",
    "dualquery/queries/generate/query_files.py": "reads a file of public queries",
    "dualquery/releases/keep/folder.py": "reads the folder of a release, which is public",
    "dualquery/releases/make/payment.py": "a keyed hash for the user's own budget file",
    "dualquery/releases/keep/stored.py": "reads the folder of a release, which is public",
    "dualquery/verification/check.py": "reads the answers of a release, which are public",
    "solvers/formats/scip_reader.py": "reads what SCIP's process found in a file of a problem",
    "experiments/": "studies on public data sets; every page of results says not private",
}
"""Files and folders that show nobody a row of a private table, and why."""


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


def openings(tree: ast.AST) -> Iterator[str]:
    """Yield how a module gets hold of tables."""
    for line, name in imports(tree):
        if opens(name):
            yield f"line {line}: imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            array = isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy", "pq")
            if _FRAMES.fullmatch(node.attr) or (array and node.attr in _ARRAYS):
                yield f"line {node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Constant) and _names_opener(node.value):
            yield f"line {node.lineno}: {node.value!r}"


def opens(name: str) -> bool:
    """Return whether a full name opens tables, or is a module that does."""
    if name in HARMLESS or f"{name}.".startswith("dualquery.data.readers.source."):
        return False
    openers = tuple(f"{each}." for each in OPENERS)
    return name in {"dualquery", *EXPORTED} or f"{name}.".startswith(openers)


def _names_opener(value: object) -> bool:
    """Return whether a text is the name of a module that opens tables, to import it by."""
    name = isinstance(value, str) and _NAME.fullmatch(value) is not None
    return name and value != "dualquery" and opens(str(value).replace(":", "."))


def test_only_those_listed_pass_over_rows_or_count() -> None:
    assert unlisted(found(passes), PASSES) == {}


def test_only_the_room_draws_private_randomness() -> None:
    assert unlisted(found(private_draws), RANDOMNESS) == {}


def test_only_those_listed_open_tables() -> None:
    """A new file here needs an end in a privacy statement, or a reason why it needs none."""
    assert unlisted(found(openings), [*STATED, *UNSTATED]) == {}


def test_a_mechanism_that_counts_or_draws_would_be_seen() -> None:
    source = """
from dualquery.queries.counting import ConjunctionCounts
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
    for part in (".total", ".stream", "counts(...)", "queries.counting", "rows.histogram"):
        assert part in seen
    assert [line.split(" imports ")[0] for line in private_draws(tree)] == ["line 4:", "line 5:"]
