"""`staged`: the columns' shares first; then, with what is left, only what is worth its noise.

For tables of many binary columns that are nearly empty. Of thousands of columns a workload asks for
hundreds of thousands of products, nearly all of them as good as known once the columns' shares
are: a pair of columns cannot be far from independent where one is nearly empty. So the first stage
measures every column, and the second, with far less noise, the columns and products that the first
left uncertain.

**Privacy.** Two Gaussian measurements, adaptively composed. The schedule fixes before any row is
read that there are two, and the ratio of sensitivity to scale of each. What the second measures is
chosen by the noisy numbers of the first; whatever is chosen, its sensitivity over all legal records
is proven by the room, its scale is set to the planned ratio, and the ledger refuses it otherwise.
The cost of Gaussian noise depends on that ratio alone, so it is fixed although the content is not:
zero-concentrated and Gaussian differential privacy compose adaptively where each mechanism, for
every outcome of those before it, has a cost fixed beforehand (Bun and Steinke 2016, Lemma 2.3;
Dong, Roth and Su, "Gaussian differential privacy", JRSS B 84, 2022, Theorem 4). All else is
post-processing.

**Queries about frequent items** (`dualquery.queries.generate.frequent`) are made between the
stages, from the noisy shares of the first: what they are is post-processing of these shares, and so
is that the second stage measures products of theirs. The first measures all items then, asked or
not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import Estimate, ExpectedError
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.mechanisms.matrix.departures import Departures
from dualquery.mechanisms.matrix.everything import (
    departures_of,
    everything,
    fullness,
    tells_more,
    with_others,
    with_shares,
)
from dualquery.mechanisms.matrix.expansion import Expansion, bytes_on_features
from dualquery.mechanisms.matrix.fitting import (
    MAX_ERROR,
    MEAN_ERROR,
    Drawn,
    Fitting,
    fit_mixture,
)
from dualquery.mechanisms.matrix.looks import (
    CORRELATION,
    Shares,
    alike,
    expected_departures,
    in_shares,
    look,
    scale_for,
    singles_of,
    worth_measuring,
)
from dualquery.mechanisms.matrix.measurement import FeatureMeasurement
from dualquery.mechanisms.matrix.share_intervals import share_intervals
from dualquery.mechanisms.matrix.staged_mixture import mixture_of
from dualquery.mechanisms.matrix.width import is_wide
from dualquery.mechanisms.protocol import (
    Budget,
    Details,
    Mechanism,
    Outcome,
    Plan,
    Session,
    Task,
)
from dualquery.models.mixture import ProductMixture
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

_SECOND = 1000
"""Features that the second stage may measure of a wide table, to divide the budget by; of others it
may measure all that can be worth it (`_worth_at_most`). Where d numbers and M others are measured
with shares a and 1 - a of rho, their variances are as d / a and M / (1 - a); the sum is least where
a is to 1 - a as the root of d is to that of M. Of 17,770 columns the first stage gets four fifths;
a fortieth of 100 about which all triples are asked."""

_LARGEST = 2.0 * CORRELATION
"""A departure than which hardly any is expected to be larger: a noise of which is too much."""

_WIDE_MAX = (0.3, 3.0, 12.0)
_POSITIVE_MEAN, _WIDE_MEAN = (0.0001, 0.002, 0.3), (0.03, 0.3, 1.2)
"""Errors in standard deviations of a column's share after the first stage: least, middle and
largest of runs on npm-deps, kosarak, BMS-WebView-2, facebook-pages, msweb, groceries and
netflix-like, widened a little. The mean error is the sum of one of positive queries, and of one in
units of `_of_empty_columns`. Other tables and queries may lie outside."""


@dataclass(frozen=True, kw_only=True)
class TwoStages(Details):
    """What the two stages measure, with how much noise.

    Parameters
    ----------
    expansion
        The queries as sums of features, products of signs; of frequent items a stand-in.
    looked
        What the first stage measures: features of one column.
    full
        What the second stage measures if that is everything; None where it cannot be.
    neighbours, sensitivity
        What neighbouring tables differ in, and the L2 distance between the sums of these features
        of two of them.
    scale
        Standard deviation of the noise on these sums.
    ratio
        Sensitivity over scale of the second stage.
    deviation
        Standard deviation of a column's share after the first stage.
    records
        Number of synthetic records.
    """

    expansion: Expansion = field(compare=False)
    looked: Features = field(compare=False)
    full: FeatureMeasurement | None = field(compare=False)
    neighbours: Neighbours
    sensitivity: float
    scale: float
    ratio: float
    deviation: float
    records: int

    def parameters(self) -> Mapping[str, Any]:
        """Return the noise of both stages."""
        return {
            "features": len(self.expansion.features),
            "neighbours": self.neighbours.value,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "second_ratio": self.ratio,
            "deviation": self.deviation,
            "records": self.records,
        }


@dataclass(frozen=True, kw_only=True)
class Staged(Mechanism[TwoStages]):
    """Measures every column's share, then what is worth its noise; for many binary columns.

    Shares are posterior means (`shares`); queries are answered as if columns were independent, but
    for departures that were measured (`departures`).
    """

    name: ClassVar[str] = "staged"
    pure: ClassVar[bool] = False
    finds_frequent: ClassVar[bool] = True

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        if self.records is not None and (not isinstance(self.records, int) or self.records < 1):
            raise BadInputError(f"records is {self.records!r}; a whole number from 1 on is needed")

    def statistics(self, queries: Queries) -> Workload:
        """Hold the queries' own answers; features are counted in passes of their own."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[TwoStages]:
        """Fix both stages' ratios of sensitivity to scale; they fill the budget."""
        if budget.delta == 0:
            raise BadInputError("staged needs --delta above 0; with delta 0 use laplace or mwem")
        expansion = Expansion.of(task.workload)
        features = expansion.features
        asked = features.bits[singles_of(features)]
        if not len(asked):
            raise BadInputError("staged has nothing to measure: no query depends on a column")
        bits = asked if task.frequent is None else task.frequent.bits[:, None]
        looked = Features(bits, features.domain)
        sensitivity = alike(looked, budget.neighbours).sensitivity

        full = everything(task.workload, expansion, budget.neighbours)
        others = _SECOND if full is None else _worth_at_most(len(features), budget, task.n)
        part = 1.0 / (1.0 + math.sqrt(others / len(looked)))

        def schedule_of(rho: float) -> tuple[GaussianNoise, GaussianNoise]:
            first, second = (math.sqrt(2.0 * share * rho) for share in (part, 1.0 - part))
            return GaussianNoise(sensitivity, sensitivity / first), GaussianNoise(second, 1.0)

        rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
        first, second = schedule = schedule_of(rho)
        accountant, _ = best(schedule, budget.delta, budget.accountant)
        return Plan(
            schedule=schedule,
            accountant=accountant.name,
            details=TwoStages(
                expansion=expansion,
                looked=looked,
                full=full,
                neighbours=budget.neighbours,
                sensitivity=sensitivity,
                scale=first.scale,
                ratio=second.sensitivity,
                deviation=float(in_shares(looked).min() * first.scale / task.n),
                records=self.records or task.default_records,
            ),
            needs_answers=False,
        )

    def expected_error(self, task: Task, plan: Plan[TwoStages]) -> ExpectedError | None:
        """Estimate the error from the noise of the columns' shares, or of all that is asked."""
        planned = plan.details
        if task.frequent is None and not is_wide(task.workload):
            return None if planned.full is None else _expected_of_all(planned, planned.full, task.n)
        deviation = planned.deviation
        unit = 0.0 if task.frequent is not None else _of_empty_columns(task.workload)
        mean = (
            positive + unit * factor
            for positive, factor in zip(_POSITIVE_MEAN, _WIDE_MEAN, strict=True)
        )
        return ExpectedError(
            Estimate(*(min(factor * deviation, 1.0) for factor in _WIDE_MAX)),
            Estimate(*(min(factor * deviation, 1.0) for factor in mean)),
            "the deviation of the columns' shares, times what was left of it on seven tables",
        )

    def bytes_needed(self, task: Task, plan: Plan[TwoStages]) -> int:  # noqa: ARG002
        """Return the bytes of the features and the answers."""
        return bytes_on_features(task)

    def run(self, task: Task, plan: Plan[TwoStages], curator: Curator, session: Session) -> Outcome:
        """Look at the columns; then at what stands out, or at everything; and answer."""
        planned, n = plan.details, task.n
        columns = alike(planned.looked, planned.neighbours)
        seen = look(curator, columns, planned.scale, n)
        first = Shares.of(planned.looked, seen, planned.scale / n)
        workload, expansion, full = task.workload, planned.expansion, planned.full
        if task.frequent is not None:
            workload = task.frequent.workload(task.frequent.choose(first.values))
            expansion = Expansion.of(workload)
            full = everything(workload, expansion, planned.neighbours)
        known = Known(planned, n, workload, expansion, first, *first.posterior())
        if full is not None and tells_more(
            full,
            scale_for(full.sensitivity, planned.ratio) / n,
            known.departures,
            fullness(full.strategy.features, planned.looked, known.shares),
        ):
            outcome = _of_everything(known, full, curator, session)
        else:
            found = task.frequent is not None
            outcome = _of_what_stands_out(known, curator, session, found=found)
        assert outcome.measurements is not None
        looked = Measurements.of_features(planned.looked, seen, planned.scale / n)
        return replace(
            outcome,
            trace=({"stage": 1, "columns": len(planned.looked), "products": 0}, *outcome.trace),
            measurements=Measurements.joined((looked, outcome.measurements)),
            workload=None if task.frequent is None else workload,
        )


