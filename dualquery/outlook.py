"""What a release would be, cost and need, before a private row is read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.data.blocks import choose_schema
from dualquery.data.cuts import CutTable, column_of
from dualquery.data.readers.formats import is_public, source_of
from dualquery.data.readers.source import DeclaredItemSource, TableSource
from dualquery.data.table import Table
from dualquery.mechanisms.protocol import Task
from dualquery.mechanisms.registry import AUTOMATIC
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.means import with_means, without_means
from dualquery.releases.needs import Memory, memory_needed
from dualquery.releases.pricing import price
from dualquery.releases.rehearsal import expected_seconds
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.rows.dataset import load
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import thread_count

if TYPE_CHECKING:
    from dualquery.data.readers.source import Source
    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.expected import ExpectedError
    from dualquery.mechanisms.protocol import Mechanism
    from dualquery.requests import BudgetRequest, WorkloadRequest


@dataclass(frozen=True)
class Outlook:
    """What to expect of a release.

    Parameters
    ----------
    mechanism, remark
        Which one it will be, and why, if ``auto`` chose it.
    declared
        Whether the schema is declared; else the release would not be private.
    queries, rows, bits
        How many there are.
    epsilon, delta, accountant
        What it will cost.
    notes
        Warnings of a budget that protects little, as the release would say them.
    expected
        The errors; None of a mechanism without a model of them.
    memory
        About how many bytes it takes.
    seconds
        About how long it takes on this machine; None of a mechanism that was not tried: one that
        `auto` does not take, or whose queries are still to be chosen. None with weights, too, as
        their total does not tell how many rows are read.
    """

    mechanism: str
    remark: str | None
    declared: bool
    queries: int
    rows: int
    bits: int
    epsilon: float
    delta: float
    accountant: str
    notes: tuple[str, ...]
    expected: ExpectedError | None
    memory: Memory
    seconds: float | None


def outlook(
    table: Table,
    schema: Schema | Mapping[str, object] | str | Path | None,
    request: WorkloadRequest,
    mechanism: Mechanism[Any],
    budget: BudgetRequest,
    rows: int | None,
    threads: int | None = None,
) -> Outlook:
    """Plan a release, and try it on made-up rows. Reads no private row and spends nothing.

    Parameters
    ----------
    table, schema, request, mechanism, budget
        Those of the release.
    rows
        A number of rows to go by; None for the number that the table's format states, if that is
        public, or that of a public table.
    threads
        Threads for all parts; None for one a core.

    Raises
    ------
    BadInputError
        If there is no schema or no number of rows, or the release would be refused.
    """
    source = source_of(table.named)
    if schema is None and not _states_schema(source, table):
        raise BadInputError(
            "--dry-run reads no rows, so it cannot draft a schema: give --schema, or of numbered "
            "items --columns"
        )
    n, relation = rows, budget.relation
    columns = table.columns, table.max_ones_per_row
    chosen = choose_schema(_without_counting(source, relation), schema, *columns)
    if n is None and relation.rows_public and hasattr(source, "row_count"):
        n = int(source.row_count())
    of_rows = relation.unit is None and relation.weight is None
    if n is None and of_rows and isinstance(table.data, str) and is_public(table.data):
        n = load(table.data, chosen).n
    if n is None and not relation.rows_public:
        why = f"under {relation.value}" if of_rows else "with --unit or --weight"
        number = "a number" if relation.weight is None else "a total weight"
        several = relation.replaces and relation.steps > 1
        delta = ", and --delta" if several and budget.delta is None and not mechanism.pure else ""
        raise BadInputError(
            f"{source.label}: {why} the number of rows is private, and what is planned from it "
            f"would tell it: give --rows, {number} to go by{delta}"
        )
    if n is None:
        raise BadInputError(
            f"{source.label} does not state its number of rows, and --dry-run reads none: give "
            "--rows"
        )
    bought = relation is Neighbours.ADD_REMOVE and budget.rows is None
    count = _counted(n, budget, COUNT_SHARE * budget.epsilon if bought else 0.0)
    if budget.delta is None and not mechanism.pure and count.units not in (None, count.n):
        raise BadInputError(
            "the default delta, 1/n^2, goes by the number n of units, or of rows with weights; "
            "--dry-run counts none: give --delta"
        )
    share, notes = budget.resolve(mechanism, count)
    start = time.perf_counter()
    frequent = request.frequent(chosen, mechanism)
    if frequent is None:
        workload = request.build(chosen, max(1, count.n // relation.copies))
    else:
        workload = frequent.stand_in
    task = Task(workload, count.n, relation.copies, frequent=frequent)
    grids = () if request.means is None else chosen.with_sums(request.means).grids
    own = mechanism.plan(task, without_means(share, grids))
    plan, _ = with_means(own, grids, workload, share)
    planned = time.perf_counter() - start
    priced = price(plan, share)
    name = plan.mechanism or mechanism.name
    seconds = None
    if name in AUTOMATIC and frequent is None and relation.weight is None:
        cores = thread_count(threads)
        seconds = planned + expected_seconds(task, mechanism, own, chosen, relation, cores)
    bits = chosen.domain.bits
    return Outlook(
        mechanism=name,
        remark=plan.remark,
        declared=chosen.declared,
        queries=len(workload),
        rows=n,
        bits=bits,
        epsilon=priced.epsilon + count.epsilon,
        delta=share.delta,
        accountant=priced.accountant,
        notes=notes,
        expected=mechanism.expected_error(task, own),
        memory=memory_needed(task, mechanism, own),
        seconds=seconds,
    )


def _without_counting(source: Source, relation: Neighbours) -> Source:
    """Return a source without the columns of units and weights, which are not released. Of its rows
    none is looked at.
    """
    for option, each in (("--unit", relation.unit), ("--weight", relation.weight)):
        if each is not None:
            hidden = (*(source.hidden if isinstance(source, CutTable) else ()), each.column)
            nothing = np.zeros(0, np.bool_)
            source = CutTable(column_of(source, each.column, option), hidden, nothing, 0)
    return source


def _counted(rows: int, budget: BudgetRequest, bought: float) -> RowCount:
    """Return a number of rows to go by, or a total weight, as the release would; no unit is empty,
    so there are at least as many as could hold so many rows.
    """
    relation = budget.relation
    n = max(2, round(rows / relation.of_copy))
    if not relation.replaces or relation.rows_public:
        return RowCount(n, relation, bought)
    return RowCount(n, relation, units=max(2, -(-n // relation.steps)))


def _states_schema(source: Source, table: Table) -> bool:
    """Return whether format or options say which columns there are, without a row being read."""
    if isinstance(source, TableSource):
        return source.implied_schema is not None
    return isinstance(source, DeclaredItemSource) or (
        table.columns is not None and source.width() is None
    )
