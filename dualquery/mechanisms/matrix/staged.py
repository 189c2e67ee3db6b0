"""`staged`: the columns' shares first; then, with what is left, only what is worth its noise.

For tables of many binary columns that are nearly empty. Of thousands of columns a workload asks for
hundreds of thousands of products, nearly all of them as good as known once the columns' shares
are: a pair of columns cannot be far from independent where one is nearly empty. So the first stage
measures every column, and the second, with far less noise, the columns and products that the first
left uncertain. Of tables whose columns turn out to be full everything is measured (`everything`),
or all columns again (`second_look`), or the queries themselves where these are fewer than the
columns (`asked`).

Of thousands of columns nobody knows before whether they are full. So a glance of `_GLANCE` of the
budget comes before: if they are, all the rest is spent on everything.

**Privacy.** Two Gaussian measurements (three of thousands of columns), adaptively composed. The
schedule fixes before any row is read how many, and the ratio of sensitivity to scale of each. What
a later one measures is chosen by the noisy numbers of those before it; whatever is chosen, its
sensitivity over all legal records is proven by the room, its scale is set to the planned ratio, and
the ledger refuses it otherwise. The cost of Gaussian noise depends on that ratio alone, so it is
fixed although the content is not: zero-concentrated and Gaussian differential privacy compose
adaptively where each mechanism, for every outcome of those before it, has a cost fixed beforehand
(Bun and Steinke 2016, Lemma 2.3; Dong, Roth and Su, "Gaussian differential privacy", JRSS B 84,
2022, Theorem 4). All else is post-processing.

**Queries about frequent items** (`dualquery.queries.generate.frequent`) are made between the
stages, from the noisy shares of the first: what they are is post-processing of these shares, and so
is that the second stage measures products of theirs. The first measures all items then, asked or
not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import ExpectedError
from dualquery.estimates.independence import CORRELATION
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.mechanisms.matrix.asked import asks_less, of_queries
from dualquery.mechanisms.matrix.departures import Departures
from dualquery.mechanisms.matrix.drawn import Drawn
from dualquery.mechanisms.matrix.everything import (
    everything,
    with_others,
    with_shares,
)
from dualquery.mechanisms.matrix.expansion import Expansion, bytes_on_features
from dualquery.mechanisms.matrix.fitting import (
    Fitting,
    fit_mixture,
)
from dualquery.mechanisms.matrix.looks import (
    Shares,
    alike,
    expected_departures,
    in_shares,
    look,
    means_of,
    plan_looks,
    scale_for,
    singles_of,
)
from dualquery.mechanisms.matrix.measurement import FeatureMeasurement
from dualquery.mechanisms.matrix.second_look import (
    SecondLook,
    columns_and_some_pairs,
    second_look,
    standing_out,
)
from dualquery.mechanisms.matrix.share_intervals import share_intervals
from dualquery.mechanisms.matrix.staged_error import error_of_all, error_of_wide
from dualquery.mechanisms.matrix.staged_mixture import mixture_of
from dualquery.mechanisms.matrix.stages import Known, TwoStages, measured, sensitivity_of_sign
from dualquery.mechanisms.matrix.weighing import weighed_together
from dualquery.mechanisms.matrix.width import is_wide
from dualquery.mechanisms.options import check_whole
from dualquery.mechanisms.protocol import (
    Budget,
    Mechanism,
    Outcome,
    Plan,
    Session,
    Task,
)
from dualquery.models.mixture import ProductMixture
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.rows.repeats import side_by_side
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

_SECOND = 1000
"""Features that the second stage may measure of a wide table, to divide the budget by; of others it
may measure all that can be worth it (`_worth_at_most`). Where d numbers and M others are measured
with shares a and 1 - a of rho, their variances are as d / a and M / (1 - a); the sum is least where
a is to 1 - a as the root of d is to that of M. Of 17,770 columns the first stage gets four fifths;
a fortieth of 100 about which all triples are asked."""

_EQUAL = 0.5
"""The first stage's part where the second may measure queries themselves. Some answers are told
best by their columns, others by themselves; with half of the budget for each, none has more than
1.42 times the noise that it would have with all of it."""

_GLANCE = 0.04
"""Part of the budget with which columns of a wide table are looked at first of all: it says whether
they are full, so that the rest is better spent on everything that is asked."""

_LARGEST = 2.0 * CORRELATION
"""A departure than which hardly any is expected to be larger: a noise of which is too much."""


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
        check_whole(self, "records")

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

        directly = task.frequent is None and asks_less(
            task.workload, looked, sensitivity, budget.neighbours
        )
        full = None
        if not (directly or is_wide(task.workload)):
            full = everything(task.workload, expansion, budget.neighbours)
        others = _SECOND if full is None else _worth_at_most(len(features), budget, task.n)
        part = _EQUAL if directly else 1.0 / (1.0 + math.sqrt(others / len(looked)))

        wide = task.frequent is None and not directly and is_wide(task.workload)
        parts: tuple[float, ...] = (part, 1.0 - part)
        if wide:
            parts = (_GLANCE, *((1.0 - _GLANCE) * each for each in parts))
        schedule, accountant = plan_looks(sensitivity, parts, budget)
        first, *later = schedule
        again = later[0].sensitivity if wide else 0.0
        both = sensitivity / math.hypot(sensitivity / first.scale, again)
        return Plan(
            schedule=schedule,
            accountant=accountant,
            details=TwoStages(
                expansion=expansion,
                looked=looked,
                full=full,
                directly=directly,
                neighbours=budget.neighbours,
                sensitivity=sensitivity,
                scale=first.scale,
                again=again,
                ratio=later[-1].sensitivity,
                deviation=float(in_shares(looked).min() * both / task.n),
                records=self.records or task.default_records,
            ),
            needs_answers=directly,
        )

    def expected_error(self, task: Task, plan: Plan[TwoStages]) -> ExpectedError | None:
        """Estimate the error from the noise of the columns' shares, or of all that is asked."""
        planned = plan.details
        if task.frequent is not None or is_wide(task.workload):
            return error_of_wide(task, planned.deviation)
        if planned.full is None:
            return None
        scale = scale_for(planned.full.sensitivity, planned.ratio) / task.n
        return error_of_all(scale * planned.full.mean_deviation)

    def bytes_needed(self, task: Task, plan: Plan[TwoStages]) -> int:  # noqa: ARG002
        """Return the bytes of the features and the answers."""
        return bytes_on_features(task)

    def run(self, task: Task, plan: Plan[TwoStages], curator: Curator, session: Session) -> Outcome:
        """Look at the columns; then at queries, everything, or what stands out; and answer."""
        planned, n, looked = plan.details, task.n, plan.details.looked
        columns = alike(looked, planned.neighbours)
        seen = [(look(curator, columns, planned.scale, n), planned.scale / n)]
        first = Shares.of(looked, *seen[0])
        workload, expansion, full = task.workload, planned.expansion, planned.full
        if task.frequent is not None:
            workload = task.frequent.workload(task.frequent.choose(first.values))
            expansion = Expansion.of(workload)
            if not is_wide(workload):
                full = everything(workload, expansion, planned.neighbours)
        known = Known(planned, n, workload, expansion, first, *first.posterior())
        ratios, around = [planned.ratio], first
        if planned.again:
            ratios = [planned.again, planned.ratio]
            glanced = replace(known, planned=replace(planned, ratio=math.hypot(*ratios)))
            if known.columns_full:
                full = everything(workload, expansion, planned.neighbours)
            if full is None or second_look(glanced, full) is not SecondLook.EVERYTHING:
                full, ratios = None, [planned.ratio]
                scale = scale_for(columns.sensitivity, planned.again)
                seen.append((look(curator, columns, scale, n), scale / n))
                # The glance decided that there is this look: intervals rest on its noise alone.
                around = Shares.of(looked, *seen[1])
                first = first.combined(around)
                glanced = Known(planned, n, workload, expansion, first, *first.posterior())
            known = glanced
        what = second_look(known, full)
        if planned.directly and known.columns_full:
            outcome = of_queries(known, curator, session)
        elif full is not None and what is SecondLook.EVERYTHING:
            outcome = _of_everything(known, full, ratios, curator, session)
        else:
            found = task.frequent is not None
            outcome = _of_some(known, what, around, curator, session, found=found)
        assert outcome.measurements is not None
        kept = [Measurements.of_features(looked, *each) for each in seen]
        return replace(
            outcome,
            trace=(measured(1, columns=len(looked)), *outcome.trace),
            measurements=Measurements.joined((*kept, outcome.measurements)),
            workload=None if task.frequent is None else workload,
        )


