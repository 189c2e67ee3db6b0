"""Linear functions of a release's table, estimated by model and least squares: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes, column_values
from dualquery.estimates.cell_evidence import MOST_VALUES, Measured
from dualquery.estimates.intervals import LEVEL, Guesses, bounded_interval, guesses_of
from dualquery.estimates.least_squares import Estimates, LeastSquares, fieller
from dualquery.estimates.means import SURELY
from dualquery.estimates.measurements import Measurements
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.literals import LiteralRows
from dualquery.questions.linear_form import Bounds, LinearForm
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.releases.keep.folder import Release
    from dualquery.rules.forbidden import Forbidden

Float64 = NDArray[np.float64]

_BASIS = "least squares over all noisy numbers about these columns"
_NOT_MEASURED = "no measured numbers, so it has no interval"
_TOO_MANY = "too many cells for least squares, so it has no interval"
_NOT_SPANNED = "not spanned by measured conjunctions and parities, so it has no interval"
_NEARLY_EMPTY = "the given rows may be none: any answer is possible"
_FEW_ROWS = "the noise in the number of rows is about as large as that number"
_TELLS = 3.0  # deviations of its noise that a total must be, for parts of it to be known
_LINEAR = 10.0  # and for them to be linear in the noise (Cochran 1977, p. 153), else ratios
_KEPT = 32  # sets of columns whose factorisation is kept
_SURE = 1e-3  # the noise of what rules say, in deviations of the least noise: it adds hardly any
_MOST_RULED = 1 << 10  # cells for which that is looked at: of more it takes seconds


@dataclass(frozen=True)
class Limits:
    """Where a true value lies, with a chance over the noise; or why that is not known."""

    basis: str
    low: float | None = None
    high: float | None = None
    level: float | None = None

    def near(self, other: Limits) -> bool:
        """Return whether two known intervals have the same ends, but for rounding."""
        own, its = np.array([(self.low, self.high), (other.low, other.high)], np.float64)
        return np.allclose(own, its, rtol=1e-6, atol=1e-9)


class Knowledge:
    """Answers of linear forms from a release, with what is needed more than once kept."""

    def __init__(self, release: Release) -> None:
        self.release, self.base = release, release.base  # what shares are of
        self._solvers: dict[tuple[bool, tuple[int, ...]], LeastSquares] = {}

    def source(self, form: LinearForm | None = None) -> str:
        """Return the source of answers that were not released, that of a form's mean."""
        if self.release.model is not None and not (form is not None and self._tied(form)):
            return "model"
        known = "measured" if self.release.measurements else "released"
        return known if self.release.records is None else "synthetic"

    def _tied(self, form: LinearForm) -> bool:
        """Return whether rules are about a form's columns: records keep these, a model does not."""
        rules = None if self.release.records is None else self.rules
        return rules is not None and bool(np.isin(form.columns, rules.columns).any())

    @cached_property
    def schema(self) -> Schema:
        """The schema by which questions are read: numbers lie in buckets as the release tells."""
        return self.release.read_by

    @cached_property
    def rules(self) -> Forbidden | None:
        """The rules of the schema; None without any, as reading them loads compiled loops."""
        if not getattr(self.release.schema, "rules", ()):
            return None
        from dualquery.rules.reading import rules_of

        return rules_of(self.release.schema)

    @cached_property
    def _values(self) -> NDArray[np.int64] | None:
        records = self.release.records
        return None if records is None else column_values(records, self.release.schema.domain)

    def mean(self, form: LinearForm, asked: Sequence[LinearForm] = ()) -> float:
        """Return the mean of a form by the source of the first one asked, with which it stands."""
        if not form.columns:
            return float(form.table(()))
        if (model := self.release.model) is not None and not self._tied((*asked, form)[0]):
            literals, coefficients, constant = form.conjunctions()
            if not len(literals):
                return constant
            queries = LiteralRows(literals, form.domain)
            return constant + float(coefficients @ model.answers(queries))
        if self._values is not None:
            return float(form.on_values(self._values).mean())
        for forms in ([form], [form, *asked]):  # more columns may determine it
            found = self.estimates(forms)
            if not isinstance(found, str) and found.spanned[0]:
                return float(found.values[0])
        if not self.release.measurements and (workload := conjunctions_of(self.release.workload)):
            literals, coefficients, constant = form.conjunctions()
            places = (workload.find(each[each >= 0]) for each in literals)
            # Up to the first that is not there.
            released = [self.release.answers[at] for at in iter(places.__next__, None)]
            if len(released) == len(literals):
                return constant + float(coefficients @ released)
        raise BadInputError(
            "this question is no conjunction of the workload, measured conjunctions and parities "
            "do not determine its answer, and the release has no model and no synthetic records"
        )

    def limits(
        self,
        numerator: Bounds,
        denominator: Bounds | None,
        range: tuple[float, float],
        level: float = LEVEL,
        *,
        summed: bool = False,
    ) -> Limits:
        """Return the limits of a mean, a ratio of two means, or a sum over the rows.

        The denominator is at least 0 on every record; None for 1. ``range``: a row's least and
        largest value; ``level``: the limits' chance. ``summed`` asks for a sum, in rows or weight.
        """
        parts = [numerator] if denominator is None else [numerator, denominator]
        forms = [form for part in parts for form in (part.low, part.high)]
        conjunction = denominator is None and numerator.exact and range == (0.0, 1.0)
        literals = numerator.low.factors if conjunction else ()
        found = self._sums([*forms, *literals])
        if self.rules and (isinstance(found, str) or not found.spanned[: len(forms)].all()):
            found = self._sums([*forms, *literals], ruled=True)
        if isinstance(found, str):
            return Limits(found)
        if not found.spanned[: len(forms)].all():
            return Limits(_NOT_SPANNED)
        if denominator is not None:
            return self._ratio(found.take([0, 1, 2, 3]), range, level)
        if not summed and self.base.known == "measured" and _TELLS <= _deviations(found) < _LINEAR:
            return self._ratio(found.take([0, 1, -1, -1]), range, level)
        whole, factors = 1.0, self._shares(found)
        if isinstance(factors, str):
            return Limits(factors)
        if not summed:
            found = factors
        elif self.base.known == "measured":
            # In units that are surely no fewer than the rows, so that parts of them are shares.
            fewest, whole = (ends / self.base.unit for ends in self.base.limits(SURELY))
            found = found.times(1.0 / whole)
            range = (range[0] * (1.0 if range[0] < 0 else fewest / whole), range[1])
        if len(literals) > 1:  # it holds on no more rows than its rarest literal
            each = found.take((2 + np.arange(len(literals))).tolist())
            far = max(each.critical(1.0 - SURELY, unit) for unit in np.eye(len(literals)))
            most = (each.values + far * np.sqrt(np.diag(each.covariance)))[each.spanned]
            range = (range[0], float(np.clip(most.min(initial=range[1]), *range)))
        critical = max(found.critical(level, unit) for unit in np.eye(len(found.values))[:2])
        # Both by the larger deviation: one near the range's end, one far, may miss more together.
        spread = np.full(2, np.sqrt(np.diag(found.covariance)[:2]).max())
        gaussian = literals and not found.kurtosis.any()
        guesses = _guesses(found, factors, len(literals)) if gaussian else None
        lower, upper = bounded_interval(found.values[:2], spread, *range, critical, guesses)
        unit = whole * self.base.unit if summed else 1.0
        low, high = unit * np.clip((lower[0], upper[1]), *range)
        return Limits(self.basis, float(low), float(high), level)

    def _ratio(self, found: Estimates, range: tuple[float, float], level: float) -> Limits:
        """Return the limits of a ratio, by estimates of least and largest numerator and base."""
        # The distance to the range is added, so that it is never empty (Feldman and Cousins 1998).
        if self.base.known == "stated" and found.absent.any():
            return Limits("the number of rows is private, so it has no interval")
        ends: list[float] = []
        for above in (0, 1):
            for below in (2, 3):
                pair = [above, below]
                ratio = found.values[above] / found.values[below] if found.values[below] else 0.0
                combination = np.zeros(4)
                combination[pair] = 1.0, -np.clip(ratio, *range)
                variance, distance = float(combination @ found.covariance @ combination), 0.0
                if variance > 0:
                    distance = float(combination @ found.values) / math.sqrt(variance)
                critical = math.hypot(found.critical(level, combination), distance)
                covariance = found.covariance[np.ix_(pair, pair)]
                between = fieller(found.values[above], found.values[below], covariance, critical)
                if between is None:
                    return Limits(f"{self.basis}; {_NEARLY_EMPTY}", *range, level)
                ends += between
        low, high = np.clip((min(ends), max(ends)), *range)
        return Limits(self.basis, float(low), float(high), level)

    @cached_property
    def basis(self) -> str:
        """What least squares rest on."""
        measurements = self.release.measurements
        stated = self.base.known == "stated"
        note = "" if measurements is None else measurements.note
        total = f"if the total is {self.base.text}, as was stated" if stated else ""
        kept = "if rows keep the rules" if self.rules else ""
        return "; ".join(filter(None, (_BASIS, note, total, kept)))

    def estimates(self, forms: Sequence[LinearForm]) -> Estimates | str:
        """Return least squares' estimates of forms' means, or why there are none."""
        sums = self._sums(forms)
        found = sums if isinstance(sums, str) else self._shares(sums)
        return found if isinstance(found, str) else found.take(range(len(forms)))

    def _shares(self, sums: Estimates) -> Estimates | str:
        """Return what estimated sums are of the estimated total, which comes last."""
        if self.base.known != "measured":
            return sums
        return _FEW_ROWS if _deviations(sums) < _TELLS else sums.over(len(sums.values) - 1)

    def _sums(self, forms: Sequence[LinearForm], *, ruled: bool = False) -> Estimates | str:
        """Return forms' sums over the total's copies, then of these; ``ruled`` is by `_ruled`."""
        if (numbers := self._ruled if ruled else self._measured) is None:
            return _NOT_MEASURED
        columns = tuple(sorted({column for form in forms for column in form.columns}))
        # The total needs but one.
        columns = columns or (int((forms[0].domain.sizes <= MOST_VALUES).argmax()),)
        key = ruled, columns
        if key not in self._solvers:
            if len(self._solvers) == _KEPT:
                self._solvers.clear()
            cells, total = axis_sizes(forms[0].domain)[list(columns)].prod(), self.base
            evidence = None if ruled and cells > _MOST_RULED else numbers.about(columns)
            if evidence is None:
                return _NOT_SPANNED if ruled else _TOO_MANY
            measured = total.known == "measured"
            evidence = evidence.with_total(total) if measured else evidence
            self._solvers[key] = LeastSquares(evidence, not measured)
        distinct = list(dict.fromkeys(forms))  # a question without a cut has one form three times
        tables = [form.table(columns).ravel() for form in distinct]
        found = self._solvers[key].estimate(np.stack([*tables, np.ones_like(tables[0])]))
        return found.take([*(distinct.index(form) for form in forms), len(distinct)])

    @cached_property
    def _measured(self) -> Measured | None:
        known, schema = self.release.measurements, self.release.schema
        return Measured(known, schema.domain, self.base.known == "measured") if known else None

    @cached_property
    def _ruled(self) -> Measured | None:
        if not (known := self.release.measurements) or self.rules is None:
            return None
        from dualquery.rules.constraints import penalties_of

        never, noise = penalties_of(self.rules, cells=True), _SURE * known.deviations.min()
        none = Measurements.of_codes(never, np.zeros(len(never)), noise, known.noise)
        joined = Measurements.joined([known, none])
        return Measured(joined, self.release.schema.domain, self.base.known == "measured")


def _deviations(sums: Estimates) -> float:
    """Return how many deviations of its noise the total is, which comes last."""
    return float(sums.values[-1]) / math.sqrt(sums.covariance[-1, -1])


def _guesses(found: Estimates, factors: Estimates, literals: int) -> Guesses:
    """Return the guesses for a conjunction's two estimates from its literals' shares."""
    # The shares are in ``factors`` from the third on; all rows are the last of ``found``.
    places = np.arange(2, 2 + literals)
    shares = np.append(np.where(factors.spanned, factors.values, np.nan)[places], found.values[-1])
    loadings = np.column_stack((factors.loadings[:, places], found.loadings[:, -1]))
    values, variances = found.values[:2], np.diag(found.covariance)[:2]
    covariances = found.loadings[:, :2].T @ loadings
    return guesses_of(values, variances, np.stack((shares, shares)), covariances)
