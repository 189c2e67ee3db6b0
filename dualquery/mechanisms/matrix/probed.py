"""`probed`: a look at columns and pairs first; then everything, or the columns alone.

For few rows or small budgets. There independent columns may be nearer than a fit to everything, and
only the table knows: a fit to noisy products of three columns has the noise of measuring these,
where columns hardly depend on each other, and nothing to gain from them.
The first look gets a small part of the budget. What it tells of pairs says how far answers depart
from independence (`dependence`); what everything and what the columns alone would leave is known by
their noise. The rest of the budget goes where less is left.

**Privacy.** As of `staged`: two Gaussian measurements, adaptively composed. The schedule fixes both
ratios of sensitivity to scale before a row is read. What the second one measures is chosen by the
noisy numbers of the first; the room proves its sensitivity, and its scale is set to the planned
ratio. All else is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import Estimate, ExpectedError
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.mechanisms.matrix.cells import CellFeatures
from dualquery.mechanisms.matrix.columns import learned, plan_columns, spread_after
from dualquery.mechanisms.matrix.columns_alone import public_spreads, resolution_of
from dualquery.mechanisms.matrix.dependence import (
    Pairs,
    means_of_products,
    spread_of_departures,
    spread_of_fit,
    spread_of_product_fit,
)
from dualquery.mechanisms.matrix.drawn import Drawn
from dualquery.mechanisms.matrix.expansion import (
    MOST_LITERALS,
    Expansion,
    bytes_on_features,
)
from dualquery.mechanisms.matrix.fitting import (
    MAX_ERROR,
    MEAN_ERROR,
    Fitting,
    fit_mixture,
)
from dualquery.mechanisms.matrix.looks import (
    Shares,
    by_precision,
    look,
    pairs_of,
    plan_looks,
    scale_for,
    singles_of,
)
from dualquery.mechanisms.matrix.measurement import (
    FeatureMeasurement,
    QueryMeasurement,
    aim_of,
    measurement_for,
)
from dualquery.mechanisms.matrix.mixture import MixtureFit
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.matrix.scales import plan_strategy
from dualquery.mechanisms.matrix.share_intervals import share_intervals
from dualquery.mechanisms.matrix.shrinkage import learned_from_products
from dualquery.mechanisms.matrix.stages import measured
from dualquery.mechanisms.options import check_whole
from dualquery.mechanisms.protocol import (
    Budget,
    Details,
    Mechanism,
    Outcome,
    Plan,
    Session,
    Task,
)
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

_FIRST, _LEAST = 0.2, 0.01
"""Part of the budget that the first look gets, at most and at least: less where the noise of
columns' shares hides departures, so that a look at pairs tells little; and where less is enough."""

_ENOUGH = 0.02
"""Standard error of the mean square of departures, over the expected, that is small enough. With
five times as much, generated tables of latent classes were taken for independent columns."""

_COMPONENTS, _STEPS, _PULL = 64, 600, 0.2
"""Of the `MixtureFit` that records are drawn from, as of `staged_mixture`."""

_MEAN, _MAX = (0.05, 0.6, 2.0), (1.3, 6.0, 45.0)
"""Mean and largest errors, in units of the spread that is expected of answers: least, middle and
largest of 320 runs on generated and public tables (the least on KDD99), widened a little. The
largest are in units of what columns alone leave, which may be all that is measured."""


COLUMNS_ALONE = (
    "a first look found too little that ties columns together for this number of rows and this "
    "epsilon: only single columns were measured further, so answers and records show links between "
    "columns weaker than they are, or not at all"
)
"""What is said of a release that measured columns alone."""


@dataclass(frozen=True, kw_only=True)
class TwoLooks(Details):
    """What the two looks measure, with how much noise.

    Parameters
    ----------
    first, small
        Columns and pairs, as the first look measures them; int64: their places in everything.
    full
        Everything, as the second look may measure it.
    scale
        Factor on the first look's scales, in rows.
    ratio
        Sensitivity over scale of the second look.
    deviation, of_columns, unbiased
        By how much answers are expected to err, as a share of the rows: root mean squares of what
        leaves less, of columns alone, and of unbiased answers from everything.
    records
        Number of synthetic records.
    """

    first: Strategy = field(compare=False)
    small: NDArray[np.int64] = field(compare=False)
    full: FeatureMeasurement | QueryMeasurement = field(compare=False)
    scale: float
    ratio: float
    deviation: float
    of_columns: float
    unbiased: float
    records: int

    def parameters(self) -> Mapping[str, Any]:
        """Return the noise of both looks."""
        return {
            "features": len(self.first.features),
            "neighbours": self.first.neighbours.value,
            "sensitivity": self.first.sensitivity,
            "scale": self.scale,
            "second_ratio": self.ratio,
            "deviation": self.deviation,
            "records": self.records,
        }


