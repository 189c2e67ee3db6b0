"""``dualquery answer``: answer questions from a release."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from dualquery.cli.options import Json, ReleaseFolder
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_line

_MOST_DECIMALS = 6

_ALL_DIGITS = Context(prec=400)
"""More than any floating-point number has before its point."""


def answer(
    release: ReleaseFolder,
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION", help="Such as 'age=18-64 & sex!=Female' or 'mean(age)'."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Questions, one a line; or .csv or .parquet, in a column 'query'."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File of the answers to make: .csv or .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer questions from a release; costs no privacy.

    Without questions, answers those of the list that the release was made for.
    A query of the release's workload gets its released answer; any other
    question is answered from the fitted model, or else from the synthetic
    records. Where noisy measurements tell how far off an answer may be, an
    interval says so, for each question by itself.

      share      age=30-35 & sex!=Female      age>=18      edu in (9, 10)
                 not (a or b) & age between 18 and 64
      count      count(age>=18)               number of rows
      number     mean(age)  sum(age)  median(age)  quantile(age, 0.25)
      given      income=>50K given sex=Female & edu=Bachelors

    What binds most comes first: not, & (and), or, given. A value stands for its
    whole bucket or category; a range that cuts a bucket takes the numbers in it
    to lie as the schema says. The output shows what was answered where it is not
    what you typed. A name or value that holds signs or words of the language
    stands in double quotation marks.

    Example:

      dualquery answer my-release "age=18-64 & sex=Female" "mean(age) given income=>50K"
    """
    from dualquery.queries.generate.files import read_texts
    from dualquery.releases.answering import answer_queries
    from dualquery.releases.folder import load_release
    from dualquery.releases.table_files import check_target

    if file is not None and questions:
        raise BadInputError("ask in words, or name a file of questions with --file: one of the two")
    if out is not None:
        check_target(out)
    terminal = Terminal(machine=as_json)
    made = load_release(release)
    if file is not None:
        texts, place = read_texts(file)
        found = answer_queries(made, texts.to_list(), place)
    else:
        asked = questions or made.workload.description.get("questions", ())
        if not asked:
            raise BadInputError(
                f"{release} was made without questions of its own; ask in words, or name a file "
                "with --file"
            )
        found = answer_queries(made, asked)
    if out is not None:
        found.save(out)
    terminal.emit({"answers": found})
    if terminal.machine or out is not None:
        return
    for line in found:
        typer.echo(_shown(line))
    for known, start in ((True, "intervals"), (False, "no interval")):
        for basis in sorted({line["basis"] for line in found if (line["low"] is None) != known}):
            typer.echo(f"{start}: {terminal_line(basis)}", err=True)


def _shown(line: dict[str, Any]) -> str:
    """Return an answer as a line for people."""
    asked, answered = terminal_line(line["query"]), terminal_line(line["answered"])
    shown = asked if asked == answered else f"{asked}\tanswered: {answered}"
    value, low, high = line["answer"], line["low"], line["high"]
    digits = _decimals([each for each in (value, low, high) if each is not None])
    if low is not None:
        digits = min(digits, _supported(low, high))
        # Outwards: an interval that is shown shorter than it is would hold less often.
        ends = f"{_number(low, digits, ROUND_FLOOR)} to {_number(high, digits, ROUND_CEILING)}"
        shown += f"\t{line['level']:.0%} interval of the truth: {ends}"
    number = "-" if value is None else _number(value, digits, ROUND_HALF_EVEN)
    return f"{number}\t{line['source']}\t{shown}"


def _decimals(values: list[float]) -> int:
    """Return six decimals for shares, and for numbers from 10 on as many as make six digits."""
    before = len(str(int(max(map(abs, values), default=0.0))))
    return max(_MOST_DECIMALS - before, 0) if before > 1 else _MOST_DECIMALS


def _supported(low: float, high: float) -> int:
    """Return the decimals that an interval supports: to the second digit of half its width.

    None is taken before the point: rounded to tens, a count could exceed the number of rows.
    """
    half = (high - low) / 2
    return max(1 - math.floor(math.log10(half)), 0) if half > 0 else _MOST_DECIMALS


def _number(value: float, decimals: int, rounding: str) -> str:
    step = Decimal(1).scaleb(-decimals)
    # Adding 0 takes the sign from a negative 0.
    return f"{Decimal(repr(float(value))).quantize(step, rounding, _ALL_DIGITS) + 0:f}"
