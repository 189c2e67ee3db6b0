"""``dualquery answer``: answer questions from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dualquery.cli.numbers import Footnotes, shown
from dualquery.cli.options import Json, ReleaseFolder
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_line


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
    interval says so, for each question by itself. What it rests on, or why
    there is none, stands below the answers; a mark such as [2] behind an answer
    says which of several remarks is its own.

      share      age=30-35 & sex!=Female      age>=18      edu in (9, 10)
                 not (a or b) & age between 18 and 64
      count      count(age>=18), count(*)     how many rows, and of all
      number     mean(age)  sum(age)  median(age)  quantile(age, 0.25)
      given      income=>50K given sex=Female & edu=Bachelors

    What binds most comes first: not, & (and), or, given. A value stands for its
    whole bucket or category, a date for its whole period, in ranges too; a range
    that cuts a bucket takes the numbers in it to lie as the schema says. The
    output shows what was answered where it is not what you typed. A name or
    value that holds signs or words of the language stands in double quotation
    marks.

    Example:

      dualquery answer my-release "age=18-64 & sex=Female" "mean(age) given income=>50K"
    """
    from dualquery.queries.generate.files import read_texts
    from dualquery.releases.answer.answering import answer_queries
    from dualquery.releases.answer.table_files import check_target
    from dualquery.releases.keep.folder import load_release

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
    notes = Footnotes(found)
    for line in found:
        typer.echo(_shown(line, notes.mark(line)))
    for note in notes.lines:
        typer.echo(terminal_line(note), err=True)


def _shown(line: dict[str, Any], mark: str = "") -> str:
    """Return an answer as a line for people: fields between tabs, the mark of its remark last."""
    asked, answered = terminal_line(line["query"]), terminal_line(line["answered"])
    number, ends = shown(line["answer"], line["low"], line["high"])
    fields = [
        number,
        line["source"],
        asked,
        "" if asked == answered else f"answered: {answered}",
        f"{line['level']:.0%} interval of the truth: {ends}" if ends else "",
        mark,
    ]
    return "\t".join(filter(None, fields))
