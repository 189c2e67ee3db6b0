"""How far a release is from the truth, beside the trivial baselines: not private.

Every baseline runs through the same code as a release, at the release's own epsilon and delta, from
a fixed seed. The truth and what the baselines measure are counted in one pass over the table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.given_table import Table
from dualquery.data.schema.grids import digit_offsets
from dualquery.estimates.intervals import Total, tidy
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.mechanisms.registry import configure
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.counting import ConjunctionCounts
from dualquery.queries.generate.frequent import KIND as FREQUENT
from dualquery.releases.answer.sampling import unasked
from dualquery.releases.make.beside import TOTAL_SHARE
from dualquery.room.randomness import check_seed
from dualquery.room.row_count import RowCount, bought_epsilon
from dualquery.runtime.progress import NO_PROGRESS, Progress, listener
from dualquery.runtime.resources import thread_count

if TYPE_CHECKING:
    from pathlib import Path

    from dualquery.releases.keep.folder import Release
    from dualquery.rows.engines import Dataset, Engine
    from dualquery.rows.row_sums import Rows

_log = logging.getLogger(__name__)

FAR_OFF = 0.05  # relative error of a stated or noisy number of rows that needs no remark
BASELINES = {"zero": {}, "uniform": {"records": 1}, "independent": {"records": 1}, "gaussian": {}}

WARNING = "NOT PRIVATE: computed from the exact answers; for the holder of the table only"
GIVEN_QUERIES = "the baselines know which queries are asked; the release paid to find them"

SHOWN = 20  # columns and queries of the largest errors that `evaluate` names


@dataclass(frozen=True)
class Errors:
    """Distances between released and exact answers, both shares of the rows."""

    max_error: float
    mean_error: float
    rmse: float

    @staticmethod
    def between(answers: NDArray[np.float64], truth: NDArray[np.float64]) -> Errors:
        """Compare two float64 arrays of shape ``(m,)``."""
        off = np.abs(answers - truth)
        return Errors(float(off.max()), float(off.mean()), float(np.sqrt(np.mean(off**2))))

    def brief(self) -> dict[str, float]:
        """Return the two errors that every line of a comparison shows."""
        return {"max_error": self.max_error, "mean_error": self.mean_error}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A release beside its table: **not private**, for the holder of the table."""

    release: Release
    truth: NDArray[np.float64]  # the exact answers, shape (m,)
    rows: float  # of the table, or their total weight
    counted: float  # of those that count in a release: fewer where a unit has more than may
    budget: Budget  # of the baselines
    synthetic: Errors | None  # of the records' own answers; None without records
    baselines: Mapping[str, Errors]  # by their names
    noise: str  # the mechanism behind the baseline "gaussian"
    means: Mapping[str, float]  # of columns whose means were bought, of numbers as rounded there

    def bought(self) -> list[dict[str, Any]]:
        """Return each bought mean, its interval and that one's level, and the truth within what."""
        from dualquery.releases.answer.bought import means_of

        within = {bought.column: bought.rounding for bought in self.release.means}
        found = [(name, mean, *at.lower, *at.upper, at.level, self.means[name], within[name])
                 for name, mean, at in means_of(self.release) if name in self.means]  # fmt: skip
        keys = ("column", "mean", "low", "high", "level", "truth", "truth_within")
        return [dict(zip(keys, line, strict=True)) for line in found]

    @property
    def size(self) -> str:
        """The number of rows, or their total weight, and how many of them count, in words."""
        weight, unit = self.budget.neighbours.weight, self.budget.neighbours.unit
        size = f"a total weight of {self.rows:,.10g}" if weight else f"{self.rows:,} rows"
        size += f" (of a row at most {weight.max:g})" if weight else ""
        cut = f", {self.counted:,.10g} counted: at most {unit.max_rows:,} of a unit" if unit else ""
        return size + cut

    @property
    def protected(self) -> str:
        """What the guarantee protects, in words."""
        unit = self.budget.neighbours.unit
        of_unit = "" if unit is None else f" of units (column {unit.column!r})"
        return f"{self.budget.neighbours.value}{of_unit}"

    @property
    def errors(self) -> Errors:
        """Errors of the released answers."""
        return Errors.between(self.release.answers, self.truth)

    @property
    def remark(self) -> str | None:
        """What the comparison leaves out, if anything."""
        return GIVEN_QUERIES if self.release.workload.description.get("kind") == FREQUENT else None

    def by_column(self) -> list[dict[str, Any]]:
        """Return the errors of the queries about each column, the largest mean error first."""
        if (conjunctions := conjunctions_of(self.release.workload)) is None:
            return []
        schema, literals = self.release.schema, conjunctions.literals
        columns = np.where(literals < 0, -1, schema.domain.column_of_bit[literals >> 1])
        columns.sort(axis=1)  # a query is about a column once, however often it names it
        first = (columns >= 0) & (np.diff(columns, axis=1, prepend=-1) > 0)
        places, names = np.nonzero(first), schema.column_names
        asked, off = columns[places], self._off[places[0]]
        queries = np.bincount(asked, minlength=len(names))
        mean = np.bincount(asked, off, minlength=len(names)) / np.maximum(queries, 1)
        largest = np.zeros(len(names))
        np.maximum.at(largest, asked, off)
        order = np.argsort(-mean, kind="stable")
        table = {"column": names, "queries": queries, "max_error": largest, "mean_error": mean}
        return pl.DataFrame(table)[order].filter(pl.col("queries") > 0).to_dicts()

    def worst(self, count: int) -> list[dict[str, Any]]:
        """Return the queries with the largest errors, the largest first."""
        places = np.argsort(-self._off, kind="stable")[:count]
        texts = self.release.workload.text(self.release.schema)
        numbers = {"answer": self.release.answers, "truth": self.truth, "error": self._off}
        table = {name: values[places] for name, values in numbers.items()}
        return pl.DataFrame({"query": texts.gather(places), **table}).to_dicts()

    def to_dict(self) -> dict[str, Any]:
        """Return what `evaluate` says: JSON-able."""
        options, unit = self.release.options, self.budget.neighbours.unit
        baselines: dict[str, Any] = {name: each.brief() for name, each in self.baselines.items()}
        if self.noise != "gaussian":
            baselines["gaussian"]["noise"] = self.noise
        return {
            "warning": WARNING,
            **self.errors.brief(),
            "rmse": self.errors.rmse,
            "queries": len(self.release.workload),
            "rows": self.rows,
            "rows_counted": self.counted,
            "rows_of_release": tidy(self.release.base.unit),
            "mechanism": self.release.chosen,
            "private": self.release.privacy.private,
            "epsilon": options["epsilon"],
            "delta": self.budget.delta,
            "neighbours": self.budget.neighbours.value,
            "unit": None if unit is None else {"column": unit.column, "max_rows": unit.max_rows},
            "synthetic": None if self.synthetic is None else self.synthetic.brief(),
            "baselines": baselines,
            "means": self.bought(),
            "remark": self.remark,
            "unasked": unasked(self.release.schema, self.release.workload, self.release),
            "by_column": self.by_column()[:SHOWN],
            "worst": self.worst(SHOWN),
        }

    def __repr__(self) -> str:
        return f"{WARNING}: {self.errors} of {self.release!r}"

    @property
    def _off(self) -> NDArray[np.float64]:
        return np.abs(self.release.answers - self.truth)


