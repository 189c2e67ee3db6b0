"""Merge the values of a column that no measured query distinguishes.

Columns stay as small as the measurements are simple, however many values they have. Inside a class
values keep their shares of the start, so a factor's answer there is its mean under these.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products, terms_of
from mwem.columns import Columns


class Coarsening:
    """Classes of the values of each column, split further by every measured query.

    Parameters
    ----------
    queries
        The queries, over all values.
    start
        The chances of these at the start.

    Attributes
    ----------
    queries
        The queries over classes.
    log_weights
        For each column that was split, the logarithms of its classes' chances at the start.
    """

    def __init__(self, queries: Products, start: Columns) -> None:
        self._queries = queries
        self._start = start
        self._classes: dict[int, NDArray[np.int64]] = {}
        self.log_weights: dict[int, NDArray[np.float64]] = {}
        self._factors_of = np.argsort(queries.factor_column, kind="stable")
        bounds = np.arange(len(queries.sizes) + 1)
        self._first = np.searchsorted(queries.factor_column[self._factors_of], bounds)
        values = [queries.values(factor) for factor in range(len(queries.factor_column))]
        self._most_levels = max(len(np.unique(one)) for one in values)
        # An unmeasured column is one class: every factor is its mean.
        self._terms = [
            terms_of(np.array([one @ start.of(column)]))
            for one, column in zip(values, queries.factor_column.tolist(), strict=True)
        ]
        self.queries = self._coarse(np.ones(len(queries.sizes), dtype=np.int64))

    def sizes_after(
        self, scopes: NDArray[np.int32], measured: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return upper bounds on the classes of scopes' columns once queries of each are measured.

        A factor with two different values splits each class in two at most.
        """
        split = float(self._most_levels) ** np.minimum(measured, 64)
        bound = np.minimum(self._queries.sizes[scopes], self.queries.sizes[scopes] * split[:, None])
        return np.where(scopes >= 0, bound, 1).astype(np.int64)

    def refined(self, query: int) -> Coarsening:
        """Return the classes split by the values that a query has on them: self if none splits."""
        finer = copy(self)
        finer._classes, finer._terms = self._classes.copy(), self._terms.copy()
        finer.log_weights = self.log_weights.copy()
        sizes = self.queries.sizes.copy()
        scope = self._queries.scope(query)
        for column, factor in zip(scope, self._queries.factors[query], strict=False):
            full = int(self._queries.sizes[column])
            old = self._classes.get(column, np.zeros(full, dtype=np.int64))
            level = np.unique(self._queries.values(int(factor)), return_inverse=True)[1]
            _, new, count = np.unique(old * full + level, return_inverse=True, return_counts=True)
            # The smallest class comes first: literals of values in other classes are one term.
            order = np.argsort(np.argsort(count, kind="stable"), kind="stable")
            if len(count) > sizes[column] or column not in self._classes:
                finer._classes[column] = order[new]
                shares = self._start.of(column)
                mass = np.bincount(order[new], shares)
                finer.log_weights[column] = np.log(mass)
                sizes[column] = len(count)
                for one in self._factors_of[self._first[column] : self._first[column + 1]]:
                    values = self._queries.values(int(one))
                    means = np.bincount(order[new], shares * values) / mass
                    finer._terms[int(one)] = terms_of(means)
        if finer._classes.keys() == self._classes.keys() and (sizes == self.queries.sizes).all():
            return self
        finer.queries = finer._coarse(sizes)
        return finer

    def expand(
        self, classes: NDArray[Any], values: NDArray[Any], generator: np.random.Generator
    ) -> None:
        """Replace values by values of given classes, as likely as they are at the start, in place.

        Parameters
        ----------
        classes, values
            Integers, shape ``(records, columns)``.
        generator
            Source of randomness.
        """
        for column, class_of in self._classes.items():
            order = np.argsort(class_of, kind="stable")
            reached = np.cumsum(self._start.of(column)[order])
            last = np.cumsum(np.bincount(class_of)) - 1
            first, high = np.append(0, last[:-1] + 1), reached[last]
            low = np.append(0.0, high[:-1])
            drawn = classes[:, column]
            point = low[drawn] + generator.random(len(drawn)) * (high - low)[drawn]
            found = np.searchsorted(reached, point, side="right")
            values[:, column] = order[np.clip(found, first[drawn], last[drawn])]

    def _coarse(self, sizes: NDArray[np.int64]) -> Products:
        lengths = [len(index) for index, _ in self._terms]
        return self._queries.with_terms(
            sizes,
            indptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            index=np.concatenate([index for index, _ in self._terms]),
            coefficient=np.concatenate([coefficient for _, coefficient in self._terms]),
        )
