"""The data sets of the experiments on conjunctions, by name: how each is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.harness.recipe import Choices

WITHOUT = "Without it run adult (in the package), netflix-like (generated), and --quick."


@dataclass(frozen=True)
class DataSet:
    """A public table."""

    name: str  # in results and legends
    source: str | None = None
    """As for `dualquery.release`; None for a file that the user gives with ``--data``."""
    schema: str | None = None  # built-in schema; None for the source's own
    columns: str | None = None
    """Columns to keep; None for all. Given for item lists, whose items it declares."""

    def at_hand(self, choices: Choices) -> bool:
        """Return whether it can be read."""
        return self.source is not None or self.name in choices.data

    def parameters(self, choices: Choices) -> dict[str, Any]:
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
    DataSet("adult", "adult", "adult-paper"),
    DataSet("kdd99", None, "kdd99"),
    DataSet("netflix"),
    DataSet("netflix-like", "netflix-like"),
    DataSet("npm-deps", columns="0-17769"),
    DataSet("plants"),
    DataSet("pumsb_star"),
    DataSet("mushroom", columns="1-119"),
    DataSet("groceries", columns="0-168"),
    DataSet("msweb", columns="0-284"),
    DataSet("facebook-pages", columns="0-4713"),
)

DATA_SETS: Mapping[str, DataSet] = {table.name: table for table in _ALL}
"""Name -> data set. ``netflix-like`` is a model of the Netflix Prize data's shape, not the data."""


def chosen(choices: Choices, names: Sequence[str]) -> list[DataSet]:
    """Return the data sets that the user names with ``--table``, or those to take by default.

    By default the quick form takes Adult, the full form those of ``names`` that can be read.

    Raises
    ------
    BadInputError
        If the user names one that does not exist.
    """
    if wanted := choices.named("table", DATA_SETS):
        return [DATA_SETS[name] for name in wanted]
    if choices.quick:
        return [DATA_SETS["adult"]]
    return [DATA_SETS[name] for name in names if DATA_SETS[name].at_hand(choices)]