def _of_some(
    known: Known,
    what: SecondLook,
    around: Shares,
    curator: Curator,
    session: Session,
    *,
    found: bool,
) -> Outcome:
    """Measure all columns, or what stands out of its noise (`second_look`).

    Answers are those of independent columns with the departures that were measured. ``found`` says
    that the first stage chose what is asked.
    """
    planned, n, features = known.planned, known.n, known.expansion.features
    domain, looked = features.domain, planned.looked
    expected = expected_departures(features, looked, known.shares, known.uncertain)
    if what is SecondLook.COLUMNS:
        chosen = columns_and_some_pairs(features, expected, known.noise_of_sign)
    else:
        chosen = standing_out(features, expected, known.noise_of_sign)
    generator = np.random.default_rng(session.public_seed)
    (apart,) = generator.spawn(1)
    others = features.bits[chosen]
    weighed = weighed_together(
        known.workload,
        known.first,
        np.where(looked.contrasts[:, 0], known.shares, 1.0),
        known.uncertain,
        others,
        apart,
    )
    strategy = alike(Features(side_by_side(others, weighed), domain), planned.neighbours)
    scale = scale_for(strategy.sensitivity, planned.ratio)
    noisy = look(curator, strategy, scale, n)

    own, together = noisy[: len(chosen)], noisy[len(chosen) :]
    factors = (others >= 0).sum(axis=1)
    single, pair = factors == 1, factors == 2
    again = Features(others[single], domain)
    second = Shares.of(again, own[single], scale / n)
    shares, uncertain = known.first.combined(second).posterior()
    means = known.at_bits(means_of(looked, shares))
    off = known.at_bits(uncertain / in_shares(looked))
    departures = Departures(features, means, off, expected).with_columns(
        chosen[pair], weighed, np.append(own[pair], together), scale / n
    )
    products = chosen[~single]
    model = departures.products(products, own[~single], scale / n)
    mixture = mixture_of(
        known.first.bits, departures.means, features, model, products, generator, session
    ).model()
    return Outcome(
        answers=np.clip(known.expansion.answers(model), 0.0, 1.0),
        records=mixture.sample(planned.records, generator),
        trace=(
            measured(2, columns=int(single.sum()), products=len(products), weighed=len(weighed)),
        ),
        intervals=share_intervals(
            known.workload,
            (around, second),
            planned.neighbours,
            chosen_by=around if found else None,
        ),
        measurements=Measurements.of_features(strategy.features, noisy, scale / n, CHOSEN),
        model=mixture,
    )