@dataclass(frozen=True, eq=False)
class Known:
    """What is known between the stages.

    Parameters
    ----------
    planned, n
        What was planned, and the number of rows.
    workload, expansion
        The queries, and what they are made of.
    first
        The first stage's noisy shares.
    shares, uncertain
        float64, one each: what these are likely to be, and what that may be off.
    """

    planned: TwoStages
    n: int
    workload: Workload
    expansion: Expansion
    first: Shares
    shares: Float64
    uncertain: Float64

    @property
    def by_bit(self) -> Float64:
        """The shares, 0 of bits that were not looked at: float64, shape ``(bits,)``."""
        shares = np.zeros(self.workload.domain.bits)
        shares[self.first.bits] = self.shares
        return shares

    @property
    def departures(self) -> Float64:
        """By how much each answer may differ from that of independent columns."""
        return departures_of(self.workload, self.by_bit)


def _of_what_stands_out(
    known: Known, curator: Curator, session: Session, *, found: bool
) -> Outcome:
    """Measure what may differ from what is known by more than its noise; answer by departures.

    ``found`` says that the first stage chose what is asked.
    """
    planned, n, features = known.planned, known.n, known.expansion.features
    domain, looked = features.domain, planned.looked
    expected = expected_departures(features, looked, known.shares, known.uncertain)
    chosen = worth_measuring(expected, _noise_of_one(planned, n))
    strategy = alike(Features(features.bits[chosen], domain), planned.neighbours)
    scale = scale_for(strategy.sensitivity, planned.ratio)
    noisy = look(curator, strategy, scale, n)

    single = singles_of(strategy.features)
    products = np.delete(chosen, single)
    again = Features(features.bits[chosen[single]], domain)
    second = Shares.of(again, noisy[single], scale / n)
    shares, uncertain = known.first.combined(second).posterior()
    means, off = np.zeros((2, domain.bits))
    means[known.first.bits] = np.where(looked.contrasts[:, 0], 1.0 - 2.0 * shares, shares)
    off[known.first.bits] = uncertain / in_shares(looked)
    measured = products, np.delete(noisy, single), scale / n
    departures = Departures(features, means, off, expected).with_pairs(*measured)
    model = departures.products(*measured)
    generator = np.random.default_rng(session.public_seed)
    mixture = mixture_of(
        known.first.bits, departures.means, features, model, products, generator, session
    ).model()
    return Outcome(
        answers=np.clip(known.expansion.answers(model), 0.0, 1.0),
        records=mixture.sample(planned.records, generator),
        trace=({"stage": 2, "columns": len(single), "products": len(products)},),
        intervals=share_intervals(
            known.workload, known.first, second, planned.neighbours, chosen=found
        ),
        measurements=Measurements.of_features(strategy.features, noisy, scale / n, CHOSEN),
        model=mixture,
    )


