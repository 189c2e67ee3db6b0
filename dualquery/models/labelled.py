"""A mixture of products whose target column is drawn last, by a logistic model of the others.

A mixture that fits many marginals learns single groups of rows by heart: it says little of the
target of other rows. The logistic model gives a weight to each cell of each pair of columns, so it
generalises, and what a classifier learns from its records does, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes, column_values, rows_of_values
from dualquery.data.domain import Domain
from dualquery.models.labelled_kernels import round_targets
from dualquery.models.mixture import ProductMixture
from dualquery.queries.literals import LiteralRows

Int64 = NDArray[np.int64]

_AT_ONCE = 1 << 16
"""Records whose cells are listed at once."""


@dataclass(frozen=True, eq=False)
class LabelledMixture:
    """A mixture, and a logistic model of one column given the others.

    Both are fitted to the same noisy numbers: `answers` are the mixture's, `sample` follows the
    logistic model, and so does `chances_of_target`.

    ``target``, int64 ``()``, is the column that is drawn last; ``pairs``, int64 ``(p, 2)``, are
    other columns, each pair increasing, both the same for one column; ``coefficients``, float32
    ``(cells, values of the target)``, say for the cells of each pair in turn, in C order, what they
    add to the logarithm of a value's chance.
    """

    domain: Domain
    weights: NDArray[np.float64]
    chances: NDArray[np.float32]
    target: Int64
    pairs: Int64
    coefficients: NDArray[np.float32]

    kind: ClassVar[str] = "labelled mixture"

    def __post_init__(self) -> None:
        _ = ProductMixture(self.domain, self.weights, self.chances)  # checks both
        sizes, pairs, columns = axis_sizes(self.domain), self.pairs, self.domain.columns
        if (
            self.target.shape != ()
            or not 0 <= int(self.target) < columns
            or pairs.ndim != 2
            or pairs.shape[1] != 2
            or (pairs.size and not 0 <= pairs.min() <= pairs.max() < columns)
            or (pairs == self.target).any()
        ):
            raise ValueError("the target is one column, and pairs are of others")
        cells = int(sizes[pairs].prod(axis=1).sum())
        if self.coefficients.shape != (cells, sizes[int(self.target)]):
            raise ValueError(
                f"coefficients of {cells} cells expected, not of {self.coefficients.shape}"
            )
        if not np.isfinite(self.coefficients).all():
            raise ValueError("coefficients are finite")

    def answers(self, queries: LiteralRows) -> NDArray[np.float64]:
        """Return the chance of every conjunction under the mixture: float64, shape ``(m,)``."""
        return ProductMixture(self.domain, self.weights, self.chances).answers(queries)

    def chances_of_target(self, values: Int64) -> NDArray[np.float64]:
        """Return the chance of each value of the target: float64, ``(r, values)``.

        ``values`` are the columns' values of records, int64 ``(r, columns)``; the target's own do
        not matter.
        """
        logits = np.zeros((len(values), self.coefficients.shape[1]))
        for cells in cells_of_pairs(values, self.pairs, self.domain).T:
            logits += self.coefficients[cells]
        logits -= logits.max(axis=1, keepdims=True)
        parts = np.exp(logits)
        chances: NDArray[np.float64] = parts / parts.sum(axis=1, keepdims=True)
        return chances

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return the mixture rounded to records, and their target: uint8 ``(count, bits)``.

        The target is rounded, too (`round_targets`): in every cell of every pair of columns each of
        its values is about as often as the chances of the records there add up to. Records take
        their turn by what the target is expected to be, so the same holds of records whose chances
        are alike.
        """
        mixture = ProductMixture(self.domain, self.weights, self.chances)
        records = mixture.sample(count, generator)
        values, owed = column_values(records, self.domain), np.zeros(self.coefficients.shape)
        for first in range(0, count, _AT_ONCE):
            some = values[first : first + _AT_ONCE]
            targets = np.empty(len(some), np.int64)
            chances = self.chances_of_target(some)
            order = np.argsort(chances @ np.arange(chances.shape[1]), kind="stable")
            cells = cells_of_pairs(some[order], self.pairs, self.domain)
            round_targets(np.ascontiguousarray(cells), chances[order], owed, targets)
            some[order, int(self.target)] = targets
        return rows_of_values(values, self.domain)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the mixture's arrays and the logistic model's."""
        return {
            "weights": self.weights,
            "chances": self.chances,
            "target": self.target,
            "pairs": self.pairs,
            "coefficients": self.coefficients,
        }


def cells_of_pairs(values: Int64, pairs: Int64, domain: Domain) -> Int64:
    """Return the number of each record's cell of each pair: int64, shape ``(r, p)``."""
    sizes = axis_sizes(domain)
    starts = np.concatenate(([0], np.cumsum(sizes[pairs].prod(axis=1))))[:-1]
    cells: Int64 = starts + values[:, pairs[:, 0]] * sizes[pairs[:, 1]] + values[:, pairs[:, 1]]
    return cells