@dataclass(frozen=True, kw_only=True)
class Probed(Mechanism[TwoLooks]):
    """Looks at columns and pairs, then at everything or at columns; for much noise."""

    name: ClassVar[str] = "probed"
    pure: ClassVar[bool] = False

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_whole(self, "records")

    def statistics(self, queries: Queries) -> Workload:
        """Hold the queries' own answers; features are counted in passes of their own."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[TwoLooks]:
        """Fix both looks' ratios of sensitivity to scale; they fill the budget."""
        if budget.delta == 0:
            raise BadInputError("probed needs --delta above 0; with delta 0 use laplace or mwem")
        workload, neighbours = task.workload, budget.neighbours
        if workload.way > MOST_LITERALS:
            raise BadInputError(
                f"a query has {workload.way} literals; probed takes at most {MOST_LITERALS}"
            )
        spreads = public_spreads(task, budget)
        if not spreads.columns:
            raise BadInputError("probed has nothing to measure: no query depends on a column")
        full = measurement_for(task, neighbours, fitted=True)
        if isinstance(full, FeatureMeasurement):
            strategy = full.strategy
        else:
            expansion = full.cells.expansion if full.cells else Expansion.of(workload).in_blocks()
            strategy = plan_strategy(expansion, neighbours, aim_of(workload, fitted=True))
        small = np.flatnonzero((strategy.features.bits >= 0).sum(axis=1) <= 2)
        first = Strategy(strategy.features.part(small), strategy.scales[small], neighbours)
        part = min(
            _FIRST * spreads.departures / (spreads.departures + spreads.columns),
            resolution_of(first, task, budget) / _ENOUGH,
        )
        part = max(part, _LEAST)
        schedule, accountant = plan_looks(first.sensitivity, (part, 1.0 - part), budget)
        return Plan(
            schedule=schedule,
            accountant=accountant,
            details=TwoLooks(
                first=first,
                small=small,
                full=full,
                scale=schedule[0].scale,
                ratio=schedule[1].sensitivity,
                deviation=spreads.least,
                of_columns=spreads.of_columns,
                unbiased=spreads.unbiased,
                records=self.records or task.default_records,
            ),
            needs_answers=full.of_queries,
        )

    def expected_error(self, task: Task, plan: Plan[TwoLooks]) -> ExpectedError:  # noqa: ARG002
        """Estimate the error from the noise of shares and expected departures.

        A fit to everything may leave as little as `matrix` does, columns alone all departures.
        """
        planned = plan.details
        most, mean = (
            Estimate(
                min(low * planned.deviation, of_fits[0] * planned.unbiased, 1.0),
                min(about * planned.deviation, of_fits[1] * planned.unbiased, 1.0),
                min(high * planned.of_columns, 1.0),
            )
            for (low, about, high), of_fits in ((_MAX, MAX_ERROR), (_MEAN, MEAN_ERROR))
        )
        return ExpectedError(
            most,
            mean,
            "from the noise of the columns' shares, how far columns usually are from independent, "
            "and what fits leave; the range is that of runs on generated and public tables",
        )

    def bytes_needed(self, task: Task, plan: Plan[TwoLooks]) -> int:  # noqa: ARG002
        """Return the bytes of the features and the answers."""
        return bytes_on_features(task)

    def run(self, task: Task, plan: Plan[TwoLooks], curator: Curator, session: Session) -> Outcome:
        """Look at columns and pairs; then measure what leaves less to err about."""
        planned, n = plan.details, task.n
        means = look(curator, planned.first, planned.scale, n)
        seen = Seen(planned, task.workload, n, task.rows, means)
        columns = plan_columns(seen.workload, seen.learned[0], planned.first.neighbours)
        if seen.everything_leaves_less(columns):
            outcome = _of_everything(seen, curator, session)
        else:
            outcome = _of_columns(seen, columns, curator, session)
        assert outcome.measurements is not None
        kept = Measurements.of_features(planned.first.features, means, seen.deviations)
        return replace(
            outcome,
            trace=(
                measured(1, columns=len(seen.shares.bits), products=len(seen.paired)),
                *outcome.trace,
            ),
            measurements=Measurements.joined((kept, outcome.measurements)),
        )


