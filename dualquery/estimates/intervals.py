"""Intervals of numbers that are known to lie in a range, from estimates with Gaussian noise.

An interval of two sides, cut to the range, covers a number at the end of the range too often: it
can miss on one side only. The interval here holds the numbers m that *accept* the estimate, each by
a set of estimates that has the stated chance. The sets make the mean length least if numbers are
drawn from a *prior* (Pratt, JASA 56, 1961; Yu and Hoff, Biometrika 105, 2018): uniform on the range
or, with a *guess* of the number from independent noise, normal around the guess with chance ``1 -
UNTOLD``. A wrong guess costs length, never coverage. Let f be the density of estimates under the
prior. Accepted for m are the estimates x with the largest ``phi(x - m) / f(x)``, in standard
deviations: an interval from a to b, as the second derivative of its logarithm is minus the variance
of m given x (Tweedie's formula). If the mass above x under m is below ``miss``, let a be the
estimate below which the rest of it lies: x is accepted if and only if its ratio is at least that of
a. As f is at least `UNTOLD` times the deviation at b, ``(b - m)^2 <= z^2 + 2 log(1 / (deviation
UNTOLD))``. The upper end is the mirrored lower one.

*Guesses* of conjunctions are the products of their literals' shares, as if columns were
independent. The distance of a share from its guess is a public assumption.

A *total* is what the answers of a release are shares of: its rows, or their weight, and how well it
is known. A *copy* is what the private room counts: a row, or with weights the `of_copy`-th of a
weight (`dualquery.rows.units`). Everybody else asks a `Total` for rows or for weight.

`Intervals` are of the truth, not of a fitted answer, which may lie outside its own; what was not
measured has none. They cover for the first measurement of a query, also if a look at the data chose
it. Where the number of rows n is private a measurement is divided by a public N, so that it counts
N - n rows more, with some answer t in the queries' range: its mean is ``m = (n x + (N - n) t) / N``
for the true answer x. So an interval of m that is longer by ``|N - n| / N`` ranges at both ends has
x; where t is known, an end e need not move by more than ``|e - t| |N / n - 1|``. What two noises
exceed with one chance adds up as variances do: for Gaussian ones, and Laplace beside it, safely.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dualquery.estimates.measurements import NoiseKind
from dualquery.room.ground import laplace_deviation
from dualquery.runtime.escaping import share

if TYPE_CHECKING:
    from dualquery.privacy.neighbours import Neighbours
    from dualquery.room.row_count import RowCount

Float64: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
"""Chance, over the noise, that one interval covers its true answer. Not of all at once."""

UNTOLD = 0.1
"""Chance that a guess is useless: a number far from it has an interval of the usual length."""

_FURTHEST, _HALVINGS = 12.0, 24  # the search: standard deviations that it covers, and its steps
_LEAST = 0.01  # least spread of a guess, in standard deviations of the noise
_EXACT = 1e-9  # noise that is too small to matter, in lengths of the range
_BEYOND, _RARE = 8.0, 1e-12  # furthest estimate out of the range; the least mass of a tail


def gaussian_half_width(scale: float, miss: float = 1.0 - LEVEL) -> float:
    """Return a distance that Gaussian noise exceeds with chance ``miss`` at most.

    The continuous Gaussian's quantile, and a little for the grid that the noise is drawn on, of
    2^-39 of its scale or less (see `dualquery.room.noise.gaussian`).
    """
    return NormalDist().inv_cdf(1.0 - miss / 2.0) * scale * (1.0 + 1e-9)


def laplace_half_width(scale: float, miss: float = 1.0 - LEVEL) -> int:
    """Return a distance that discrete Laplace noise exceeds with chance ``miss`` at most.

    With p = exp(-1 / scale) its tail beyond k is 2 p^(k + 1) / (1 + p), at most p^k.
    Scale and distance are in whole steps.
    """
    return math.ceil(math.log(1.0 / miss) * scale)


def clipped_interval(
    measured: Float64, half_width: Float64 | float, low: float, high: float
) -> tuple[Float64, Float64]:
    """Return the ends of intervals around measurements, float64 ``(m,)``, cut to a range.

    One beyond the range is brought to its end first, so that no interval is a single point.
    """
    within = np.clip(measured, low, high)
    return np.clip(within - half_width, low, high), np.clip(within + half_width, low, high)


def bounded_interval(
    estimates: Float64,
    deviations: Float64 | float,
    low: float,
    high: float,
    critical: float | None = None,
    guesses: Guesses | None = None,
) -> tuple[Float64, Float64]:
    """Return the ends of intervals of numbers between ``low`` and ``high``.

    Parameters
    ----------
    estimates, deviations
        float64, shape ``(m,)``: unbiased, and the standard deviations of their noise, at least 0;
        NaN for none.
    critical
        Two-sided quantile of the noise, in standard deviations; None for that of `LEVEL`.
    guesses
        Of the numbers.
    """
    critical, range = critical or gaussian_half_width(1.0), high - low
    deviations = np.broadcast_to(np.asarray(deviations, np.float64), estimates.shape)
    lower, upper = clipped_interval(estimates, critical * deviations, low, high)
    some = (deviations > _EXACT * range) & (deviations < range / _EXACT)
    if guesses is None:  # only near an end are intervals others than those of two sides
        reach = (critical + _BEYOND) * deviations
        some &= (estimates < low + reach) | (estimates > high - reach)
    at = np.flatnonzero(some)
    unit, miss = deviations[at], 2.0 * float(ndtr(-critical))
    length, shown = range / unit, (estimates[at] - low) / unit
    if guesses is None:
        prior = _Prior(np.full(len(at), np.nan), np.ones(len(at)), length, length)
    else:
        spread = np.maximum(guesses.spreads[at] / unit, _LEAST)
        guess = (np.clip(guesses.values[at], low, high) - low) / unit
        prior = _Prior(guess, spread, length, _between(guess, spread, length))
    lower[at] = low + unit * _lowest(shown, prior, miss)
    upper[at] = high - unit * _lowest(length - shown, prior.mirrored(), miss)
    return np.clip(lower, low, high), np.clip(upper, low, high)


@dataclass(frozen=True, eq=False)
class _Prior:
    """The numbers' prior, in standard deviations from the range's end: float64, ``(m,)``."""

    guess: Float64
    spread: Float64
    length: Float64
    inside: Float64  # mass that the normal distribution around the guess gives to the range

    def mirrored(self) -> _Prior:
        """Return it as seen from the other end."""
        return replace(self, guess=self.length - self.guess)

    def log_density(self, estimates: Float64) -> Float64:
        """Return the logarithm of f of the module."""
        anywhere: Float64 = _between(estimates, 1.0, self.length) / self.length
        known = ~np.isnan(self.guess)
        if not known.any():
            return np.log(anywhere)
        variance = 1.0 + self.spread**2
        mean = (self.guess + self.spread**2 * estimates) / variance
        near = _between(mean, self.spread / np.sqrt(variance), self.length)
        near *= np.exp(-((estimates - self.guess) ** 2) / (2.0 * variance))
        near /= np.sqrt(2.0 * np.pi * variance) * self.inside
        mixed = (1.0 - UNTOLD) * near + UNTOLD * anywhere
        return np.log(np.where(known, mixed, anywhere))


def _between(mean: Float64, deviation: Float64 | float, length: Float64) -> Float64:
    """Return the mass that normal distributions give to the range from 0 to ``length``."""
    # By the nearer end: far from both, the masses below them differ by less than their rounding.
    mean = np.where(mean > length / 2.0, length - mean, mean)
    return np.asarray(ndtr(mean / deviation) - ndtr((mean - length) / deviation))


def _lowest(estimates: Float64, prior: _Prior, miss: float) -> Float64:
    """Return the lowest numbers that accept the estimates, all in standard deviations."""
    estimates = np.clip(estimates, -_BEYOND, prior.length + _BEYOND)
    own = prior.log_density(estimates)
    accepted = np.clip(estimates, 0.0, prior.length)
    refused = np.maximum(accepted - _FURTHEST, 0.0)
    for _ in range(_HALVINGS):
        number = (accepted + refused) / 2.0
        above = ndtr(number - estimates)
        # The other end, if this estimate were the upper one; of no use where too much lies above.
        other = number + ndtri(np.clip(miss - above, _RARE, 1.0))
        squares = (estimates - number) ** 2 - (other - number) ** 2
        holds = (above >= miss) | (prior.log_density(other) - own >= squares / 2.0)
        accepted, refused = np.where(holds, number, accepted), np.where(holds, refused, number)
    return refused


CORRELATION = 0.1
"""Prior standard deviation of two columns' correlation; half as much for each further column."""

