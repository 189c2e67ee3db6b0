"""What neighbouring tables differ in: one row, or one unit of several rows.

A *unit* is what the guarantee protects: a row of its own, or all rows that share a value of one
column (a household's persons, a patient's visits). Of a unit of several rows at most a public
number K is kept (`rows.units`), so neighbours are at most K *steps* apart; each step
replaces one row, or adds or removes one:

- **replace-one**: a unit of a rows becomes one of b rows, both at most K. The first min(a, b) of
  them are replaced one after the other, the other ``|a - b|`` added or removed: at most K steps.
  The number of units is public; the number of rows is not.
- **add-remove**: a unit comes or goes with all of its rows: at most K steps; all add one row,
  or all remove one.

A row may have a *weight*: a whole number of copies, 0 to a public M, that depends on the row alone
(`rows.units`). A row is then a unit of at most M equal rows, and a unit of K rows one
of K M rows: K M takes the place of K below.

**Lemma.** Let f map tables to a space with a metric, and let one step move f by at most s. Between
neighbours f moves by at most K s: the triangle inequality. It holds in L1, in L2 and for the
largest move of one score or log-weight, so every bound of `dualquery.room.sensitivity` serves
units, times K. (Sensitivities are multiplied, never epsilons: Gaussian noise of K times the scale
costs what it costs for one row.) Where both kinds of steps occur, s is the larger of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from dualquery.data.given_table import Unit, Weight
from dualquery.runtime.errors import BadInputError

_REPLACE, _ADD = "replace-one", "add-remove"


@dataclass(frozen=True)
class Neighbours:
    """Which pairs of tables the guarantee protects."""

    value: str  # "replace-one" or "add-remove"
    unit: Unit | None = None  # what is replaced, added or removed; None for one row
    weight: Weight | None = None  # how much each row counts; None for once

    REPLACE_ONE: ClassVar[Neighbours]
    """One record is replaced by another; the number of records n is public."""
    ADD_REMOVE: ClassVar[Neighbours]
    """One record is added or removed; n is private (see `dualquery.room.row_count`)."""

    @staticmethod
    def parse(text: str, unit: Unit | None = None, weight: Weight | None = None) -> Neighbours:
        """Return the relation named ``text``; `BadInputError` if it is unknown."""
        for relation in RELATIONS:
            if relation.value == text:
                plain = unit is None and weight is None
                return relation if plain else replace(relation, unit=unit, weight=weight)
        raise BadInputError(
            f"--neighbours: {text!r} is not a neighbouring relation; use 'replace-one' or "
            "'add-remove'."
        )

    @staticmethod
    def of_options(options: Mapping[str, Any]) -> Neighbours:
        """Return the relation of a release, from its options as they are stored."""
        unit, weight = options.get("unit"), options.get("weight")
        try:
            return Neighbours.parse(
                str(options.get("neighbours", _REPLACE)),
                None if unit is None else Unit(**unit),
                None if weight is None else Weight(**weight),
            )
        except TypeError as fault:
            raise BadInputError(f"damaged release: no unit or weight ({fault})") from None

    @property
    def replaces(self) -> bool:
        """Whether a step may replace a row, and the number of rows, or of units, is public."""
        return self.value == _REPLACE

    @property
    def rows_public(self) -> bool:
        """Whether the number of rows is public: one row is replaced by another. Else a step may
        add or remove a row.
        """
        return self.replaces and self.unit is None and self.weight is None

    @property
    def steps(self) -> int:
        """Most rows, or copies of them, that neighbours differ in: K M of the module."""
        rows = 1 if self.unit is None else self.unit.max_rows
        return rows * self.copies

    @property
    def copies(self) -> int:
        """Most copies of a row: M of the module, 1 without weights."""
        return 1 if self.weight is None else self.weight.copies

    @property
    def of_copy(self) -> float:
        """The weight of one copy, 1 without weights."""
        return 1.0 if self.weight is None else self.weight.of_copy

    def furthest(self, replaced: float, added: float) -> float:
        """Return how far a number moves that a step of either kind moves by so much, at most."""
        steps = [replaced] * self.replaces + [added] * (not self.rows_public)
        return self.steps * max(steps)

    def described(self) -> dict[str, Any]:
        """Return the options that `of_options` reads, JSON-able."""
        return {
            "neighbours": self.value,
            "unit": None if self.unit is None else asdict(self.unit),
            "weight": None if self.weight is None else asdict(self.weight),
        }


Neighbours.REPLACE_ONE = Neighbours(_REPLACE)
Neighbours.ADD_REMOVE = Neighbours(_ADD)

RELATIONS = (Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE)
"""Both relations of one row."""
