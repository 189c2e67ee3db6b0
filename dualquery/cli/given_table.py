"""The table that a command reads, where its name alone does not say how it is written."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

Csv: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--csv",
        help="How a CSV file is written, such as delimiter=;,encoding=latin-1,decimal=, in "
        "quotation marks.",
        rich_help_panel="Data",
    ),
]


def table_of(text: str, csv: str | None) -> Any:
    """Return what `dualquery.release` takes as a table: the text, or a CSV file of a dialect."""
    if csv is None:
        return text
    from dualquery.arguments import Table

    return Table(text, csv=csv).named
