"""What a schema costs that is learned under differential privacy, beside one made by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from experiments.comparing import means, tables
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release
    from dualquery.rows.engines import Dataset
    from dualquery.rows.packed import Records

DATA = ("adult", "kdd99")
BASKETS = "baskets"
LEARNED, BY_HAND = "learned", "by hand"
QUESTIONS, RUNS = 1_000, 3
QUERIES = 100_000
EPSILON = 1.0
BARS = {"adult": 1.6, "kdd99": 1.25, BASKETS: 1.3}
"""Mean error with a learned schema, at most, over that with one made by hand."""

ROWS, ITEMS, MOST, FREQUENT, COMMONEST = 88_000, 16_000, 20, 100, 25
"""Baskets, their items, the most that count of one basket, those asked about, those to be found."""

SAME_TYPES = "columns have the types that the schema by hand gives them"
ALL_FOUND = {BASKETS: f"the {COMMONEST} commonest items are all asked about"}

_QUICK_QUERIES = 2_000


def plan(choices: Choices) -> Sequence[Run]:
    """Release each table with both schemas, once a seed."""
    data = DATA[:1] if choices.quick else DATA
    baskets = [
        {"data": BASKETS, "epsilon": EPSILON, "seed": seed}
        for seed in (() if choices.quick else choices.seeds(RUNS))
    ]
    return baskets + [
        {
            **DATA_SETS[table].parameters(choices),
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            "epsilon": EPSILON,
            "seed": seed,
        }
        for table in data
        if DATA_SETS[table].at_hand(choices)
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release the table with both schemas, and ask what both resolve."""
    if run["data"] == BASKETS:
        return _of_baskets(run, threads)
    import dualquery
    from dualquery.data.readers.formats import parse_source
    from dualquery.data.readers.source import TableSource
    from dualquery.rows.engines import load
    from experiments.schemas import by_hand

    source = parse_source(run["source"])
    assert isinstance(source, TableSource)
    frame = pl.concat(source.frames(source.columns()))  # which implies no schema
    asked: dict[str, Any] = {
        "epsilon": run["epsilon"], "queries": run["queries"], "seed": run["seed"],
        "threads": threads,
    }  # fmt: skip
    hand = by_hand(run["data"])
    made = {
        LEARNED: dualquery.release(frame, **asked),
        BY_HAND: dualquery.release(frame, schema=hand, **asked),
    }
    read = {name: load(frame, released.schema) for name, released in made.items()}
    of = {name: _codes(data) for name, data in read.items()}
    questions = _questions(of[LEARNED], of[BY_HAND], np.random.default_rng(run["seed"]))
    kinds = {each.name: type(each) for each in hand.columns}
    rows = []
    for place, name in enumerate((LEARNED, BY_HAND)):
        errors = np.abs(_answers(made[name], questions, place) - _truth(of[name], questions, place))
        columns = read[name].schema.columns  # type: ignore[union-attr]
        types = sum(kinds[each.name] is type(each) for each in columns) / len(kinds)
        rows.append(_row(name, read[name].records.bits, types, errors))
    return rows


