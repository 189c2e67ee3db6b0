"""What the answers of a release are shares of: its rows, or their weight, and how well it is known.

A *copy* is what the private room counts: a row, or with weights the `of_copy`-th of a weight
(`dualquery.data.weights`). Everybody else asks a `Total` for numbers of rows or for weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dualquery.estimates.bounded import gaussian_half_width, laplace_half_width
from dualquery.estimates.measurements import NoiseKind
from dualquery.room.noise.laplace import laplace_deviation

if TYPE_CHECKING:
    from dualquery.room.row_count import RowCount

Known = Literal["exact", "stated", "measured"]


def tidy(number: float) -> int | float:
    """Return a number of rows or a weight as JSON has it: whole if it is, but for rounding."""
    return round(number) if math.isclose(number, round(number), rel_tol=1e-12) else number


@dataclass(frozen=True)
class Total:
    """A number of rows, or a total weight."""

    what: Literal["rows", "weight"]
    known: Known  # ``stated``: never compared with the rows. ``measured``: with noise.
    copies: int  # the whole number of copies that measured numbers were divided by; public
    estimate: float
    """The likely number of copies: with its noise if it was measured, else ``copies``."""
    scale: float = 0.0  # of the noise, in copies; 0 where there is none
    noise: NoiseKind = "gaussian"
    of_copy: float = 1.0  # the weight of a copy; 1 for rows
    copies_of_row: int = 1  # of a row of the largest weight

    @staticmethod
    def of(
        count: RowCount,
        estimate: float | None = None,
        scale: float = 0.0,
        noise: NoiseKind = "gaussian",
    ) -> Total:
        """Return the total of a release with a public count, or with the number it measured."""
        known: Known = "measured"
        if estimate is None:
            estimate = float(count.n)
            if count.epsilon > 0:
                scale, noise = count.noise_scale, "discrete laplace"
            else:
                known = "exact" if count.is_exact else "stated"
        each = count.neighbours
        what: Literal["rows", "weight"] = "rows" if each.weight is None else "weight"
        return Total(what, known, count.n, estimate, scale, noise, each.of_copy, each.copies)

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Total:
        """Return the total with these fields; `ValueError` or `TypeError` of others."""
        found = Total(**stored)
        if (
            found.what not in ("rows", "weight")
            or found.known not in ("exact", "stated", "measured")
            or found.noise not in ("gaussian", "discrete laplace")
            or not isinstance(found.copies, int)
            or not all(math.isfinite(x) for x in (found.estimate, found.scale, found.of_copy))
            or not (found.copies > 0 and found.scale >= 0 and found.of_copy > 0)
            or (found.known == "measured") != (found.scale > 0)
        ):
            raise ValueError("the total is not as a release writes it")
        return found

    @property
    def amount(self) -> float:
        """The number of rows, or the weight: what a share is multiplied by."""
        return max(self.estimate, 0.0) * self.of_copy

    @property
    def unit(self) -> float:
        """What measured numbers are multiplied by: of rows, or of weight."""
        return self.copies * self.of_copy

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise, as a part of `unit`."""
        laplace = self.noise != "gaussian" and self.scale > 0.0
        return (laplace_deviation(self.scale) if laplace else self.scale) / self.copies

    def off(self, miss: float) -> float:
        """Return a distance that the noise exceeds with chance ``miss`` at most, in copies."""
        if self.scale == 0.0:
            return 0.0
        half = gaussian_half_width if self.noise == "gaussian" else laplace_half_width
        return half(self.scale, miss)

    def limits(self, miss: float) -> tuple[float, float]:
        """Return limits of the true number of rows, or weight, that fail with that chance."""
        off = self.off(miss)
        return max(self.estimate - off, 0.0) * self.of_copy, (self.estimate + off) * self.of_copy

    @property
    def name(self) -> str:
        """Of what it is a number, for a person."""
        return "rows" if self.what == "rows" else "units of weight"

    @property
    def rows_at_least(self) -> int:
        """A number of rows of the largest weight: there are no fewer, but for noise."""
        return max(1, self.copies // self.copies_of_row)

    @property
    def text(self) -> str:
        """The number for a person: rows are whole, weights have what digits they need."""
        return f"{self.amount:,.0f}" if self.what == "rows" else f"{self.amount:,.10g}"
