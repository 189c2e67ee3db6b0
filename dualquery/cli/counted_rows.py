"""Options that say whose rows belong together and how much each counts, of several commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from dualquery.data.units import Unit, Weight

DATA = "Data"
"""Panel of the help."""

UnitColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Column that tells whose row it is: all rows of one are protected together.",
        rich_help_panel=DATA,
    ),
]
MaxRowsPerUnit: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="With --unit: how many rows of one count, the first in the table.",
        rich_help_panel=DATA,
    ),
]
WeightColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Column that tells how much each row counts: weighted answers.", rich_help_panel=DATA
    ),
]
MaxWeight: TypeAlias = Annotated[
    float | None, typer.Option(help="With --weight: the largest that counts.", rich_help_panel=DATA)
]


def unit_of(given: Mapping[str, Any]) -> Unit | None:
    """Return what ``--unit`` and ``--max-rows-per-unit`` say."""
    from dualquery.data.units import Unit

    return Unit.of_options(given["unit"], given["max_rows_per_unit"])


def weight_of(given: Mapping[str, Any]) -> Weight | None:
    """Return what ``--weight`` and ``--max-weight`` say."""
    from dualquery.data.units import Weight

    return Weight.of_options(given["weight"], given["max_weight"])
