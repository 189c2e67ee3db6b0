"""``dualquery budget``: what parameters cost, or what a budget allows, by every accountant."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.terminal import Terminal
from dualquery.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.expected import ExpectedError
    from dualquery.privacy.accountants import Accountant
    from dualquery.privacy.events import Neighbours


def budget(
    rows: Annotated[int, typer.Option("--rows", "-n", help="Number of rows of the table.")],
    rounds: Annotated[int | None, typer.Option(help="Rounds of the game (T).")] = None,
    samples: Annotated[int | None, typer.Option(help="Queries drawn a round.")] = None,
    eta: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Budget; with it, leave one of T, s, eta out.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Default 1/n^2.")] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="With --epsilon: show the error to expect on this schema, too."),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            help="Signed 3-way conjunctions that the error is expected for; default 100000 or as "
            "many as differ.",
            min=1,
        ),
    ] = None,
    neighbours: Annotated[
        str, typer.Option(help="replace-one, or add-remove with --rows to go by.")
    ] = "replace-one",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show every accountant side by side for DualQuery's parameters. Looks at no data.

    With rounds, samples and eta: the epsilon of each accountant. With --epsilon and two of the
    three: the third that each accountant allows. With --schema too: the error to expect.

    Examples:

      dualquery budget -n 30162 --rounds 40 --samples 1000 --eta 0.8 --delta 0.001

      dualquery budget -n 30162 --rounds 40 --samples 1000 --epsilon 1 --delta 0.001

      dualquery budget -n 30162 --rounds 360 --samples 40 --epsilon 1 --schema adult-paper
    """
    from rich.table import Table

    from dualquery.privacy.accountants import ACCOUNTANTS
    from dualquery.privacy.budget import check_budget, default_delta
    from dualquery.privacy.events import Neighbours

    relation = Neighbours.parse(neighbours)
    used = default_delta(rows) if delta is None else delta
    warnings = check_budget(1.0 if epsilon is None else epsilon, used, rows)
    parameters = {"rounds": rounds, "samples": samples, "eta": eta}
    missing = [name for name, value in parameters.items() if value is None]
    if len(missing) != (0 if epsilon is None else 1):
        raise BadInputError(
            "give --rounds, --samples and --eta, or --epsilon and two of them; "
            f"found {'no' if epsilon is None else 'an'} --epsilon and {3 - len(missing)} of them"
        )
    sought = missing[0] if missing else "epsilon"
    lines = [
        {"accountant": each.name, **_price(each, sought, parameters, epsilon, used, rows, relation)}
        for each in ACCOUNTANTS
    ]
    expected = {}
    if schema is not None:
        if epsilon is None:
            raise BadInputError("--schema shows the error to expect of a budget: give --epsilon")
        options = {name: value for name, value in parameters.items() if value is not None}
        expected = _expected(schema, queries, rows, epsilon, used, neighbours, options)
    terminal = Terminal(machine=as_json)
    terminal.emit(
        {
            "rows": rows,
            "delta": used,
            "epsilon": epsilon,
            **parameters,
            "neighbours": neighbours,
            "solved_for": sought,
            "accountants": lines,
            "expected": {name: asdict(each) for name, each in expected.items()},
            "warnings": list(warnings),
        }
    )
    if not as_json:
        for warning in warnings:
            terminal.console.print(f"note: {warning}", style="yellow")
        shown = ", ".join(f"{k} {v:g}" for k, v in parameters.items() if v is not None)
        title = f"n {rows:,}, delta {used:.3g}, {neighbours}; {shown}"
        if epsilon is not None:
            title += f", epsilon {epsilon:g}"
        table = Table("accountant", sought, "rests on", title=title)
        for line in lines:
            value = line[sought]
            text = (
                "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
            )
            table.add_row(line["accountant"], text, line["remark"])
        terminal.console.print(table)
        for name, each in expected.items():
            terminal.console.print(f"{name}: {each.text()}", markup=False)


def _expected(
    schema: str,
    queries: int | None,
    rows: int,
    epsilon: float,
    delta: float,
    neighbours: str,
    options: dict[str, Any],
) -> dict[str, ExpectedError]:
    """Return the error to expect of DualQuery and of Gaussian noise, from public facts."""
    from dualquery.data.schema_files import load_schema
    from dualquery.expected import expected_error
    from dualquery.queries.request import WorkloadRequest

    workload = WorkloadRequest(queries=queries).build(load_schema(schema), rows)
    found = {}
    for mechanism, own in (("dualquery", options), ("gaussian", {})):
        if mechanism == "dualquery" or delta > 0:
            each = expected_error(
                workload,
                rows,
                mechanism=mechanism,
                options=own,
                epsilon=epsilon,
                delta=delta,
                neighbours=neighbours,
            )
            if each is not None:
                found[mechanism] = each
    return found


def _price(
    accountant: Accountant,
    sought: str,
    parameters: dict[str, Any],
    epsilon: float | None,
    delta: float,
    rows: int,
    neighbours: Neighbours,
) -> dict[str, Any]:
    """Find what is sought by one accountant, or why it cannot say."""
    from dualquery.privacy.calibrate import calibrate_rounds, calibrate_samples, calibrate_step
    from dualquery.privacy.events import GameSchedule

    how = (accountant.name, neighbours)
    rounds, samples, eta = parameters["rounds"], parameters["samples"], parameters["eta"]
    if epsilon is None:
        schedule = GameSchedule(rounds, samples, eta, rows, neighbours)
        reason = accountant.supports(schedule, delta)
        if reason is not None:
            return {sought: None, "remark": reason}
        cost = accountant.epsilon(schedule, delta)
        if not math.isfinite(cost):
            return {sought: None, "remark": "more than a number can hold"}
        return {sought: cost, "remark": accountant.assumptions}
    try:
        if sought == "eta":
            found = calibrate_step(epsilon, delta, rows, rounds, samples, *how)
            value: float = found.schedule.step
        elif sought == "samples":
            found = calibrate_samples(epsilon, delta, rows, rounds, eta, *how)
            value = found.schedule.samples
        else:
            found = calibrate_rounds(epsilon, delta, rows, samples, eta, *how)
            value = found.schedule.rounds
    except BadInputError as error:
        return {sought: None, "remark": str(error)}
    return {sought: value, "remark": accountant.assumptions}
