"""Linear constraints: one, and many as one sparse matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from solvers.errors import InvalidProblemError

_RELATIVE_TOLERANCE = 1e-9
"""Slack of a linear constraint, as a share of the sum of its absolute coefficients."""

_MOST_OF_WHOLE = 0.25
"""Largest slack, less than to the next sum, of whole coefficients that add up to below 2^53."""


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """``lower <= sum_i coefficients[i] * x[attributes[i]] <= upper``.

    Parameters
    ----------
    attributes
        int32, shape ``(r,)``: distinct attribute numbers.
    coefficients
        float64, shape ``(r,)``, finite.
    lower, upper
        Bounds; ``-inf`` and ``inf`` leave a side open.

    Raises
    ------
    InvalidProblemError
        If the arrays do not fit together, a number is not finite where it has to be, an attribute
        is named twice, or ``lower > upper``.
    """

    attributes: NDArray[np.int32]
    coefficients: NDArray[np.float64]
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        attributes = as_integers(self.attributes, "attributes of a linear constraint")
        coefficients = np.asarray(self.coefficients, np.float64)
        if attributes.ndim != 1 or attributes.shape != coefficients.shape:
            raise InvalidProblemError(
                f"a linear constraint has attributes of shape {attributes.shape} and coefficients "
                f"of shape {coefficients.shape}; expected two vectors of one length"
            )
        if not np.isfinite(coefficients).all():
            bad = coefficients[~np.isfinite(coefficients)][0]
            raise InvalidProblemError(
                f"a linear constraint has the coefficient {bad}; expected finite numbers"
            )
        distinct, occurrences = np.unique(attributes, return_counts=True)
        if (occurrences > 1).any():
            raise InvalidProblemError(
                f"a linear constraint names attribute {distinct[occurrences > 1][0]} twice; "
                "add up its coefficients"
            )
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise InvalidProblemError(
                f"a linear constraint has the bounds [{self.lower}, {self.upper}]; "
                "expected lower <= upper, -inf and inf only to leave a side open"
            )
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))

    @property
    def slack(self) -> float:
        """How far rounding may carry its sum past a bound (see :attr:`Rows.slack`)."""
        return float(Rows.of((self,)).slack[0])

    def activity(self, record: NDArray[np.uint8]) -> float:
        """Return the constraint's sum on a record, uint8 of shape ``(attributes,)``."""
        return float(self.coefficients @ record[self.attributes])

    def holds(self, record: NDArray[np.uint8]) -> bool:
        """Tell whether a record satisfies the constraint (up to :attr:`slack`)."""
        return not Rows.of((self,)).violated(record).any()


@dataclass(frozen=True, eq=False)
class Rows(Sequence[LinearConstraint]):
    """Linear constraints as one matrix in CSR form; a `LinearConstraint` is made when asked for."""

    indptr: NDArray[np.int64]
    attributes: NDArray[np.int32]  # at most once a row
    coefficients: NDArray[np.float64]
    lower: NDArray[np.float64]  # ``(R,)``; infinite where a side is open
    upper: NDArray[np.float64]

    @staticmethod
    def of(constraints: Iterable[LinearConstraint]) -> Rows:
        """Return constraints as rows."""
        if isinstance(constraints, Rows):
            return constraints
        given = tuple(constraints)
        if not given:
            return _NONE
        sizes = [len(each.attributes) for each in given]
        return Rows(
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            np.concatenate([each.attributes for each in given]),
            np.concatenate([each.coefficients for each in given]),
            np.array([each.lower for each in given], np.float64),
            np.array([each.upper for each in given], np.float64),
        )

    def __len__(self) -> int:
        return len(self.lower)

    @overload
    def __getitem__(self, number: int) -> LinearConstraint: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[LinearConstraint, ...]: ...
    def __getitem__(self, number: int | slice) -> LinearConstraint | tuple[LinearConstraint, ...]:
        if isinstance(number, slice):
            return tuple(self[n] for n in range(*number.indices(len(self))))
        first, last = self.indptr[range(len(self))[number] + np.arange(2)]
        return LinearConstraint(
            self.attributes[first:last],
            self.coefficients[first:last],
            float(self.lower[number]),
            float(self.upper[number]),
        )

    @cached_property
    def row_of(self) -> NDArray[np.int32]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """The sum of the sizes of each row's coefficients, shape ``(R,)``; it may be infinite."""
        with np.errstate(over="ignore"):
            return self.sums(np.abs(self.coefficients))

    @cached_property
    def slack(self) -> NDArray[np.float64]:
        """How far rounding may carry each row past a bound, shape ``(R,)``."""
        total = self.totals
        broken = self.sums(self.coefficients != np.rint(self.coefficients))
        most = np.where((broken == 0) & (total < 2.0**53), _MOST_OF_WHOLE, np.inf)
        return np.minimum(_RELATIVE_TOLERANCE * total, most)

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of values, one an entry, over each row."""
        return np.asarray(np.bincount(self.row_of, values, minlength=len(self)), np.float64)

    @property
    def provable(self) -> bool:
        """Whether a solver's tolerance of 1e-6 of each bit hides no unit of a row's sum."""
        return bool((self.totals < 5e5).all())

    def activity(self, record: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the rows' sums on a record, shape ``(R,)``."""
        return self.sums(self.coefficients * record[self.attributes])

    def violated(self, record: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which rows a record violates by more than their slack, shape ``(R,)``."""
        if len(self) == 0:
            return np.zeros(0, np.bool_)
        activity = self.activity(record)
        return (activity < self.lower - self.slack) | (activity > self.upper + self.slack)

    def select(self, kept: NDArray[np.bool_]) -> Rows:
        """Return some of the rows."""
        entries = kept[self.row_of]
        return Rows(
            np.concatenate(([0], np.cumsum(np.diff(self.indptr)[kept]))).astype(np.int64),
            self.attributes[entries],
            self.coefficients[entries],
            self.lower[kept],
            self.upper[kept],
        )

    def renumbered(self, number: NDArray[np.int32]) -> Rows:
        """Return the rows over attributes that have new numbers."""
        return Rows(self.indptr, number[self.attributes], self.coefficients, self.lower, self.upper)

    def check(self, attributes: int) -> None:
        """Check that the rows name attributes of a problem and hold numbers.

        `InvalidProblemError` if one does not.
        """
        if not np.isfinite(self.totals).all() or np.isnan([self.lower, self.upper]).any():
            raise InvalidProblemError(
                "a linear constraint has, or sums to, a number that is not finite"
            )
        wrong = (self.attributes < 0) | (self.attributes >= attributes)
        if wrong.any():
            entry = int(wrong.argmax())
            raise InvalidProblemError(
                f"constraint {self.row_of[entry]} names attribute {self.attributes[entry]}; "
                f"expected 0 to {attributes - 1}"
            )


_NONE = Rows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0), np.zeros(0))


def as_integers(values: Any, what: str) -> NDArray[np.int32]:
    """Return numbers as int32; refuse what is no integer or too large."""
    array = np.asarray(values)
    if array.size == 0:
        return np.ascontiguousarray(array, np.int32)
    if array.dtype.kind not in "iu":
        raise InvalidProblemError(f"{what} have dtype {array.dtype}; expected integers")
    if array.dtype != np.int32 and (array.max() >= 2**31 or array.min() < -(2**31)):
        raise InvalidProblemError(f"{what} reach {array.max()}; expected 32-bit integers")
    return np.ascontiguousarray(array, np.int32)