@dataclass(frozen=True, eq=False)
class Seen:
    """What is known after the first look.

    Parameters
    ----------
    planned, workload, n, rows
        What was planned, the queries, and the numbers of rows that weights and chance go by.
    means
        float64: the noisy means of the first look's features.
    """

    planned: TwoLooks
    workload: Workload
    n: int
    rows: int
    means: Float64

    @property
    def deviations(self) -> Float64:
        """Standard deviations of the noise of these means."""
        return self.planned.first.scales * self.planned.scale / self.n

    @cached_property
    def shares(self) -> Shares:
        """The noisy shares of single columns."""
        features = self.planned.first.features
        alone = singles_of(features)
        return Shares.of(features.part(alone), self.means[alone], self.deviations[alone])

    @cached_property
    def learned(self) -> tuple[Float64, Float64]:
        """The columns' distributions, and what shares may be off (`columns.learned`)."""
        return learned(self.shares, self.workload.domain)

    @cached_property
    def paired(self) -> NDArray[np.int64]:
        """Which features are about two columns."""
        return pairs_of(self.planned.first.features)

    def pairs(self, chances: Float64, uncertain: Float64) -> Pairs:
        """Return the pairs beside independent columns with these shares."""
        features, at = self.planned.first.features, self.paired
        products = ProductTerms.of_features(features.part(at))
        return Pairs.of(products, self.means[at], self.deviations[at], chances, uncertain)

    def noise_of(self, measurement: Strategy | FeatureMeasurement | QueryMeasurement) -> Float64:
        """Return the standard deviations of the second look's noise, were this measured."""
        scale = scale_for(measurement.sensitivity, self.planned.ratio)
        return measurement.scales * scale / self.n

    def everything_leaves_less(self, columns: Strategy) -> bool:
        """Return whether a fit to everything is likely to be nearer than the columns alone.

        ``columns`` is what the second look measures of these.
        """
        chances, uncertain = self.learned
        left = self.pairs(chances, uncertain).left()
        departures = spread_of_departures(self.workload, chances, self.rows, left)

        nothing = np.zeros(len(columns.scales))
        again = Shares.of(columns.features, nothing, self.noise_of(columns))
        noise = spread_after(self.workload, chances, uncertain, self.shares, again)
        alone = math.hypot(noise, departures)

        full = self.planned.full
        product = spread_of_product_fit(full.products, self.noise_of(full), self.workload, chances)
        return spread_of_fit(product, departures) < alone


def _of_everything(seen: Seen, curator: Curator, session: Session) -> Outcome:
    """Measure everything, and fit a mixture to it; to both looks, where both tell of features."""
    planned, n, full = seen.planned, seen.n, seen.planned.full
    scale = scale_for(full.sensitivity, planned.ratio)
    drawn = Drawn(full, full.draw(curator, scale) / n, seen.noise_of(full))
    known = drawn.known
    if isinstance(known.source, FeatureMeasurement | CellFeatures):
        means, deviations = known.means.copy(), known.deviations.copy()
        means[planned.small], deviations[planned.small] = by_precision(
            means[planned.small], deviations[planned.small], seen.means, seen.deviations
        )
        known = replace(known, means=means, deviations=deviations)
    generator = np.random.default_rng(session.public_seed)
    fitting = Fitting.suited(n, planned.ratio, seen.workload.domain.bits)
    fitted = fit_mixture(known, fitting, seen.workload, n, generator, session)
    return Outcome(
        answers=fitted.answers,
        records=fitted.model.sample(planned.records, generator),
        trace=(_measured(full), *fitted.trace),
        intervals=drawn.intervals(seen.workload),
        measurements=drawn.kept(),
        model=fitted.model,
    )


def _measured(full: FeatureMeasurement | QueryMeasurement) -> Mapping[str, int]:
    """Return the trace entry of a second look at everything."""
    if isinstance(full, QueryMeasurement):
        return measured(2, queries=len(full.scales))
    columns = len(singles_of(full.strategy.features))
    return measured(2, columns=columns, products=len(full.scales) - columns)


def _of_columns(seen: Seen, columns: Strategy, curator: Curator, session: Session) -> Outcome:
    """Measure the columns again; answer by both looks at them, and by the pairs' departures."""
    planned, n, workload = seen.planned, seen.n, seen.workload
    noisy = look(curator, columns, scale_for(columns.sensitivity, planned.ratio), n)
    second = Shares.of(columns.features, noisy, seen.noise_of(columns))
    products = ProductTerms.of_features(planned.first.features)
    shares = seen.shares.combined(second)
    chances, uncertain = learned_from_products(products, seen.means, seen.deviations, shares)
    pairs = seen.pairs(chances, uncertain)
    means = means_of_products(products, chances)
    means[seen.paired] += pairs.departures
    generator = np.random.default_rng(session.public_seed)
    fit = MixtureFit(products, means, seen.deviations, _COMPONENTS, _STEPS, _PULL)
    model = fit.run(generator, session.threads, session.progress).model()
    return Outcome(
        answers=pairs.answers(workload, chances),
        records=model.sample(planned.records, generator),
        trace=(measured(2, columns=len(noisy)),),
        remarks=(COLUMNS_ALONE,),
        # The first look decided that there are any: it gives none.
        intervals=share_intervals(workload, (second,), planned.first.neighbours),
        measurements=Measurements.of_features(
            columns.features, noisy, seen.noise_of(columns), CHOSEN
        ),
        model=model,
    )
