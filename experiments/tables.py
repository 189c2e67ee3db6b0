"""The tables of the experiments on conjunctions, by name: how each is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dualquery.runtime.errors import BadInputError, did_you_mean
from experiments.harness.recipe import Choices

WITHOUT = "Without it run adult (in the package), netflix-like (made up), and --quick."


@dataclass(frozen=True)
class PublicTable:
    """A table that anybody can have.

    Parameters
    ----------
    name
        In results and legends.
    source
        As for `dualquery.release`; None for a file that the user gives with ``--data``.
    schema
        Built-in schema; None for the source's own.
    columns
        Columns to keep; None for all. Given for item lists, whose items it declares.
    """

    name: str
    source: str | None = None
    schema: str | None = None
    columns: str | None = None

    def at_hand(self, choices: Choices) -> bool:
        """Return whether it can be read."""
        return self.source is not None or self.name in choices.data

    def parameters(self, choices: Choices) -> Mapping[str, Any]:
        """Return the parameters of a run that say what `measuring.question` reads.

        Raises
        ------
        BadInputError
            If its file was not given.
        """
        return {
            "data": self.name,
            "source": self.source or choices.data.source(self.name, WITHOUT),
            "schema": self.schema,
            "columns": self.columns,
        }


_ALL = (
    PublicTable("adult", "adult", "adult-paper"),
    PublicTable("kdd99", None, "kdd99"),
    PublicTable("netflix"),
    PublicTable("netflix-like", "netflix-like"),
    PublicTable("npm-deps", columns="0-17769"),
    PublicTable("plants"),
    PublicTable("pumsb_star"),
    PublicTable("mushroom", columns="1-119"),
    PublicTable("groceries", columns="0-168"),
    PublicTable("msweb", columns="0-284"),
    PublicTable("facebook-pages", columns="0-4713"),
)

TABLES: Mapping[str, PublicTable] = {table.name: table for table in _ALL}
"""Name -> table. ``netflix-like`` is a model of the Netflix Prize data's shape, not the data."""


def table_named(name: str) -> PublicTable:
    """Return a table.

    Raises
    ------
    BadInputError
        If there is none of that name.
    """
    if name not in TABLES:
        raise BadInputError(
            f"--table {name}: unknown{did_you_mean(name, TABLES)} (known: {', '.join(TABLES)})"
        )
    return TABLES[name]
