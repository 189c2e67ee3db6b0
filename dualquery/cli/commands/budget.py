"""``dualquery budget``: budget files, and ``plan``, which needs none."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.commands.budget_plan import plan
from dualquery.cli.shared_options import Json, with_default, with_options
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import require_new, whole_file

if TYPE_CHECKING:
    from dualquery.budgets.account import Account

File = Annotated[Path, typer.Argument(help="The budget file.", metavar="FILE")]

FORMAT_VERSION = 1  # of what ``export`` writes

_PlanByDefault = with_default("plan", lambda first: not first or first.startswith("-"))
"""Options without a command mean ``plan``: ``dualquery budget --epsilon 1 ...`` as of old."""

budget = typer.Typer(cls=_PlanByDefault, rich_markup_mode="rich")


@budget.callback()
def about() -> None:
    """Make and read budget files; plan what a budget buys.

    A budget file holds all releases of one data set within one epsilon and delta.
    "plan" reads no budget file and no data; its options may also be given without its
    name.

    Example:

      dualquery budget init survey.budget --epsilon 2 --delta 1e-6
    """


budget.command()(plan)


@budget.command()
@with_options("neighbours")
def init(
    file: File,
    *,
    epsilon: Annotated[float, typer.Option(help="Largest privacy loss of all releases together.")],
    delta: Annotated[float, typer.Option(help="Delta of all releases together.")],
    composition: Annotated[
        str,
        typer.Option(
            help="How costs add up: sum (epsilons and deltas), zcdp (rhos, converted once at "
            "delta), or either (the better of both, each with half of delta)."
        ),
    ] = "sum",
    unit: Annotated[
        str,
        typer.Option(
            help="What every release must protect: a row, or all rows of one unit, by the name of "
            "its column."
        ),
    ] = "row",
    as_json: Json = False,
    neighbours: str,
) -> None:
    """Make the budget file of a data set. What it is made with cannot be changed later.

    Every release with --budget FILE is charged to it, before anything is drawn. A
    release that would exceed it is refused.

    Examples:

      dualquery budget init survey.budget --epsilon 2 --delta 1e-6

      dualquery release survey.csv --schema survey.json --epsilon 0.5 --budget survey.budget
    """
    from dualquery.budgets.budget_file import BudgetFile

    terms = {"composition": composition, "neighbours": neighbours, "unit": unit}
    account = BudgetFile.create(file, epsilon=epsilon, delta=delta, **terms).read()
    terminal = Terminal(machine=as_json)
    terminal.emit(_summary(account))
    terminal.say(f"{file}: {_terms(account)}")


@budget.command()
def show(file: File, as_json: Json = False) -> None:
    """Show what a budget file allows, what was spent of it, and for which releases.

    Example:

      dualquery budget show survey.budget
    """
    from dualquery.budgets.budget_file import BudgetFile

    account = BudgetFile(file).read()
    try:
        problem = BudgetFile(file).problem()
    except BadInputError as error:  # the user's counter cannot be read
        problem = str(error)
    terminal = Terminal(machine=as_json)
    summary = _summary(account)
    terminal.emit({**summary, "problem": problem})
    epsilon, delta = account.spent
    terminal.say(f"{_terms(account)}\nspent: epsilon {epsilon:.15g}, delta {delta:.15g}")
    terminal.say(f"left: {summary['left']}")
    costs = ("epsilon", "delta", "rho")
    rows = [
        (each["release"][:8], each["begun"][:10], each["mechanism"],  # the day
         *(f"{each[cost]:.3g}" for cost in costs), each["stage"])
        for each in summary["releases"]
    ]  # fmt: skip
    if rows:
        terminal.table(("release", "begun", "mechanism", *costs, ""), rows)
    if problem is not None:
        terminal.say(f"warning: {problem}", style="yellow")


@budget.command()
def export(
    file: File,
    out: Annotated[Path | None, typer.Option(help="File to make; default: stdout.")] = None,
) -> None:
    """Write all entries of a budget file as JSON, for an auditor. No hash of a table is in it.

    Example:

      dualquery budget export survey.budget --out survey-budget.json
    """
    from dualquery.budgets.budget_file import BudgetFile

    account = BudgetFile(file).read()
    entries = [
        {"kind": each.kind, "release": each.release, "attempt": each.attempt, **asdict(each.cost),
         "mechanism": each.mechanism, "begun": each.written, "digest": digest}
        for each, digest in zip(account.entries, account.digests[1:], strict=True)
    ]  # fmt: skip
    content = {"format_version": FORMAT_VERSION, **_summary(account), "entries": entries}
    text = json.dumps(content, indent=2, allow_nan=False)
    if out is None:
        typer.echo(text)
        return
    require_new(out)
    with whole_file(out) as part:
        part.write_text(f"{text}\n", encoding="utf-8")


def _terms(account: Account) -> str:
    chosen, terms = account.terms.filter, account.terms
    limits = f"epsilon {chosen.epsilon:.15g}, delta {chosen.delta:.15g}"
    protected = f"neighbours {terms.neighbours.value}, unit {terms.unit}"
    return f"all releases together: {limits}, composition {chosen.composition.value}; {protected}"


def _summary(account: Account) -> dict[str, Any]:
    """Return the terms, what was spent and the releases, JSON-able."""
    terms, spent = account.terms, account.spent
    return {
        "epsilon": terms.filter.epsilon,
        "delta": terms.filter.delta,
        "composition": terms.filter.composition.value,
        "neighbours": terms.neighbours.value,
        "unit": terms.unit,
        "id": terms.id,
        "created": terms.created,
        "spent": {"epsilon": spent[0], "delta": spent[1]},
        "left": terms.filter.left(account.costs),
        "releases": [
            {"release": each.id, "begun": each.written, "mechanism": each.mechanism,
             **asdict(each.cost), "attempts": each.attempt + 1,
             "stage": "finished" if each.finished else "begun"}
            for each in account.releases.values()
        ],
    }  # fmt: skip