def _of_baskets(run: Run, threads: int) -> Sequence[Row]:
    """Release pairs of frequent items, learned or declared; compare pairs that both ask about."""
    from scipy.sparse import csr_array

    import dualquery

    table = _baskets(run["seed"])
    source = pl.DataFrame({"items": table})
    asked: dict[str, Any] = {
        "epsilon": run["epsilon"], "seed": run["seed"], "threads": threads, "way": 2,
        "query_items": f"top:{FREQUENT}", "max_ones_per_row": MOST,
    }  # fmt: skip
    made = {
        LEARNED: dualquery.release(source, **asked),
        BY_HAND: dualquery.release(source, columns=f"0-{ITEMS - 1}", **asked),
    }
    answers = {name: _pairs(released) for name, released in made.items()}
    both = sorted(answers[LEARNED].keys() & answers[BY_HAND].keys())
    lengths, items = table.list.len().to_numpy(), table.explode().drop_nulls().to_numpy()
    pointers = np.concatenate(([0], np.cumsum(lengths)))
    held = csr_array((np.ones(len(items)), items, pointers), shape=(ROWS, ITEMS))
    common = np.argsort(-held.sum(axis=0))[:COMMONEST].tolist()
    asked_of, places = np.unique(both, return_inverse=True)
    together = (held[:, asked_of].T @ held[:, asked_of]).toarray() / ROWS
    truth = together[tuple(places.reshape(-1, 2).T)]
    found = []
    for name, of in answers.items():
        errors = np.abs(np.array([of[pair] for pair in both]) - truth)
        of_pairs = {item for pair in of for item in pair}
        types = sum(item in of_pairs for item in common) / len(common)
        found.append(_row(name, made[name].schema.domain.bits, types, errors))
    return found


def _row(made: str, bits: int, types: float, errors: NDArray[np.float64]) -> Row:
    return {
        "made": made,
        "bits": bits,
        "types": types,
        "max_error": float(errors.max()),
        "mean_error": float(errors.mean()),
    }


def _baskets(seed: int) -> pl.Series:
    """Return made-up baskets of some ten items, whose shares fall as those in shops do."""
    rng = np.random.default_rng(seed)
    many = rng.binomial(ROWS, 0.5 / (1 + np.arange(ITEMS)) ** 0.85)
    baskets = np.concatenate([rng.choice(ROWS, count, replace=False) for count in many])
    held = pl.DataFrame({"row": baskets, "item": np.repeat(np.arange(ITEMS), many)})
    lists = held.group_by("row").agg("item")
    return pl.DataFrame({"row": np.arange(ROWS)}).join(lists, "row", "left")["item"].fill_null([])