_REPETITIONS = 12  # fixed-point steps of a guess


@dataclass(frozen=True, eq=False)
class Guesses:
    """What is expected of ``m`` shares, by numbers whose noise is independent of theirs.

    float64, shape ``(m,)``: the values, in 0 to 1, NaN for none; the standard deviations of the
    shares around them, at least 0.
    """

    values: Float64
    spreads: Float64


def departures(chances: Float64) -> Float64:
    """Return the prior standard deviation of conjunctions around independent columns: ``(m,)``.

    Each pair of literals departs by `CORRELATION` times their standard deviations, on the rows
    where the others hold; each further literal halves it. ``chances``, float64 ``(m, k)`` from 0
    to 1, are the shares of each one's literals; 1 for none.
    """
    # By the number of the literals so far among those that depart together: none, one, or more.
    none = np.ones(len(chances))
    one = np.zeros(len(chances))
    more = np.zeros(len(chances))
    for chance in chances.T:
        holds, tied = chance**2, chance * (1.0 - chance) / 4.0
        more = more * (holds + tied) + one * tied
        one = one * holds + none * tied
        none = none * holds
    return 4.0 * CORRELATION * np.sqrt(more)


def guesses_of(
    estimates: Float64, variances: Float64, shares: Float64, covariances: Float64
) -> Guesses:
    """Return the product of literals' shares, less their regression on a conjunction's estimate.

    These are independent of its Gaussian noise. Their means lack the regression times the true
    share of the conjunction, in whose place the guess itself is put. A conjunction of fewer than
    two literals, or without noise, has no guess.

    Parameters
    ----------
    estimates, variances
        float64, shape ``(m,)``: of the conjunctions, and those of their noise.
    shares, covariances
        float64, shape ``(m, k)``: estimates of the shares of each one's literals, NaN for none, and
        the covariances of their noise with that of the conjunction's.
    """
    present = ~np.isnan(shares)
    known = (present.sum(axis=1) > 1) & (variances > 0)
    regression = covariances / np.where(variances > 0, variances, np.inf)[:, None]
    free = shares - regression * estimates[:, None]
    values = np.zeros(len(estimates))
    for _ in range(_REPETITIONS):
        chances = np.where(present, np.clip(free + regression * values[:, None], 0.0, 1.0), 1.0)
        values = chances.prod(axis=1)
    return Guesses(np.where(known, values, np.nan), departures(chances))


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
        """Return a distance that the noise exceeds with chance ``miss`` at most, in copies.

        With Gaussian noise that exceeds another one so, it exceeds the hypotenuse so, at most.
        """
        if self.scale == 0.0 or self.noise == "gaussian":
            return gaussian_half_width(self.scale, miss) if self.scale else 0.0
        # The second is the larger one below 90%: there Laplace noise beside Gaussian needs it.
        own = gaussian_half_width(laplace_deviation(self.scale), miss)
        return max(laplace_half_width(self.scale, miss), own)

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


