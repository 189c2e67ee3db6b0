"""``release --dry-run``: what the release would be, cost and need; reads no private row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dualquery.cli.shared_options import is_stdin
from dualquery.cli.terminal import Terminal
from dualquery.privacy.events import events_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.requests import BudgetRequest, ReleaseSpec
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.runtime.errors import BadInputError, privacy_log
from dualquery.runtime.option_fields import built

if TYPE_CHECKING:
    from dualquery.data.readers.source import Source
    from dualquery.data.schema.any_schema import Schema
    from dualquery.releases.make.making import Planned
    from dualquery.releases.make.schema_price import SchemaPrice


def show_outlook(terminal: Terminal, given: Mapping[str, Any]) -> None:
    """Print what to expect of the release that is asked for.

    `BadInputError` if it would be refused, or the standard input would have to be read.
    """
    # Rows that are public need not be stated to a release, but to this.
    public = given["neighbours"] == "replace-one" and not (given["unit"] or given["weight"])
    spec = built(ReleaseSpec, {**given, "rows": None} if public else given)
    if given["out"] is not None:
        from dualquery.releases.keep.reservation import require_free

        require_free(given["out"])
    if is_stdin(given["data"]):
        raise BadInputError("--dry-run reads no rows, so no standard input (-): name a file")
    from dualquery.privacy.guarantee import round_up
    from dualquery.releases.make.making import seconds_needed
    from dualquery.releases.make.schema_learning import schema_price

    terminal.progress().phase("planning")
    if price := schema_price(spec, given["rows"]):
        show_price(terminal, price, given["rows"])
        return
    rows, planned = plan_without_rows(spec, given["rows"])
    for warning in planned.warnings:
        privacy_log.warning(warning)
    name = planned.plan.mechanism or planned.mechanism.name
    expected, memory = planned.expected, planned.memory
    # A release is charged the whole budget, whatever part its events need; without events, none.
    charged = bool(events_of(planned.plan.schedule))
    epsilon = planned.count.epsilon + charged * planned.budget.epsilon
    delta = charged * planned.budget.delta
    accountant, bits = planned.priced.accountant, planned.schema.domain.bits
    queries, seconds = len(planned.task.queries), seconds_needed(planned.task, planned.own)
    declared, why = planned.schema.declared, planned.plan.remark
    found = {"mechanism": name, "remark": why, "declared": declared, "queries": queries}
    found |= {"rows": rows, "bits": bits, "epsilon": epsilon, "delta": delta}
    found |= {"accountant": accountant, "notes": planned.warnings, "seconds": seconds}
    found |= {"expected": expected and asdict(expected), "memory": asdict(memory)}
    terminal.emit(found)
    if terminal.machine:
        return
    counted = f"{rows:,} rows" if spec.budget.weight is None else f"a weight of {rows:,}"
    terminal.say(
        f"{name} would answer {queries:,} queries on {counted} of {bits:,} bits"
        f"{f' ({why})' if why else ''}\n"
        f"cost: epsilon {round_up(epsilon, 4)}, delta {round_up(delta, 3)}, by the accountant "
        f"{accountant}\n"
        f"{'errors: no model of them' if expected is None else expected.text()}\n{memory.text()}\n"
        f"time: about {float(f'{seconds:.2g}'):g} seconds; a third or three times that is possible"
    )
    if not declared:
        terminal.say("the schema is not declared: the release would not be private")


def show_price(terminal: Terminal, price: SchemaPrice, rows: int | None) -> None:
    """Print what a schema that is to be learned would cost, and what it could list."""
    listed = math.ceil(price.fewest)
    terminal.emit({"schema": {"columns": price.sizes[0], "rows": rows, "listed_from_rows": listed}})
    if not terminal.machine:
        terminal.say(price.text(rows))


def plan_without_rows(spec: ReleaseSpec, rows: int | None) -> tuple[int, Planned]:
    """Plan a release without reading a private row; return the number of rows too.

    ``rows`` is a number to go by; None for the one that the table's format states, if that is
    public, or that of a public table. `BadInputError` if there is none, or no schema, or the
    release would be refused.
    """
    from dualquery.data.drafts.choose import choose_schema
    from dualquery.data.encoding.cuts import without_counting
    from dualquery.releases.make.making import plan_release
    from dualquery.releases.make.schema_learning import states_schema

    table, budget, mechanism = spec.table, spec.budget, spec.configured
    source, relation = table.source, budget.relation
    if spec.schema is None and not states_schema(source, table.columns):
        raise BadInputError(
            "--dry-run reads no rows, so it cannot draft a schema: give --schema, or of numbered "
            "items --columns"
        )
    shown = without_counting(source, relation.unit, relation.weight)
    chosen = choose_schema(shown, spec.schema, table.columns, table.max_ones_per_row)
    if spec.workload.means is not None:
        chosen = chosen.with_sums(spec.workload.means)
    n = _rows_to_go_by(spec, source, chosen) if rows is None else rows
    count = _counted(n, budget)
    if budget.delta is None and not mechanism.pure and count.units is not None:
        raise BadInputError(
            "the default delta, 1/n^2, goes by the number n of units, or of rows with weights; "
            "--dry-run counts none: give --delta"
        )
    return n, plan_release(spec, chosen, count)


def _rows_to_go_by(spec: ReleaseSpec, source: Source, schema: Schema) -> int:
    """Return the public number of rows; refuse to look where it is private."""
    from dualquery.data.readers.formats import is_public
    from dualquery.rows.engines import load

    budget, relation, data = spec.budget, spec.budget.relation, spec.table.data
    of_rows = relation.unit is None and relation.weight is None
    if relation.rows_public and (stated := source.row_count) is not None:
        return stated
    if of_rows and isinstance(data, str) and is_public(data):
        return load(data, schema).n
    if relation.rows_public:
        raise BadInputError(
            f"{source.label} does not state its number of rows, and --dry-run reads none: give "
            "--rows"
        )
    why = f"under {relation.value}" if of_rows else "with --unit or --weight"
    number = "a number" if relation.weight is None else "a total weight"
    needed = relation.replaces and budget.delta is None and not spec.configured.pure
    raise BadInputError(
        f"{source.label}: {why} the number of rows is private, and what is planned from it would "
        f"tell it: give --rows, {number} to go by{', and --delta' if needed else ''}"
    )


def _counted(rows: int, budget: BudgetRequest) -> RowCount:
    """Return a number of rows to go by as the release would; no unit is empty."""
    relation, n = budget.relation, budget.copies_of(rows)
    if relation.replaces and not relation.rows_public:
        return RowCount(n, relation, units=max(2, -(-n // relation.steps)))
    bought = relation is Neighbours.ADD_REMOVE and budget.rows is None
    return RowCount(n, relation, COUNT_SHARE * budget.epsilon if bought else 0.0)