def _pairs(released: Release) -> dict[tuple[int, int], float]:
    """Return the answer of a release to each pair of items that it asks about."""
    from dualquery.queries.conjunctions import Workload

    assert isinstance(released.workload, Workload)
    items = np.array(list(map(int, released.schema.bit_labels())))
    first, second = np.sort(items[released.workload.literals // 2], axis=1).T.tolist()
    return dict(zip(zip(first, second, strict=True), released.answers.tolist(), strict=True))


Codes = dict[str, tuple[int, NDArray[np.int64], int]]
"""By column: its first bit, the place of each row's bit in it, and how many there are."""


@dataclass(frozen=True)
class Condition:
    """A set of values of a column that is a union of bits in both schemas."""

    column: str
    bits: tuple[NDArray[np.int64], NDArray[np.int64]]  # their places in the column, by schema
    offsets: tuple[int, int]  # the column's first bit, by schema


Question = tuple[Condition, Condition]


def _codes(data: Dataset[Records]) -> Codes:
    dense = data.records.dense_rows(0, data.n)
    found: Codes = {}
    domain = data.schema.domain
    for name, first, end in zip(
        data.schema.column_names, domain.offsets[:-1], domain.offsets[1:], strict=True
    ):
        bits = dense[:, first:end]
        one = end - first == 1
        places = 1 - bits[:, 0].astype(np.int64) if one else bits.argmax(1).astype(np.int64)
        found[name] = (int(first), places, int(end - first))
    return found


def _questions(ours: Codes, theirs: Codes, rng: np.random.Generator) -> list[Question]:
    """Return pairs of values, or ranges, of two columns that both schemas resolve."""
    parts = {name: _parts(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()}
    usable = sorted(name for name, both in parts.items() if both[1].max(initial=0) > 0)
    found: list[Question] = []
    while len(found) < QUESTIONS:
        chosen = []
        for name in rng.choice(usable, 2, replace=False):
            of = parts[name]
            first, last = np.sort(rng.integers(0, int(of[1].max()) + 1, 2))
            bits = [np.flatnonzero((each >= first) & (each <= last)) for each in of]
            offsets = ours[name][0], theirs[name][0]
            chosen.append(Condition(str(name), (bits[0], bits[1]), offsets))
        found.append((chosen[0], chosen[1]))
    return found


def _parts(
    ours: tuple[int, NDArray[np.int64], int], theirs: tuple[int, NDArray[np.int64], int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the part of each bit: the finest parts of a column's rows that both schemas tell."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sizes = max(ours[2], 2), max(theirs[2], 2)
    both = (ours[1], theirs[1] + sizes[0])
    graph = coo_array((np.ones(len(both[0])), both), shape=(sum(sizes), sum(sizes)))
    parts = connected_components(graph, directed=False)[1]
    held = {*parts[both[1]].tolist()}  # by rows; in the order of the schema made by hand
    order = [part for part in dict.fromkeys(parts[sizes[0] :].tolist()) if part in held]
    places = {part: place for place, part in enumerate(order)}
    numbered = np.array([places.get(part, -1) for part in parts.tolist()])
    return numbered[: sizes[0]], numbered[sizes[0] :]


def _truth(of: Codes, questions: Sequence[Question], place: int) -> NDArray[np.float64]:
    return np.array(
        [
            np.mean(np.all([np.isin(of[each.column][1], each.bits[place]) for each in pair], 0))
            for pair in questions
        ]
    )


def _answers(released: Release, questions: Sequence[Question], place: int) -> NDArray[np.float64]:
    """Return what a release's model answers: sums of conjunctions of two literals."""
    from dualquery.queries.literals import LiteralRows

    columns = dict(zip(released.schema.column_names, released.schema.domain.sizes, strict=True))
    literals: list[tuple[int, ...]] = []
    owners = []
    for number, pair in enumerate(questions):
        # A binary column's second value is the negation of its bit.
        lists = [
            2 * each.offsets[place] + each.bits[place] * (1 if columns[each.column] == 1 else 2)
            for each in pair
        ]
        own = list(itertools.product(*lists))
        literals += own
        owners += [number] * len(own)
    assert released.model is not None
    rows = LiteralRows(np.array(literals, np.int32), released.schema.domain)
    return np.bincount(owners, released.model.answers(rows), len(questions)).astype(np.float64)


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare mean errors with learned schemas and with those made by hand."""
    found = []
    averages = table.group_by("data", "made", maintain_order=True).agg(
        pl.col("mean_error", "types").mean()
    )
    for name, lines in tables(averages):
        by = {line["made"]: line for line in lines.iter_rows(named=True)}
        over = by[LEARNED]["mean_error"] / by[BY_HAND]["mean_error"]
        types = by[LEARNED]["types"]
        same = f"{name}: {ALL_FOUND.get(name, SAME_TYPES)}"
        bar = f"{name}: mean error at most {BARS[name]} times that with the schema by hand"
        found += [
            Finding(bar, f"{over:.2f} times", over <= BARS[name]),
            Finding(same, f"{types:.0%}", types == 1.0 if name != "kdd99" else None),
        ]
    return found


RECIPE = Recipe(
    name="drafts",
    title="What a learned schema costs, beside schemas made by hand",
    setting=(
        "The table as it comes and no schema: a tenth of the budget learns one; epsilon 1 in all, "
        "delta 1/n^2, neighbours replace one row, the default workload. Errors of 1,000 random "
        "questions about two columns: values, or ranges, that the learned schema and the one made "
        "by hand both resolve. The schemas by hand were written without sight of a draft. "
        "Baskets: 88,000 made-up ones of 16,000 items, at most 20 of each; pairs of the 100 most "
        "frequent, which are found among learned or declared items."
    ),
    plan=plan,
    perform=perform,
    summarise=means("data", "made", of=["max_error", "mean_error"], first=["bits", "types"]),
    expect=expect,
)
