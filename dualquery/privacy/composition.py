"""What several releases of one table cost together: the arithmetic of a *privacy filter*.

Releases about one table are chosen one after the other: the parameters of the next may depend on
everything that was released before it (fully adaptive composition). A filter is a rule that lets
the next release begin, or not, by looking at the costs alone; it is valid if all that it lets
through is (epsilon, delta)-private together (Rogers, Roth, Ullman and Vadhan 2016, "Privacy
Odometers and Filters", Definition 3.1). The accountant ``exact`` is no filter: its curve holds for
one schedule that is fixed beforehand, so it serves inside one release only.

**sum**: the epsilons add up to at most epsilon, the deltas to at most delta. The rule is valid
(Rogers et al. 2016, Section 3: their filter for basic composition). *Proof.* By induction on the
number of releases, for any rest (e, d) of the budget: let the first be (e1, d1)-private, with
result y, and let what follows y give the set S the chances ``Q_y(S)`` and ``Q'_y(S)`` on two
neighbours. Then ``Q_y(S) <= f(y) + d - d1`` with ``f(y) = min(1, exp(e - e1) Q'_y(S))``, so
``P(S) <= E f(y) + d - d1 <= exp(e1) E' f(y) + d1 + d - d1 <= exp(e) P'(S) + d``.

**zcdp**: the rhos add up to at most the largest rho that gives epsilon at delta; the sum is
converted once. The rule is valid: let L_k be the privacy loss of the first k releases, the log of
their chance on one neighbour over that on the other. For each order a,
``exp((a - 1) (L_k - a (rho_1 + ... + rho_k)))`` is a supermartingale under the first law, so
stopping before the sum passes rho leaves all of them rho-zCDP (Feldman and Zrnic 2021, Theorem 3.1,
which is for one order; the rule here is the same for all orders. Whitehouse, Ramdas, Rogers and Wu
2023 prove it for approximate zCDP: a release may have a delta of its own, of thresholds; the sum of
these is taken off delta before rho is converted.)

**either**: a release may begin if one of the two rules lets it, each with epsilon and delta / 2.
*Proof.* Let A be the set of whole histories whose costs keep the first rule. Until a history
leaves A it is the one that the first rule alone would have let through; costs only grow and are
part of the history, so ``P(S and A) <= exp(epsilon) P'(S and A) + delta / 2``. All other histories
keep the second rule, and cost delta / 2 likewise. Add up.

Releases may run at the same time: each is charged for before its first draw, and what it draws
depends on nothing but the rows and what was released before it began. So the order of the charges
is the order in which they compose. (Haney et al. 2023 prove more: every valid filter stays valid
for interactive releases that run side by side.)

**Rounding.** Epsilons and deltas are added as the decimal numbers that a person wrote, exactly: ten
releases of 0.1 cost 1. A double differs from its shortest decimal by less than one part in 2^52, so
the guarantee of a file holds up to this factor. Rhos come from
`dualquery.privacy.accountants.formulas.rho_of`, rounded up by more than the rounding of their sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from enum import Enum
from fractions import Fraction

from dualquery.privacy.accountants.formulas import epsilon_from_rho, rho_of
from dualquery.privacy.calibrate import rho_for
from dualquery.privacy.events import Event, threshold_delta
from dualquery.privacy.guarantee import check_ranges
from dualquery.runtime.errors import BadInputError, did_you_mean

_LARGEST_RHO = 1e100
"""No budget has room for more; sums of it could overflow."""


class Composition(Enum):
    """How the costs of releases about one table are added up."""

    SUM = "sum"
    """Epsilons and deltas add up."""
    ZCDP = "zcdp"
    """Rhos add up; their sum becomes an epsilon at delta once."""
    EITHER = "either"
    """A release may begin if one of the two allows it; each has half of delta."""

    @staticmethod
    def parse(text: str) -> Composition:
        """Return the composition named ``text``; `BadInputError` if it is unknown."""
        known = [each.value for each in Composition]
        if text not in known:
            raise BadInputError(
                f"--composition: {text!r} is unknown{did_you_mean(str(text), known)} "
                f"(known: {', '.join(known)})"
            )
        return Composition(text)


@dataclass(frozen=True)
class Cost:
    """What one release costs, by each way of counting."""

    rho: float  # zero-concentrated differential privacy of its events, >= 0
    epsilon: float
    delta: float
    threshold: float = 0.0  # delta of its thresholds: its cost is ``threshold``-approximately rho

    @staticmethod
    def of(events: tuple[Event, ...], epsilon: float, delta: float) -> Cost:
        """Return the cost of a release with these events and this guarantee."""
        return Cost(rho_of(events), epsilon, delta, threshold_delta(events))

    def covers(self, other: Cost) -> bool:
        """Return whether no part of ``other`` is larger."""
        pairs = zip(astuple(other), astuple(self), strict=True)
        return all(own <= most for own, most in pairs)


@dataclass(frozen=True)
class _Total:
    rho: float
    epsilon: Fraction
    delta: Fraction
    threshold: Fraction


@dataclass(frozen=True)
class PrivacyFilter:
    """Says whether releases keep within (epsilon, delta) together.

    Epsilon from `dualquery.privacy.guarantee.SMALLEST_EPSILON` to ``LARGEST_EPSILON``; delta in [0,
    1), above 0 unless epsilons and deltas are summed; else `BadInputError`.
    """

    epsilon: float
    delta: float
    composition: Composition = Composition.SUM

    def __post_init__(self) -> None:
        check_ranges(self.epsilon, self.delta)
        if self.delta == 0.0 and self.composition is not Composition.SUM:
            raise BadInputError(
                f"--delta is 0, but composition {self.composition.value!r} converts rho, which "
                "needs a delta above 0; give one, or take the composition 'sum'"
            )

    def allows(self, costs: Iterable[Cost]) -> bool:
        """Return whether releases of these costs keep within the budget together."""
        total = _total(costs)
        return self._sum_allows(total) or self._zcdp_allows(total)

    def spent(self, costs: Iterable[Cost]) -> tuple[float, float]:
        """Return an (epsilon, delta) that releases of these costs have together.

        With `Composition.EITHER` the smaller epsilon, at the whole delta: the choice costs both
        halves.
        """
        total = _total(costs)
        summed = _up(total.epsilon), _up(total.delta)
        if total.rho == 0.0 and total.epsilon == 0 and total.delta == 0:
            return 0.0, 0.0
        if self.composition is Composition.SUM:
            return summed
        converted = epsilon_from_rho(total.rho, self._left(total))
        if self.composition is Composition.EITHER and total.delta <= _exact(self._share):
            converted = min(converted, summed[0])
        return converted, self.delta

    def left(self, costs: Iterable[Cost]) -> str:
        """Return in words what releases of these costs leave over."""
        total = _total(costs)
        ways = []
        if self.composition is not Composition.ZCDP:
            epsilon = _down(_exact(self.epsilon) - total.epsilon)
            delta = _down(_exact(self._share) - total.delta)
            ways.append(f"epsilon {epsilon:.15g} and delta {delta:.15g}, summed")
        if self.composition is not Composition.SUM:
            share = self._left(total)
            most = rho_for(self.epsilon, share) if share > 0.0 else 0.0
            rho = max(0.0, most - total.rho)
            alone = epsilon_from_rho(rho, share)
            ways.append(
                f"rho {rho:.6g} of {most:.6g} (by itself epsilon {alone:.6g} at delta {share:g})"
            )
        return ", or ".join(ways)

    @property
    def _share(self) -> float:
        """The delta of one way of counting."""
        return self.delta / 2.0 if self.composition is Composition.EITHER else self.delta

    def _sum_allows(self, total: _Total) -> bool:
        if self.composition is Composition.ZCDP:
            return False
        return total.epsilon <= _exact(self.epsilon) and total.delta <= _exact(self._share)

    def _zcdp_allows(self, total: _Total) -> bool:
        if self.composition is Composition.SUM or not math.isfinite(total.rho):
            return False
        if total.threshold > _exact(self._share):
            return False
        return epsilon_from_rho(total.rho, self._left(total)) <= self.epsilon

    def _left(self, total: _Total) -> float:
        """Return the delta that thresholds leave to the conversion of rho, rounded down."""
        return _down(_exact(self._share) - total.threshold)


def _total(costs: Iterable[Cost]) -> _Total:
    listed = list(costs)
    rhos = [each.rho for each in listed]
    return _Total(
        math.inf if max(rhos, default=0.0) > _LARGEST_RHO else math.fsum(rhos),
        sum((_exact(each.epsilon) for each in listed), Fraction(0)),
        sum((_exact(each.delta) for each in listed), Fraction(0)),
        sum((_exact(each.threshold) for each in listed), Fraction(0)),
    )


def _exact(value: float) -> Fraction:
    """Return the decimal number that a person would write for a double."""
    return Fraction(repr(float(value)))


def _up(value: Fraction) -> float:
    """Return the smallest double whose decimal is at least ``value``."""
    found = float(value)
    return found if _exact(found) >= value else math.nextafter(found, math.inf)


def _down(value: Fraction) -> float:
    """Return a double whose decimal is at most ``value``; 0 for what is negative."""
    found = float(max(value, Fraction(0)))
    return found if _exact(found) <= value else max(0.0, math.nextafter(found, 0.0))