def _of_everything(
    known: Known,
    full: FeatureMeasurement,
    ratios: Sequence[float],
    curator: Curator,
    session: Session,
) -> Outcome:
    """Measure all that queries are made of, and fit a mixture to that and the first shares.

    What was planned as several looks is one measurement of the sum of their precisions.
    """
    planned, n, domain = known.planned, known.n, known.workload.domain
    together = math.hypot(*ratios)
    noisy, kept = np.zeros(len(full.scales)), []
    for ratio in ratios:
        own = scale_for(full.sensitivity, ratio)
        sums = full.draw(curator, own)
        noisy += (ratio / together) ** 2 * sums
        kept.append(full.kept(sums / n, full.scales * own / n))
    scale = scale_for(full.sensitivity, together)
    drawn = Drawn(full, noisy / n, full.scales * scale / n)
    generator = np.random.default_rng(session.public_seed)
    fitting = Fitting.suited(n, together, domain.bits)
    fitted = fit_mixture(
        with_shares(drawn.known, known.first), fitting, known.workload, n, generator, session
    )
    assert isinstance(fitted.model, ProductMixture)
    asked = np.unique(known.workload.literals[known.workload.literals >= 0] >> 1)
    model = with_others(fitted.model, asked, known.shares_at_bits)
    columns = len(singles_of(full.strategy.features))
    stage = measured(2, columns=columns, products=len(full.scales) - columns)
    return Outcome(
        answers=fitted.answers,
        records=model.sample(planned.records, generator),
        trace=(stage, *fitted.trace),
        intervals=drawn.intervals(known.workload),
        measurements=Measurements.joined(kept),
        model=model,
    )


def _worth_at_most(features: int, budget: Budget, n: int) -> float:
    """Return how many features may be worth their noise, were the whole budget spent on them.

    That many have a noise of `_LARGEST`, each.
    """
    scale = calibrate_gaussian_scale(
        budget.epsilon, budget.delta, sensitivity_of_sign(budget.neighbours), budget.accountant
    )
    return min(float(features), (_LARGEST * n / scale) ** 2)
