"""How far a release is from the truth, beside the trivial baselines: not private.

For the operator who holds the table. Every baseline runs through the same code as a release, at the
release's own epsilon and delta, from a fixed seed. The truth and what the baselines measure are
counted in one pass over the table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.data.schema.grids import digit_offsets
from dualquery.data.table import Table
from dualquery.estimates.total import Total, tidy
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.mechanisms.registry import configure
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.counting.planner import ConjunctionCounts
from dualquery.releases.comparison import Comparison, Errors
from dualquery.room.randomness import check_seed
from dualquery.room.row_count import RowCount, bought_epsilon
from dualquery.runtime.progress import NO_PROGRESS, Progress, listener
from dualquery.runtime.resources import thread_count

if TYPE_CHECKING:
    from pathlib import Path

    from dualquery.releases.folder import Release
    from dualquery.rows.dataset import Dataset
    from dualquery.rows.engines import Engine
    from dualquery.rows.protocol import Rows

_log = logging.getLogger(__name__)

FAR_OFF = 0.05
"""Share of the rows by which a stated or noisy number of them may be off without a remark."""
BASELINES = ("zero", "uniform", "independent", "gaussian")


def evaluate(
    release: Release | str | Path,
    table: Any,
    *,
    engine: Engine | str = "auto",
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | bool | None = NO_PROGRESS,
) -> dict[str, Any]:
    """Compare a release with its table. The result is **not private**.

    Parameters
    ----------
    release, table, engine, threads, seed, progress
        As for `compare`.

    Returns
    -------
    dict
        ``max_error``, ``mean_error``, ``rmse`` of the released answers; ``synthetic`` for the
        records' own answers (None without records); ``baselines``, and a ``remark`` where these are
        told more than the release was; the columns that are ``unasked``; the ``means`` that were
        bought, with intervals and the truth; ``by_literals``; the columns and the queries with the
        largest errors, ``by_column`` and ``worst``; the budget that was asked for, that of the
        baselines, and whether the release is ``private`` at all; the rows of the table, of those
        that count (fewer where a unit has more than may), and of the release; a warning.

    Raises
    ------
    BadInputError
        If the release or the table cannot be read or do not fit each other.
    """
    return compare(
        release, table, engine=engine, threads=threads, seed=seed, progress=progress
    ).to_dict()


def compare(
    release: Release | str | Path,
    table: Any,
    *,
    engine: Engine | str = "auto",
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | bool | None = NO_PROGRESS,
) -> Comparison:
    """Count the exact answers, and run the baselines. The result is **not private**.

    Parameters
    ----------
    release
        A release or its folder.
    table
        The table, as `dualquery.release` takes it; of its columns those of the release are read.
        A CSV file is read as the release's was, unless ``csv`` of a `Table` says how.
    engine
        How the rows are read, as for `dualquery.release`.
    threads
        Threads; None for one a core.
    seed
        Seed of the baselines' noise.
    progress
        Is told which phase begins; True for lines on stderr.

    Returns
    -------
    The release beside its table. Numbers of rows that do not fit each other are logged as a
    warning.

    Raises
    ------
    BadInputError
        If the release or the table cannot be read or do not fit each other.
    """
    from dualquery.releases.folder import Release, load_release
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
    table = read.named
    relation = Neighbours.of_options(loaded.options)
    schema = loaded.schema
    if loaded.means:
        schema = schema.with_sums([each.column for each in loaded.means])
    with (
        reading.open(table, schema, unit=relation.unit, weight=relation.weight) as data,
        _uncut(reading, table, data, relation) as whole,
    ):
        return _compare(loaded, data, whole, cores, seed, heard)


@contextmanager
def _uncut(
    reading: Engine, table: Any, data: Dataset[Rows], relation: Neighbours
) -> Iterator[Dataset[Rows]]:
    """Yield the rows before any cut, to a number of 1s or of rows a unit: the truth is of these."""
    if data.schema.max_ones_per_row is None and relation.unit is None:
        yield data
        return
    uncut = data.schema.with_max_ones(None)
    with reading.open(table, uncut, weight=relation.weight, again=True) as whole:
        yield whole


def _compare(
    loaded: Release,
    data: Dataset[Rows],
    whole: Dataset[Rows],
    cores: int,
    seed: int,
    progress: Progress,
) -> Comparison:
    """Compare a release, made from the rows of ``data``, with those of its ``whole`` table."""
    from dualquery.queries.conjunctions import conjunctions_of
    from dualquery.releases.making import run
    from dualquery.rows.cached import CachedRows

    neighbours = Neighbours.of_options(loaded.options)
    counted = neighbours.rows_public
    if counted and data.n != loaded.n:
        _log.warning(
            f"the release was made from {loaded.n:,} rows, this table has {data.n:,}: it may be "
            "another table"
        )
    elif loaded.base.known == "stated" and abs(data.n - loaded.n) > FAR_OFF * data.n:
        here = Total.of(RowCount(data.n, neighbours)).text
        has = "this table has" if neighbours.unit is None else "of this table count"
        _log.warning(
            f"the release went by {loaded.base.text} {loaded.base.name}, {has} {here}: its "
            "answers are shares of the first number, and off by that alone"
        )
    workload = loaded.workload
    epsilon: float = loaded.options["epsilon"]
    # Where the number of rows is private, baselines use the release's number and pay its cost.
    public = RowCount(
        data.n if counted else loaded.n,
        neighbours,
        bought_epsilon(neighbours, loaded.options["rows"], epsilon),
    )
    task = Task(workload, public.n, neighbours.copies)
    budget = Budget(public.rest(epsilon), loaded.options["delta"], neighbours=neighbours)
    # At delta 0 there is no Gaussian noise; the baseline of that name is then Laplace noise.
    noise = "laplace" if budget.delta == 0 else "gaussian"
    mechanisms = {
        name: configure(noise if name == "gaussian" else name, {})
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
    synthetic = None
    if loaded.records is not None:
        answers = workload.answers_on(loaded.records, threads=cores)
        synthetic = Errors.between(answers, truth)

    baselines: dict[str, Errors] = {}
    for name, mechanism in mechanisms.items():
        progress.phase(f"baseline {name}")
        plan = mechanism.plan(task, budget)
        outcome = run(data, task, mechanism, plan, seed, cores, neighbours=neighbours)
        baselines[name] = Errors.between(outcome.answers, truth)
    in_all, counting = (tidy(each.n * neighbours.of_copy) for each in (whole, data))
    means = _exact_means(whole, cores)
    return Comparison(loaded, truth, in_all, counting, budget, synthetic, baselines, noise, means)


def _exact_means(data: Dataset[Rows], threads: int) -> dict[str, float]:
    """Return the means of the columns whose numbers the rows carry, clipped as they are."""
    grids, bits = data.schema.grids, data.schema.domain.bits
    starts, found = digit_offsets(grids, bits), {}
    for grid, first, last in zip(grids, starts, starts[1:], strict=False):
        digits = 2 * np.arange(first, last, dtype=np.int32)[:, None]
        ones = data.records.total(ConjunctionCounts(digits), threads)
        found[grid.column] = grid.mean(grid.centred(ones, data.n), data.n)
    return found