def evaluate(release: Release | str | Path, table: Any, **more: Any) -> dict[str, Any]:
    """Compare a release with its table. The result is **not private**.

    Arguments, and what it raises, are those of `compare`. Returns a dict: errors of the answers, of
    the ``synthetic`` records and the ``baselines``, a ``remark`` where these know more, the columns
    that are ``unasked``, bought ``means``, the largest errors ``by_column``, the ``worst`` queries.
    """
    return compare(release, table, **more).to_dict()


def compare(
    release: Release | str | Path,
    table: Any,
    *,
    engine: Engine | str = "auto",
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | bool | None = NO_PROGRESS,
) -> Evaluation:
    """Count the exact answers, and run the baselines. The result is **not private**.

    Parameters
    ----------
    release
        A release or its folder.
    table
        The table, as `dualquery.release` takes it. A CSV file is read as the release's was, unless
        ``csv`` of a `Table` says how.
    engine, threads, progress
        As for `dualquery.release`.
    seed
        Seed of the baselines' noise.

    Raises
    ------
    BadInputError
        If the release or the table cannot be read or do not fit each other.
    """
    from dualquery.releases.keep.folder import Release, load_release
    from dualquery.rows.engines import Engine

    check_seed(seed)
    cores = thread_count(threads)
    loaded = release if isinstance(release, Release) else load_release(release)
    reading = engine if isinstance(engine, Engine) else Engine(name=engine)
    heard = listener(progress)
    heard.phase("reading the table")
    given = table if isinstance(table, Table) else Table(table)
    read = given.written_as(loaded.options.get("csv"))
    if read.csv != given.csv:
        heard.note(f"read with --csv {read.csv!r}, as the release was; --csv says otherwise")
    table, relation = read.source, Neighbours.of_options(loaded.options)
    bought = [each.column for each in loaded.means]
    schema = loaded.schema.with_sums(bought) if bought else loaded.schema
    with ExitStack() as opened:
        rows = reading.open(table, schema, unit=relation.unit, weight=relation.weight)
        data = whole = opened.enter_context(rows)
        # The truth is of the rows before any cut, to a number of 1s or of rows a unit.
        if data.schema.max_ones_per_row is not None or relation.unit is not None:
            uncut = replace(data.schema, max_ones_per_row=None)
            rows = reading.open(table, uncut, weight=relation.weight, again=True)
            whole = opened.enter_context(rows)
        return _compare(loaded, data, whole, cores, seed, heard)