@dataclass(frozen=True, eq=False)
class Intervals:
    """One interval a query: shape ``(m,)``, in the queries' range; NaN where none was measured."""

    lower: Float64
    upper: Float64
    basis: str  # what the intervals rest on: a sentence for the reader
    level: float = LEVEL  # chance, over the noise, that one of them covers
    absent_row_answer: Float64 | float | None = None  # t of the module, ``(m,)`` or one for all

    def of(self, query: int) -> tuple[float, float] | None:
        """Return the interval of a query of the workload, None if it was not measured."""
        low, high = float(self.lower[query]), float(self.upper[query])
        return None if math.isnan(low) else (low, high)

    def nearest(self, answers: Float64) -> Float64:
        """Return the points of the intervals that lie nearest to answers: float64, ``(m,)``."""
        return np.where(np.isnan(self.lower), answers, np.clip(answers, self.lower, self.upper))

    def text(self, query: int) -> str:
        """Return the interval for a person, a dash if there is none."""
        return "-" if (found := self.of(query)) is None else " to ".join(map(share, found, (-1, 1)))

    def describe(self) -> dict[str, Any]:
        """Return what a release says about its intervals, JSON-able."""
        known = np.isfinite(self.lower).sum()
        return {"level": self.level, "answers": int(known), "basis": self.basis}

    def for_total(self, total: Total, low: float, high: float) -> Intervals:
        """Return intervals of shares of the true rows; ``low .. high`` is the queries' range."""
        if total.known == "exact":
            return self
        if total.known == "stated":
            of = "number of rows" if total.what == "rows" else "total weight"
            return replace(self, basis=f"{self.basis}; if the {of} is {total.text}, as was stated")
        off, n = total.off(1.0 - self.level), total.copies
        below = above = np.full_like(self.lower, (max(high, 0.0) - min(low, 0.0)) * off / n)
        if self.absent_row_answer is not None and n > 2 * off:
            half = (self.upper - self.lower) / 2.0
            below, above = (
                np.hypot(half, np.abs(ends - self.absent_row_answer) * off / (n - off)) - half
                for ends in (self.lower, self.upper)
            )
        basis = f"{self.basis}; longer by what the noise in the number of rows may make"
        lower, upper = np.clip((self.lower - below, self.upper + above), low, high)
        return Intervals(lower, upper, basis, self.level)


def of_cut(most: int | None, relation: Neighbours) -> str:
    """Return what a basis adds of rows that are cut, to ``most`` ones or a unit's, or weighted."""
    cut = "" if most is None else f"; of the rows as cut to {most:,} ones each"
    if relation.unit is not None:
        cut += f"; of at most {relation.unit.max_rows:,} rows a unit"
    return cut if relation.weight is None else f"{cut}; of weights in {relation.of_copy:.3g}-steps"
