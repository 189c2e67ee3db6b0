"""What a release knows of linear functions of its table: its model's word, and least squares.

All of it is post-processing of what was released, and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.bounded import bounded_interval
from dualquery.estimates.guessed import Guesses, guessed_interval
from dualquery.estimates.independence import guesses_of
from dualquery.estimates.intervals import LEVEL, ROWS_MISS, Intervals, laplace_half_width
from dualquery.estimates.least_squares import Estimates, LeastSquares, fieller
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.literals import LiteralRows
from dualquery.questions.forms import Bounds, LinearForm
from dualquery.room.noise.laplace import laplace_deviation
from dualquery.room.row_count import RowCount, bought_epsilon
from dualquery.rules.forbidden import Forbidden
from dualquery.rules.reading import rules_of
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.evidence import Measured
    from dualquery.estimates.means import BoughtMean
    from dualquery.estimates.measurements import Measurements
    from dualquery.models.protocol import Model
    from dualquery.queries.family import Queries

Float64 = NDArray[np.float64]

_BASIS = "least squares over all noisy numbers about these columns"
_NOT_MEASURED = "no measured numbers, so nothing is known of the error"
_TOO_MANY = "too many cells for least squares, so nothing is known of the error"
_NOT_SPANNED = "outside the span of what was measured, so nothing is known of the error"
_NEARLY_EMPTY = "the given rows may be none: any answer is possible"
_KEPT = 32
"""Sets of columns whose factorisation is kept."""


class Known(Protocol):
    """What an answer is taken from: a `dualquery.releases.folder.Release`."""

    @property
    def schema(self) -> Schema:
        """Columns and bits."""
        ...

    @property
    def read_by(self) -> Schema:
        """The same; numbers lie in buckets as the release tells."""
        ...

    @property
    def n(self) -> int:
        """Public number of rows."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """What the user asked for."""
        ...

    @property
    def workload(self) -> Queries:
        """The queries that have a released answer."""
        ...

    @property
    def answers(self) -> Float64:
        """Their answers, float64, shape ``(m,)``."""
        ...

    @property
    def intervals(self) -> Intervals | None:
        """Where their true answers lie, if that is known."""
        ...

    @property
    def measurements(self) -> Measurements | None:
        """The noisy numbers behind them, if there are any."""
        ...

    @property
    def means(self) -> tuple[BoughtMean, ...]:
        """Means of columns that were bought."""
        ...

    @property
    def model(self) -> Model | None:
        """The fitted distribution, if there is one."""
        ...

    @property
    def records(self) -> NDArray[np.uint8] | None:
        """Synthetic records, uint8 ``(r, bits)``."""
        ...


@dataclass(frozen=True)
class Limits:
    """Where a true value lies, with a chance over the noise; or why that is not known."""

    basis: str
    low: float | None = None
    high: float | None = None
    level: float | None = None

    def near(self, other: Limits) -> bool:
        """Return whether both have the same ends, but for rounding."""
        ends = zip((self.low, self.high), (other.low, other.high), strict=True)
        return all(
            (one is None) == (two is None)
            and (one is None or two is None or math.isclose(one, two, rel_tol=1e-6, abs_tol=1e-9))
            for one, two in ends
        )


class Knowledge:
    """Answers of linear forms from a release, with what is needed more than once kept."""

    def __init__(self, release: Known) -> None:
        self.release = release
        self._solvers: dict[tuple[int, ...], LeastSquares | None] = {}

    @property
    def source(self) -> str:
        """Where answers that were not released come from."""
        if self.release.model is not None:
            return "model"
        return "measured" if self.release.records is None else "synthetic"

    @cached_property
    def schema(self) -> Schema:
        """The schema by which questions are read: numbers lie in buckets as the release tells."""
        return self.release.read_by

    @cached_property
    def rules(self) -> Forbidden:
        """The rules of the schema."""
        return rules_of(self.release.schema)

    @cached_property
    def rows(self) -> RowCount:
        """The number of rows that shares are of, and how it is known."""
        options = self.release.options
        relation, epsilon = Neighbours.of_options(options), options.get("epsilon")
        if not isinstance(epsilon, int | float):
            raise BadInputError(f"damaged release: its options say epsilon {epsilon!r}")
        bought = bought_epsilon(relation, options.get("rows"), float(epsilon))
        return RowCount(self.release.n, relation, bought)

    @property
    def total_weight(self) -> float:
        """The number of rows, or the total weight, that counts are parts of."""
        return self.rows.n * self.rows.neighbours.of_copy

    @property
    def row_limits(self) -> tuple[float, float]:
        """Between what that lies, but for the chance that limits allow for."""
        if self.rows.epsilon == 0:
            return self.total_weight, self.total_weight
        off = laplace_half_width(self.rows.noise_scale, ROWS_MISS)
        of_copy = self.rows.neighbours.of_copy
        return max(self.rows.n - off, 0) * of_copy, (self.rows.n + off) * of_copy

    @cached_property
    def _values(self) -> NDArray[np.int64] | None:
        """The columns' values of the records."""
        from dualquery.data.cells import column_values

        records = self.release.records
        return None if records is None else column_values(records, self.release.schema.domain)

    def mean(self, form: LinearForm) -> float:
        """Return the mean of a form under the model, or else over the records, or by least squares.

        Raises
        ------
        BadInputError
            If there are none of these, or the form is too large for the model.
        """
        model = self.release.model
        if model is not None:
            literals, coefficients, constant = form.conjunctions()
            if not len(literals):
                return constant
            queries = LiteralRows(literals, form.domain)
            return constant + float(coefficients @ model.answers(queries))
        if self._values is not None:
            return float(form.on_values(self._values).mean())
        found = self.estimates([form])
        if isinstance(found, str) or not found.spanned[0]:
            raise BadInputError(
                "this question is not in the workload, the release has no model and no synthetic "
                "records to answer it from, and what was measured does not determine the answer"
            )
        return float(found.values[0])

    def limits(
        self,
        numerator: Bounds,
        denominator: Bounds | None,
        range: tuple[float, float],
        level: float = LEVEL,
    ) -> Limits:
        """Return where a mean, or a ratio of two means, lies.

        Parameters
        ----------
        numerator, denominator
            The forms; the denominator is at least 0 on every record. None for 1.
        range
            The least and the largest value there can be.
        level
            The chance, over the noise, that it lies there.
        """
        parts = [numerator] if denominator is None else [numerator, denominator]
        forms = [form for part in parts for form in (part.low, part.high)]
        conjunction = denominator is None and numerator.exact and range == (0.0, 1.0)
        literals = numerator.low.factors if conjunction else ()
        found = self.estimates([*forms, *literals])
        if isinstance(found, str):
            return Limits(found)
        if not found.spanned[: len(forms)].all():
            return Limits(_NOT_SPANNED)
        if denominator is not None:
            return self._ratio(found, range, level)
        critical = max(found.critical(level, unit) for unit in np.eye(len(found.values))[:2])
        # Both ends by the larger deviation: by its own each, one near an end of the range and one
        # far from it might miss more often together.
        spread = np.full(2, np.sqrt(np.diag(found.covariance)[:2]).max())
        if literals and found.gaussian:
            guesses = _guesses(found)
            lower, upper = guessed_interval(found.values[:2], spread, critical, guesses)
        else:
            lower, upper = bounded_interval(found.values[:2], spread, critical, *range)
        absent = found.absent[0] if found.absent[0] == found.absent[1] else None
        around = Intervals(
            lower[:1], upper[1:], self.basis, level, absent_row_answer=absent
        ).for_rows(self.rows, *range)
        low, high = np.clip((around.lower[0], around.upper[0]), *range)
        return Limits(around.basis, float(low), float(high), around.level)

    def _ratio(self, found: Estimates, range: tuple[float, float], level: float) -> Limits:
        """Return where a ratio lies: estimates of its least and largest numerator, denominator.

        Where the estimated ratio is outside the range, ratios within it are as likely as their
        distance says beyond that of the nearest one: all that Fieller's interval has of the range
        is in this one, and it is never empty (likelihood ratios as of Feldman and Cousins 1998).
        """
        if not self.rows.neighbours.rows_public and found.absent.any():
            return Limits("the number of rows is private, so nothing is known of the error")
        ends: list[float] = []
        for above in (0, 1):
            for below in (2, 3):
                pair = [above, below]
                ratio = found.values[above] / found.values[below] if found.values[below] else 0.0
                combination = np.zeros(4)
                combination[pair] = 1.0, -np.clip(ratio, *range)
                variance = float(combination @ found.covariance @ combination)
                apart = (
                    float(combination @ found.values) / math.sqrt(variance) if variance > 0 else 0.0
                )
                between = fieller(
                    float(found.values[above]),
                    float(found.values[below]),
                    found.covariance[np.ix_(pair, pair)],
                    math.hypot(found.critical(level, combination), apart),
                )
                if between is None:
                    return Limits(f"{self.basis}; {_NEARLY_EMPTY}", *range, level)
                ends += between
        low, high = np.clip((min(ends), max(ends)), *range)
        return Limits(self.basis, float(low), float(high), level)

    @cached_property
    def basis(self) -> str:
        """What least squares rest on."""
        measurements = self.release.measurements
        note = "" if measurements is None else measurements.note
        return "; ".join(filter(None, (_BASIS, note)))

    def estimates(self, forms: Sequence[LinearForm]) -> Estimates | str:
        """Return least squares' estimates of forms, or why there are none."""
        if self._measured is None:
            return _NOT_MEASURED
        columns = tuple(sorted({column for form in forms for column in form.columns}))
        columns = columns or (0,)
        if columns not in self._solvers:
            evidence = self._measured.about(columns)
            if evidence is not None and self.rows.epsilon > 0:
                scale = self.rows.noise_scale
                evidence = evidence.with_total(laplace_deviation(scale) / self.rows.n)
            if len(self._solvers) == _KEPT:
                del self._solvers[next(iter(self._solvers))]
            self._solvers[columns] = (
                None if evidence is None else LeastSquares(evidence, self.rows.epsilon == 0)
            )
        solver = self._solvers[columns]
        if solver is None:
            return _TOO_MANY
        distinct = list(dict.fromkeys(forms))  # a question without a cut has one form three times
        found = solver.estimate(np.stack([form.table(columns).ravel() for form in distinct]))
        return found.take([distinct.index(form) for form in forms])

    @cached_property
    def _measured(self) -> Measured | None:
        from dualquery.estimates.evidence import Measured

        measurements = self.release.measurements
        if measurements is None or not len(measurements):
            return None
        return Measured(measurements, self.release.schema.domain)


def _guesses(found: Estimates) -> Guesses:
    """Return what a conjunction's literals, the estimates from the third on, tell of the first two.

    These are estimates of the same.
    """
    shares = np.where(found.spanned, found.values, np.nan)[2:]
    return guesses_of(
        found.values[:2],
        np.diag(found.covariance)[:2],
        np.stack((shares, shares)),
        found.covariance[:2, 2:],
    )