def _compare(
    loaded: Release,
    data: Dataset[Rows],
    whole: Dataset[Rows],
    cores: int,
    seed: int,
    progress: Progress,
) -> Evaluation:
    """Compare a release, made from the rows of ``data``, with its ``whole`` table."""
    from dualquery.releases.answer.ruled import with_forced_answers
    from dualquery.releases.make.making import run
    from dualquery.rows.cached import CachedRows
    from dualquery.rules.reading import rules_of

    neighbours = Neighbours.of_options(loaded.options)
    counted, stated = neighbours.rows_public, loaded.base.known == "stated"
    if (counted or stated) and abs(data.n - loaded.n) > FAR_OFF * data.n * stated:
        here = Total.of(RowCount(data.n, neighbours)).text
        _log.warning(
            f"the release went by {loaded.base.text} {loaded.base.name}, this table has {here}: "
            "its answers are shares of the first number, if this is its table"
        )
    workload = loaded.workload
    epsilon: float = loaded.options["epsilon"]
    # Where the number of rows is private, baselines use the release's number and pay its cost.
    paid = bought_epsilon(neighbours, loaded.options["rows"], epsilon)
    paid = paid or TOTAL_SHARE * epsilon * (loaded.base.known == "measured")
    public = RowCount(data.n if counted else loaded.n, neighbours, paid)
    task = Task(workload, public.n, neighbours.copies)
    budget = Budget(public.rest(epsilon), loaded.options["delta"], neighbours=neighbours)
    # At delta 0 there is no Gaussian noise; the baseline of that name is then Laplace noise.
    noise = "laplace" if budget.delta == 0 else "gaussian"
    mechanisms = {
        name: configure(noise if name == "gaussian" else name, BASELINES[name])
        for name in (BASELINES if conjunctions_of(workload) is not None else ("gaussian",))
    }
    progress.phase("evaluating the queries")
    known = CachedRows(data.records)
    asked = [workload, *(mechanism.statistics(workload) for mechanism in mechanisms.values())]
    lists = [conjunctions_of(each) for each in asked if each is not None]
    known.count_together([ConjunctionCounts(each.literals) for each in lists if each], cores)
    # The truth is about the rows before any cut; without a cut it is counted already.
    counts = workload.counts(known if whole is data else whole.records, threads=cores)
    data = replace(data, records=known)
    truth = np.asarray(counts * (workload.step / whole.n), dtype=np.float64)
    made = loaded.records
    synthetic = None if made is None else Errors.between(workload.answers_on(made, cores), truth)
    baselines: dict[str, Errors] = {}
    for name, mechanism in mechanisms.items():
        progress.phase(f"baseline {name}")
        plan = mechanism.plan(task, budget)
        outcome = run(data, task, mechanism, plan, seed, cores, neighbours=neighbours)
        outcome, _ = with_forced_answers(outcome, workload, rules_of(loaded.schema))
        baselines[name] = Errors.between(outcome.answers, truth)
    in_all, counting = (tidy(each.n * neighbours.of_copy) for each in (whole, data))
    # The means of the columns whose numbers the rows carry, clipped as they are.
    grids, means = whole.schema.grids, {}
    for grid, (first, last) in zip(
        grids, pairwise(digit_offsets(grids, whole.schema.domain.bits)), strict=True
    ):
        digits = 2 * np.arange(first, last, dtype=np.int32)[:, None]
        ones = whole.records.total(ConjunctionCounts(digits), cores)
        means[grid.column] = grid.mean(grid.centred(ones, whole.n), whole.n)
    return Evaluation(loaded, truth, in_all, counting, budget, synthetic, baselines, noise, means)