def _of_everything(
    known: Known, full: FeatureMeasurement, curator: Curator, session: Session
) -> Outcome:
    """Measure all that queries are made of, and fit a mixture to that and the first shares."""
    planned, n, domain = known.planned, known.n, known.workload.domain
    scale = scale_for(full.sensitivity, planned.ratio)
    drawn = Drawn(full, full.draw(curator, scale) / n, full.scales * scale / n)
    generator = np.random.default_rng(session.public_seed)
    fitting = Fitting.suited(n, planned.ratio, domain.bits)
    fitted = fit_mixture(
        with_shares(drawn, known.first), fitting, known.workload, n, generator, session
    )
    assert isinstance(fitted.model, ProductMixture)
    asked = np.unique(known.workload.literals[known.workload.literals >= 0] >> 1)
    model = with_others(fitted.model, asked, known.by_bit)
    columns = len(singles_of(full.strategy.features))
    stage = {"stage": 2, "columns": columns, "products": len(full.scales) - columns}
    return Outcome(
        answers=fitted.answers,
        records=model.sample(planned.records, generator),
        trace=(stage, *fitted.trace),
        intervals=drawn.intervals(),
        measurements=drawn.kept(),
        model=model,
    )


def _of_empty_columns(workload: Workload) -> float:
    """Return the answers' mean error if columns are nearly empty and their shares off by 1 each.

    (As standard deviations.) A query with one positive literal is off by that column's error, one
    with none by those of all its columns, one with more by nothing.
    """
    present = workload.literals >= 0
    positive = (present & (workload.literals & 1 == 0)).sum(axis=1)
    off = np.where(positive == 0, np.sqrt(present.sum(axis=1)), positive == 1)
    return float(math.sqrt(2.0 / math.pi) * off.mean())


