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
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import Estimate, ExpectedError
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.mechanisms.matrix.departures import Departures
from dualquery.mechanisms.matrix.expansion import Expansion
from dualquery.mechanisms.matrix.looks import (
    Shares,
    alike,
    expected_departures,
    in_shares,
    look,
    scale_for,
    singles_of,
    worth_measuring,
)
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

_FIRST = 0.8
"""Share of rho that the first stage gets. Noise falls with the root of the number of features: the
second stage measures so few that a fifth gives it far less noise than the first has."""

_MAX_ERROR = (0.3, 4.0, 8.0)
_MEAN_ERROR = (0.0002, 0.05, 0.3)
"""Errors in standard deviations of a column's share after the first stage: least, middle and
largest of runs on npm-deps, kosarak, BMS-WebView-2, facebook-pages, msweb and groceries, widened a
little; the least are of positive queries. Other tables and queries may lie outside."""


@dataclass(frozen=True, kw_only=True)
class TwoStages(Details):
    """What the two stages measure, with how much noise.

    Parameters
    ----------
    expansion
        The queries as sums of features, products of signs; of frequent items a stand-in.
    looked
        What the first stage measures: features of one column.
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

        def schedule_of(rho: float) -> tuple[GaussianNoise, GaussianNoise]:
            first, second = (math.sqrt(2.0 * part * rho) for part in (_FIRST, 1.0 - _FIRST))
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
        """Estimate the error from the noise of the columns' shares; None if these are few."""
        if task.frequent is None and not is_wide(task.workload):
            return None  # what is left of the noise was measured on wide tables
        deviation = plan.details.deviation
        return ExpectedError(
            Estimate(*(min(factor * deviation, 1.0) for factor in _MAX_ERROR)),
            Estimate(*(min(factor * deviation, 1.0) for factor in _MEAN_ERROR)),
            "the deviation of the columns' shares, times what was left of it on six public tables",
        )

    def run(self, task: Task, plan: Plan[TwoStages], curator: Curator, session: Session) -> Outcome:
        """Measure twice, and answer."""
        planned, n = plan.details, task.n
        looked, domain = planned.looked, task.workload.domain
        columns = alike(looked, planned.neighbours)
        seen = look(curator, columns, planned.scale, n)
        first = Shares.of(looked, seen, planned.scale / n)
        workload, expansion = task.workload, planned.expansion
        if task.frequent is not None:
            workload = task.frequent.workload(task.frequent.choose(first.values))
            expansion = Expansion.of(workload)
        features = expansion.features

        shares, uncertain = first.posterior()
        expected = expected_departures(features, looked, shares, uncertain)
        chosen = worth_measuring(expected, _noise_of_one(planned, n))
        strategy = alike(Features(features.bits[chosen], domain), planned.neighbours)
        scale = scale_for(strategy.sensitivity, planned.ratio)
        noisy = look(curator, strategy, scale, n)

        single = singles_of(strategy.features)
        products = np.delete(chosen, single)
        again = Features(features.bits[chosen[single]], domain)
        second = Shares.of(again, noisy[single], scale / n)
        shares, uncertain = first.combined(shares, uncertain, second)
        means = np.zeros(domain.bits)
        means[first.bits] = np.where(looked.contrasts[:, 0], 1.0 - 2.0 * shares, shares)
        departures = Departures(features, means, expected)
        model = departures.shrunk(products, np.delete(noisy, single), scale / n)
        generator = np.random.default_rng(session.public_seed)
        mixture = mixture_of(
            first.bits, means, features, model, products, generator, session
        ).model()
        return Outcome(
            answers=np.clip(expansion.answers(model), 0.0, 1.0),
            records=mixture.sample(planned.records, generator),
            trace=(
                {"stage": 1, "columns": len(looked), "products": 0},
                {"stage": 2, "columns": len(single), "products": len(products)},
            ),
            intervals=share_intervals(
                workload, first, second, planned.neighbours, chosen=task.frequent is not None
            ),
            measurements=Measurements.joined(
                (
                    Measurements.of_features(looked, seen, planned.scale / n),
                    Measurements.of_features(strategy.features, noisy, scale / n, CHOSEN),
                )
            ),
            model=mixture,
            workload=None if task.frequent is None else workload,
        )


def _noise_of_one(planned: TwoStages, n: int) -> float:
    """Return the noise of the mean of a sign in the second stage, were it alone: its sensitivity is
    2, or 1 where a row is added or removed, for each row that neighbours differ in.
    """
    return planned.neighbours.furthest(2.0, 1.0) / (planned.ratio * n)
