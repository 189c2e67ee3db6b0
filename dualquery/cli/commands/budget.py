"""``dualquery budget``: budget files, and ``plan``, which needs none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.commands.budget_plan import plan
from dualquery.cli.options import Json, NeighboursName, with_default
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.budgets.account import Account

File = Annotated[Path, typer.Argument(help="The budget file.", metavar="FILE")]

FORMAT_VERSION = 1
"""Of what ``export`` writes."""


_PlanByDefault = with_default("plan", lambda first: not first or first.startswith("-"))
"""Options without a command mean ``plan``: ``dualquery budget --epsilon 1 ...`` as of old."""

budget = typer.Typer(cls=_PlanByDefault, rich_markup_mode="rich")


@budget.callback()
def about() -> None:
    """Make and read budget files; plan what a budget buys.

    A budget file holds all releases of one data set within one epsilon and delta.
    "plan" looks at no file and no data; its options may also be given without its
    name.

    Examples:

      dualquery budget init survey.budget --epsilon 2 --delta 1e-6

      dualquery budget show survey.budget

      dualquery budget plan -n 30162 --epsilon 1 --schema adult
    """


budget.command()(plan)


@budget.command()
def init(
    file: File,
    epsilon: Annotated[float, typer.Option(help="Largest privacy loss of all releases together.")],
    delta: Annotated[float, typer.Option(help="Delta of all releases together.")],
    composition: Annotated[
        str,
        typer.Option(
            help="How costs add up: sum (epsilons and deltas), zcdp (rhos, converted once at "
            "delta), or either (the better of both, each with half of delta)."
        ),
    ] = "sum",
    neighbours: NeighboursName = "replace-one",
    unit: Annotated[
        str,
        typer.Option(
            help="What every release must protect: a row, or all rows of one unit, by the name of "
            "its column."
        ),
    ] = "row",
    as_json: Json = False,
) -> None:
    """Make the budget file of a data set. What it is made with cannot be changed later.

    Every release with --budget FILE is charged to it, before anything is drawn. A
    release that would exceed it is refused.

    Examples:

      dualquery budget init survey.budget --epsilon 2 --delta 1e-6

      dualquery release survey.csv --schema survey.json --epsilon 0.5 --budget survey.budget

      dualquery budget show survey.budget
    """
    from dualquery.budgets.budget_file import BudgetFile

    made = BudgetFile.create(
        file, epsilon=epsilon, delta=delta, composition=composition, neighbours=neighbours,
        unit=unit,
    )  # fmt: skip
    terminal = Terminal(machine=as_json)
    account = made.read()
    terminal.emit(_summary(account))
    terminal.console.print(f"{file}: {_terms(account)}", markup=False)


@budget.command()
def show(file: File, as_json: Json = False) -> None:
    """Show what a budget file allows, what was spent of it, and for which releases.

    Example:

      dualquery budget show survey.budget
    """
    from dualquery.budgets.budget_file import BudgetFile

    found = BudgetFile(file)
    account = found.read()
    problem = _problem(found)
    terminal = Terminal(machine=as_json)
    terminal.emit({**_summary(account), "problem": problem})
    spent = account.spent
    console = terminal.console
    console.print(_terms(account), markup=False)
    console.print(f"spent: epsilon {spent[0]:.6g}, delta {spent[1]:.6g}", markup=False)
    console.print(f"left: {account.terms.filter.left(account.costs)}", markup=False)
    rows = [
        (
            each.id[:8],
            each.written[:10],  # the day
            each.mechanism,
            *(f"{cost:.3g}" for cost in (each.cost.epsilon, each.cost.delta, each.cost.rho)),
            _stage(each.finished),
        )
        for each in account.releases.values()
    ]
    if rows:
        heads = ("release", "begun", "mechanism", "epsilon", "delta", "rho", "")
        terminal.table(heads, rows)
    if problem is not None:
        console.print(f"warning: {problem}", style="yellow", markup=False)


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
    content = {"format_version": FORMAT_VERSION, **_summary(account), "entries": _entries(account)}
    text = json.dumps(content, indent=2, allow_nan=False)
    if out is None:
        typer.echo(text)
        return
    try:
        with out.open("x", encoding="utf-8") as stream:
            stream.write(f"{text}\n")
    except OSError as error:
        raise BadInputError(f"--out {out}: {error.strerror}; name a new file") from None


def _terms(account: Account) -> str:
    chosen, terms = account.terms.filter, account.terms
    return (
        f"all releases together: epsilon {chosen.epsilon:g}, delta {chosen.delta:g}, composition "
        f"{chosen.composition.value}; neighbours {terms.neighbours.value}, unit {terms.unit}"
    )


def _problem(file: Any) -> str | None:
    """Return why this user may not charge the file; also if the user's counter cannot be read."""
    try:
        found: str | None = file.problem()
    except BadInputError as error:
        return str(error)
    return found


def _stage(finished: bool) -> str:
    return "finished" if finished else "begun"


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
            {
                "release": each.id,
                "begun": each.written,
                "mechanism": each.mechanism,
                "epsilon": each.cost.epsilon,
                "delta": each.cost.delta,
                "rho": each.cost.rho,
                "attempts": each.attempt + 1,
                "stage": _stage(each.finished),
            }
            for each in account.releases.values()
        ],
    }


def _entries(account: Account) -> list[dict[str, Any]]:
    """Return every entry with its digest, and without the keyed hash of a table."""
    return [
        {
            "kind": entry.kind,
            "release": entry.release,
            "attempt": entry.attempt,
            "rho": entry.cost.rho,
            "epsilon": entry.cost.epsilon,
            "delta": entry.cost.delta,
            "mechanism": entry.mechanism,
            "begun": entry.written,
            "digest": digest,
        }
        for entry, digest in zip(account.entries, account.digests[1:], strict=True)
    ]
