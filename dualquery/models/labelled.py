"""A mixture of products whose target column is drawn last, by a logistic model of the others.

A mixture that fits many marginals overfits: it says little of the target of other rows. The
logistic model gives a weight to each cell of each pair of columns, and so generalises.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes, column_values, rows_of_values
from dualquery.models.mixture import ProductMixture

Int64 = NDArray[np.int64]

_AT_ONCE = 1 << 22
"""Cells of records that are listed at once."""


@dataclass(frozen=True, eq=False)
class LabelledMixture(ProductMixture):
    """A mixture, and a logistic model of one column given the others.

    Both are fitted to the same noisy numbers: `answers` are the mixture's, `sample` and
    `chances_of_target` follow the logistic model. ``target``, int64 ``()``, is the column that is
    drawn last; ``pairs``, int64 ``(p, 2)``, are other columns, each pair increasing, both the same
    for one column; ``coefficients``, float32 ``(cells, values of the target)``, say for the cells
    of each pair in turn, in C order, what they add to the logarithm of a value's chance.
    """

    target: Int64
    pairs: Int64
    coefficients: NDArray[np.float32]

    kind: ClassVar[str] = "labelled mixture"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = axis_sizes(self.domain)
        pairs = self.pairs
        columns = self.domain.columns
        if (
            self.target.shape != ()
            or not 0 <= int(self.target) < columns
            or pairs.shape != (len(pairs), 2)
            or not np.isin(pairs, np.delete(np.arange(columns), int(self.target))).all()
        ):
            raise ValueError("the target is one column, and pairs are of others")
        expected = (int(sizes[pairs].prod(axis=1).sum()), sizes[int(self.target)])
        if self.coefficients.shape != expected or not np.isfinite(self.coefficients).all():
            raise ValueError(f"finite coefficients of {expected[0]} cells expected")

    def chances_of_target(self, values: Int64) -> NDArray[np.float64]:
        """Return the chance of each value of the target: float64, ``(r, values)``.

        ``values`` are the columns' values of records, int64 ``(r, columns)``, the target's ignored.
        """
        logits = np.zeros((len(values), self.coefficients.shape[1]))
        for cells in cells_of_pairs(values, self.pairs, self.domain).T:
            logits += self.coefficients[cells]
        logits -= logits.max(axis=1, keepdims=True)
        parts = np.exp(logits)
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return the mixture rounded to records, and their target: uint8 ``(count, bits)``.

        The target is rounded, too (`round_targets`): in every cell of every pair of columns each of
        its values is about as often as the chances of the records there add up to. Records come in
        the order of their expected targets, so the same holds of records with similar chances.
        """
        from dualquery.models.rounding import round_targets

        values = column_values(super().sample(count, generator), self.domain)
        owed = np.zeros(self.coefficients.shape)
        step = _AT_ONCE // max(len(self.pairs), self.coefficients.shape[1]) + 1
        for first in range(0, count, step):
            some = values[first : first + step]
            targets = np.empty(len(some), np.int64)
            chances = self.chances_of_target(some)
            order = np.argsort(chances @ np.arange(chances.shape[1]), kind="stable")
            cells = cells_of_pairs(some[order], self.pairs, self.domain)
            round_targets(np.ascontiguousarray(cells), chances[order], owed, targets)
            some[order, int(self.target)] = targets
        return rows_of_values(values, self.domain)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the mixture's arrays and the logistic model's."""
        names = ("target", "pairs", "coefficients")
        return {**super().arrays(), **{name: getattr(self, name) for name in names}}


def cells_of_pairs(values: Int64, pairs: Int64, domain: Domain) -> Int64:
    """Return the number of each record's cell of each pair: int64, shape ``(r, p)``."""
    sizes = axis_sizes(domain)
    starts = np.concatenate(([0], np.cumsum(sizes[pairs].prod(axis=1))))[:-1]
    one, other = pairs.T
    return np.asarray(starts + values[:, one] * sizes[other] + values[:, other])
