"""``dualquery budget plan``: what parameters cost, or what a budget allows, by every accountant."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Any

import typer

from dualquery.cli.shared_options import Json, with_options
from dualquery.cli.terminal import Terminal
from dualquery.data.given_table import Table
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.accountants.choice import ACCOUNTANTS, Accountant
from dualquery.privacy.calibrate import calibrate_game
from dualquery.privacy.events import GameSchedule
from dualquery.privacy.guarantee import check_budget, default_delta, round_up
from dualquery.privacy.neighbours import Neighbours
from dualquery.requests import LARGEST_ROWS, WorkloadRequest
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import built


@with_options("rounds", "samples", "eta", "delta", "schema", "queries", "neighbours", epsilon=None)
def plan(
    *,
    rows: Annotated[int, typer.Option("--rows", "-n", help="Number of rows of the table.")],
    columns: Annotated[
        int | None,
        typer.Option(
            help="With --epsilon: columns of a schema that a release would learn; show how often a "
            "value must occur to be listed.",
            min=1,
        ),
    ] = None,
    as_json: Json = False,
    epsilon: float | None,
    delta: float | None,
    schema: str | None,
    queries: str | None,
    neighbours: str,
    **parameters: Any,
) -> None:
    """Show every accountant side by side for DualQuery's parameters. Looks at no data.

    With --rounds, --samples and --eta it shows the epsilon of each accountant.
    With --epsilon and two of the three it shows the third that each accountant
    allows. With --epsilon and --schema it also shows the error to expect of each
    mechanism, and DualQuery's policy chooses what you leave out of the three.
    With --epsilon and --columns it shows what a learned schema could list.

    Examples:

      dualquery budget plan -n 30162 --epsilon 1 --schema adult

      dualquery budget plan -n 30162 --epsilon 1 --columns 15

      dualquery budget plan -n 30162 --rounds 40 --samples 1000 --eta 0.8 --delta 0.001

      dualquery budget plan -n 30162 --rounds 40 --samples 1000 --epsilon 1 --delta 0.001
    """
    from dualquery.cli.commands.dry_run import show_price
    from dualquery.data.schema.schema_files import load_schema
    from dualquery.mechanisms.dualquery.game_forecast import game_error
    from dualquery.mechanisms.dualquery.game_options import GameOptions
    from dualquery.mechanisms.dualquery.parameters import choose_parameters
    from dualquery.mechanisms.forecast import Forecast, forecast
    from dualquery.releases.make.beside import TOTAL_SHARE, without_beside
    from dualquery.releases.make.schema_price import SchemaPrice
    from dualquery.room.row_count import RowCount

    if rows > LARGEST_ROWS:
        raise BadInputError(f"--rows is {rows:,}; at most {LARGEST_ROWS:,} can be accounted for")
    terminal, relation = Terminal(machine=as_json), Neighbours.parse(neighbours)
    used = default_delta(rows) if delta is None else delta
    total = Budget(1.0 if epsilon is None else epsilon, used, neighbours=relation)
    warnings = check_budget(total.epsilon, used, rows)
    if columns is not None:
        if epsilon is None:
            raise BadInputError("--columns is about a schema that a budget learns: give --epsilon")
        price = SchemaPrice.part(epsilon, used, Table.schema_share, relation, (columns, columns))
        price.require_worth(rows)
        show_price(terminal, price, rows)
        return
    whole = without_beside(total, (), RowCount(rows, relation))
    if whole != total:
        warnings = (*warnings, f"n is private: {TOTAL_SHARE:.0%} of epsilon goes to measuring it")
    given = {name: value for name, value in parameters.items() if value is not None}
    if (schema is not None or queries is not None) and epsilon is None:
        raise BadInputError(
            "--schema and --queries show the error to expect of a budget: give --epsilon, and "
            "leave one of --rounds, --samples and --eta out, or all"
        )
    if queries is not None and schema is None:
        raise BadInputError("--queries counts conjunctions about a schema: give --schema")
    by_policy = schema is not None and len(given) < 2
    if not by_policy and len(given) != (3 if epsilon is None else 2):
        raise BadInputError(
            "give --rounds, --samples and --eta, or --epsilon and two of them, or --epsilon and "
            f"--schema; found {'no' if epsilon is None else 'an'} --epsilon and {len(given)} of "
            "the three"
        )
    expected, chosen, who = Forecast(), None, ""
    if schema is not None and epsilon is not None:
        progress = terminal.progress()
        described = load_schema(schema)
        if getattr(described, "partial", False):
            raise BadInputError(f"{schema} is partial: use release --dry-run, which plans for that")
        if not described.declared:
            warnings = (*warnings, "a release with this draft is not private: declare it first")
        task = Task(built(WorkloadRequest, {"queries": queries}).build(described, rows), rows)
        if by_policy:
            progress.phase("planning dualquery")
            chosen = choose_parameters(GameOptions(**given), task, whole)
            # What accountants are to solve for stays open.
            opened = "samples" if "eta" in given else "eta"
            parameters = {**chosen.schedule.parameters(), opened: None}
            filled = [n for n in parameters if parameters[n] is not None and n not in given]
            who = f"{' and '.join(filled)} chosen by DualQuery's policy"
        game = Forecast(reasons={"dualquery": "measured with the policy's parameters only"})
        if chosen is not None and not given:
            game = Forecast({"dualquery": game_error(task, chosen.schedule, effort=1.0)})
        expected = forecast(task, whole, game, progress)
    sought = next((name for name, value in parameters.items() if value is None), "epsilon")
    lines = []
    for each in ACCOUNTANTS:
        if chosen is not None and each.name == chosen.accountant:
            priced = {sought: chosen.schedule.parameters()[sought], "remark": each.assumptions}
        else:
            priced = _price(each, sought, parameters, rows, whole)
        lines.append({"accountant": each.name, **priced})
    found = {"rows": rows, "delta": used, "epsilon": epsilon, **parameters}
    found |= {"neighbours": neighbours, "solved_for": sought, "accountants": lines}
    found |= {"expected": {name: asdict(each) for name, each in expected.errors.items()}}
    terminal.emit({**found, "not_expected": expected.reasons, "warnings": list(warnings)})
    if as_json:
        return
    for warning in warnings:
        terminal.say(f"note: {warning}", style="yellow")
    shown = ", ".join(f"{k} {v:g}" for k, v in parameters.items() if v is not None)
    spent = "" if epsilon is None else f", epsilon {epsilon:g}"
    title = f"DualQuery: n {rows:,}, delta {used:.3g}, {neighbours}; {shown}{spent}"
    cells = [(each["accountant"], _figure(each[sought], sought), each["remark"]) for each in lines]
    terminal.table(("accountant", sought, "rests on"), cells, title=title, caption=who)
    errors = [
        *((name, each.max_error.text(), each.mean_error.text(), each.basis)
          for name, each in expected.errors.items()),
        *((name, "-", "-", reason) for name, reason in expected.reasons.items()),
    ]  # fmt: skip
    if errors:
        title = f"error to expect of {len(task.workload):,} queries"
        terminal.table(("mechanism", "max error", "mean error", "rests on"), errors, title=title)


def _figure(value: float | None, sought: str) -> str:
    """Return a parameter as one may give it: epsilon rounded up, eta down."""
    if not isinstance(value, float):
        return "-" if value is None else f"{value:,}"
    near = round_up(value, 4) if sought == "epsilon" else f"{value:.4g}"
    return near if sought == "epsilon" or float(near) <= value else f"{0.9995 * value:.4g}"


def _price(
    accountant: Accountant, sought: str, parameters: dict[str, Any], rows: int, whole: Budget
) -> dict[str, Any]:
    """Return what one accountant allows, or why nothing; of 1 in all where epsilon is sought."""
    rounds, samples, eta = parameters["rounds"], parameters["samples"], parameters["eta"]
    if sought == "epsilon":
        schedule = GameSchedule(rounds, samples, eta, rows, whole.neighbours)
        reason = accountant.supports(schedule, whole.delta)
        cost = math.inf if reason else accountant.epsilon(schedule, whole.delta) / whole.epsilon
        if not math.isfinite(cost):
            return {sought: None, "remark": reason or "more than a number can hold"}
        return {sought: cost, "remark": accountant.assumptions}
    try:
        found = calibrate_game(
            whole.epsilon, whole.delta, rows, rounds=rounds, samples=samples, step=eta,
            accountant=accountant.name, neighbours=whole.neighbours,
        )  # fmt: skip
    except BadInputError as error:
        return {sought: None, "remark": str(error)}
    return {sought: found.value, "remark": accountant.assumptions}