def _expected_of_all(planned: TwoStages, full: FeatureMeasurement, n: int) -> ExpectedError:
    """Return what is left of the noise of everything, or less: the other way must promise less."""
    scale = scale_for(full.sensitivity, planned.ratio) / n
    most, mean = (
        Estimate(*(min(factor * scale * full.mean_deviation, 1.0) for factor in (0.0, *left[1:])))
        for left in (MAX_ERROR, MEAN_ERROR)
    )
    return ExpectedError(
        most,
        mean,
        "from the noise of all that is asked and the share of it that fits left on five public "
        "tables; less where columns turn out to be nearly empty",
    )


def _worth_at_most(features: int, budget: Budget, n: int) -> float:
    """Return how many features may be worth their noise, were the whole budget spent on them.

    That many have a noise of `_LARGEST`, each.
    """

    def schedule_of(rho: float) -> tuple[GaussianNoise]:
        return (GaussianNoise(math.sqrt(2.0 * rho), 1.0),)

    rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
    noise_of_one = budget.neighbours.furthest(2.0, 1.0) / (math.sqrt(2.0 * rho) * n)
    return min(float(features), (_LARGEST / noise_of_one) ** 2)


def _noise_of_one(planned: TwoStages, n: int) -> float:
    """Return the noise of the mean of a sign in the second stage, were it alone: its sensitivity is
    2, or 1 where a row is added or removed, for each row that neighbours differ in.
    """
    return planned.neighbours.furthest(2.0, 1.0) / (planned.ratio * n)
