"""`adaptive`: measure main effects, judge, measure what is worth its noise, estimate, answer.

**Privacy.** Gaussian measurements, adaptively composed: the schedule fixes how many, and the ratio
of sensitivity to scale of each, before a row is read. Earlier noisy numbers choose what a later one
measures; the room proves the sensitivity of whatever is chosen, its scale is set to the planned
ratio, and the ledger refuses it otherwise (Bun and Steinke 2016, Lemma 2.3; Dong, Roth and Su,
"Gaussian differential privacy", JRSS B 84, 2022, Theorem 4). All else is post-processing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import ExpectedError
from dualquery.estimates.intervals import Intervals
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.mechanisms.adaptive.ensemble import fit_mixture, fit_records
from dualquery.mechanisms.adaptive.evidence import (
    Evidence,
    Shares,
    of_order,
    scale_for,
    share_intervals,
)
from dualquery.mechanisms.adaptive.expansion import Expansion, ProductTerms, bytes_on_features
from dualquery.mechanisms.adaptive.interactions import Interactions, beyond_pairs
from dualquery.mechanisms.adaptive.measurement import Measurement, QueryMeasurement, sums_of
from dualquery.mechanisms.adaptive.mixture_fit import STEPS, MixtureFit, mixture_of, with_columns
from dualquery.mechanisms.adaptive.predictions import expansion_of, expected_error, independent
from dualquery.mechanisms.adaptive.prior import SCALES, posterior_interactions
from dualquery.mechanisms.adaptive.stage_planner import (
    ColumnEvidence,
    PairEvidence,
    Stages,
    choose_first,
    plan_stages,
)
from dualquery.mechanisms.options import check_choice, check_number, check_whole
from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.models.mixture import ProductMixture
from dualquery.models.model import Model
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError

Float64: TypeAlias = NDArray[np.float64]

COLUMNS_ALONE = (
    "a first look found too little that ties columns together for this number of rows and epsilon: "
    "only columns were measured further, so links between them are shown weaker, or not at all"
)


@dataclass(frozen=True, kw_only=True)
class Adaptive(Mechanism[Stages]):
    """Gaussian noise on features of the queries, in stages; answers from what all of them say.

    The planner decides by predicted errors which stages there are (`stage_planner`).
    """

    name: ClassVar[str] = "adaptive"
    pure: ClassVar[bool] = False
    finds_frequent: ClassVar[bool] = True
    shortens: ClassVar[bool] = True

    first: Literal["auto", "everything", "pairs", "columns"] = "auto"
    """What the first stage measures; auto chooses by predicted errors."""

    components: int | None = None
    """Product distributions of the mixture; 0 for the unbiased answers of one stage alone, None for
    as many as the budget can tell apart. Records of columns of many values take more."""

    pull: float | None = None
    """Part of a step by which components are shrunk towards their mean, from 0 to 1, against noise.
    None for what usually suits rows and noise; a trial says how far to trust the fit (trace)."""

    steps: int = STEPS
    """Gradient steps of the fit, at most: it ends where noise explains the residual."""

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_choice(self, "first")
        check_whole(self, "components", least=0)
        check_whole(self, "steps", "records")
        check_number(self, "a number from 0 to 1", lambda x: 0 <= x <= 1, "pull")
        if self.components == 0 and self.first in ("pairs", "columns"):
            raise BadInputError(
                "components=0 asks for unbiased answers, which are measured in one stage; first is "
                f"{self.first!r}: leave one of them out"
            )

    @property
    def makes_records(self) -> bool:
        """Only a fit gives records."""
        return self.components != 0

    def statistics(self, queries: Queries) -> Workload:
        """Hold the queries' own answers; features are counted in passes of their own."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[Stages]:
        """Choose the first stage by public facts, and fix the ratios of all."""
        if budget.delta == 0:
            raise BadInputError(f"{self.name} needs --delta above 0; at 0 use laplace or mwem")
        first, reason = "everything", "options of one stage were given"
        if self.first != "auto":
            first, reason = self.first, "it was asked for"
        elif self.components is None and self.pull is None:
            first, reason = choose_first(task, budget)
        if task.frequent is not None and first != "columns":
            raise BadInputError(f"first={first} cannot find frequent items; first=columns can")
        fit = self.components, self.steps, self.pull
        return plan_stages(task, budget, first, reason, self.records or task.default_records, *fit)

    def expected_error(self, task: Task, plan: Plan[Stages]) -> ExpectedError:
        """Return the error to expect: predicted errors times factors that runs gave."""
        return expected_error(task, plan.details.predicted, fitted=self.makes_records)

    def bytes_needed(self, task: Task, plan: Plan[Stages]) -> int:
        """Return the bytes of answers and features, each of these in eight arrays by scale."""
        measured = plan.details.full or plan.details.looked
        features = len(measured.scales) if measured and self.makes_records else 0
        return bytes_on_features(task) + 8 * SCALES.nbytes * features

    def run(self, task: Task, plan: Plan[Stages], curator: Curator, session: Session) -> Outcome:
        """Measure stage by stage, estimate, and answer."""
        run = _Run(self, plan.details, task, curator, session)
        ways = {"everything": run.at_once, "pairs": run.after_pairs, "columns": run.after_columns}
        return ways[plan.details.first]()


@dataclass(frozen=True, kw_only=True)
class Matrix(Adaptive):
    """`adaptive` with one stage, which measures everything. The name goes in 0.3."""

    name: ClassVar[str] = "matrix"
    first: Literal["auto", "everything", "pairs", "columns"] = "everything"


@dataclass(frozen=True, kw_only=True)
class Probed(Adaptive):
    """`adaptive` with a first look at columns and pairs. The name goes in 0.3."""

    name: ClassVar[str] = "probed"
    first: Literal["auto", "everything", "pairs", "columns"] = "pairs"


@dataclass(frozen=True, kw_only=True)
class Staged(Adaptive):
    """`adaptive` with a first look at columns. The name goes in 0.3."""

    name: ClassVar[str] = "staged"
    first: Literal["auto", "everything", "pairs", "columns"] = "columns"


class _Run:
    """One run of the plan: what is measured after what, and what comes of it."""

    def __init__(
        self, mechanism: Adaptive, plan: Stages, task: Task, curator: Curator, session: Session
    ) -> None:
        self.mechanism, self.plan, self.task = mechanism, plan, task
        self.curator, self.session, self.n = curator, session, task.n
        self.generator = np.random.default_rng(session.public_seed)
        self.how = task, plan.fitting, self.generator, session
        self.kept: list[Measurements] = []
        self.trace: list[Mapping[str, int]] = []

    def at_once(self) -> Outcome:
        """Measure everything in one stage; fit, and answer."""
        planned, full = self.plan, self.plan.full
        assert full is not None
        found = self._measured(full, (planned.sensitivity / planned.scale,))
        if self.mechanism.makes_records:
            return self._fitted(found, found, self.task.workload)
        return self._outcome(found.unbiased, None, found.intervals(self.task.workload))

    def after_pairs(self) -> Outcome:
        """Look at columns and pairs; then measure everything, queries, or the columns again."""
        planned, workload = self.plan, self.task.workload
        looked, full = planned.looked, planned.full
        assert looked is not None
        assert full is not None
        look = self._looked(looked, planned.scale, looked.note)
        seen = PairEvidence(planned.neighbours, *look, workload, self.n, self.task.rows)
        following = seen.next_stage(full, *planned.ratios)
        if isinstance(following, Strategy):
            return self._columns_again(seen, following, *planned.ratios)
        if isinstance(following, QueryMeasurement):
            return self._by_queries(seen.shares.shrunk(workload.domain), following, planned.ratios)
        found = self._measured(following, planned.ratios)
        small = of_order(following.strategy.features, 1, 2)
        return self._fitted(found, found.combined(small, seen.means, seen.deviations), workload)

    def _columns_again(self, seen: PairEvidence, columns: Strategy, ratio: float) -> Outcome:
        """Measure the columns again; answer by both stages, and by the pairs' interactions."""
        task, scale = self.task, scale_for(columns.sensitivity, ratio)
        second = Shares.of(*self._looked(columns, scale, CHOSEN))
        posterior = seen.shares.combined(second).posterior(task.queries.domain, planned=False)
        found = Interactions.fit(seen.products, seen.means, seen.deviations, *posterior)
        how = self.plan.fitting.brief(task.queries.domain)
        fit = MixtureFit(seen.products, found.fitted, seen.deviations, how)
        mixture = fit_records(fit, seen.means, found, task, self.generator, self.session)
        expansion = expansion_of(task)
        means = found.means(ProductTerms.of_features(expansion.features))
        # The first stage decided that there are any: it gives none.
        intervals = share_intervals(task.workload, (second,), self.plan.neighbours)
        return self._outcome(expansion.answers(means), mixture.model(), intervals, COLUMNS_ALONE)

    def after_columns(self) -> Outcome:
        """Look at columns; then measure all at once, or columns again and what is worth it."""
        planned, looked, task = self.plan, self.plan.looked, self.task
        assert looked is not None
        shares = around = Shares.of(*self._looked(looked, planned.scale))
        workload, expansion, ratios = task.workload, expansion_of(task), list(planned.ratios)
        if task.frequent is not None:
            workload = task.frequent.workload(task.frequent.choose(shares.values))
            expansion = Expansion.of(workload)
        ratio = math.hypot(*ratios)
        seen = ColumnEvidence(looked, shares, workload, expansion, self.n, task.rows, ratio)
        full = seen.all_at_once(held=task.frequent is None)
        if isinstance(full, QueryMeasurement):
            outcome = self._by_queries(seen.posterior, full, ratios)
        elif full is not None:
            found = self._measured(full, ratios)
            evidence = found.combined(*shares.as_products(found.source.products))
            outcome = self._fitted(found, evidence, workload, seen.posterior)
        else:
            if len(ratios) > 1:
                # The first look decided that there is this one: intervals rest on it alone.
                scale = scale_for(looked.sensitivity, ratios.pop(0))
                around = Shares.of(*self._looked(looked, scale))
                shares = shares.combined(around)
                seen = replace(seen, shares=shares, ratio=math.hypot(*ratios))
            outcome = self._chosen(seen, around)
        return replace(outcome, workload=None if task.frequent is None else workload)

    def _chosen(self, seen: ColumnEvidence, around: Shares) -> Outcome:
        """Measure what exceeds its noise; answer by the hierarchical model."""
        chosen, domain = seen.worth_measuring(), seen.workload.domain
        measured = Features(seen.with_groups(chosen, self.generator), domain)
        strategy = Strategy.uniform(measured, self.plan.neighbours)
        scale = scale_for(strategy.sensitivity, seen.ratio)
        products, noisy, deviations = self._looked(strategy, scale, CHOSEN)
        longer = (measured.bits >= 0).sum(axis=1) > 1
        second = Shares.of(products, noisy, deviations)
        shares = seen.shares.combined(second).sparse()
        told = shares.distributions(domain), shares.uncertain(domain), len(measured) - len(chosen)
        found = Interactions.fit(products.part(longer), noisy[longer], deviations[longer], *told)
        longer = np.flatnonzero(longer[: len(chosen)])
        fitted = np.clip(found.fitted[: len(longer)], -1.0, 1.0)
        shares = replace(shares, values=found.chances[shares.bits])
        # Pairs that were not measured tell the mixture what all share, above half of the noise.
        others = np.setdiff1d(of_order(seen.expansion.features, 2), chosen)
        means, noise = found.means(seen.products), deviations.min()
        usual = seen.products.part(others).factors(found.chances)[0].prod(axis=1)
        others = others[np.abs(means[others] - usual) > noise / 2.0]
        at, targets = np.append(chosen[longer], others), np.append(fitted, means[others])
        noises = np.append(deviations[longer], np.full(len(others), noise))
        model = mixture_of(shares, seen.products.part(at), targets, noises, *self.how)
        # Pairs alone say too little of columns that are strongly tied: the mixture knows more.
        means += beyond_pairs(model, seen.products, deviations)
        means[chosen[longer]] = fitted
        answers = seen.expansion.answers(np.clip(means, -1.0, 1.0))
        by = None if self.task.frequent is None else around
        ends = share_intervals(seen.workload, (around, second), self.plan.neighbours, chosen_by=by)
        return self._outcome(answers, model, ends)

    def _by_queries(self, seen: Shares, own: QueryMeasurement, ratios: Sequence[float]) -> Outcome:
        """Measure the queries; fit, or shrink answers towards those of independent columns."""
        found, workload = self._measured(own, ratios), self.task.workload
        if own.determined:
            return self._fitted(found, found, workload, seen)
        usual, interactions, off = independent(workload, seen)
        residual, expected = found.means - usual, np.sqrt(interactions + off)
        answers = usual + posterior_interactions(residual, expected, found.deviations**2)[0]
        model = mixture_of(seen, own.products, answers, found.deviations, *self.how)
        return self._outcome(answers, model, found.intervals(workload))

    def _looked(
        self, strategy: Strategy, scale: float, note: str = ""
    ) -> tuple[ProductTerms, Float64, Float64]:
        """Measure features, keep and trace them; return them, their noisy means and deviations."""
        means = sums_of(strategy, self.curator, scale) / self.n
        deviations = strategy.scales * scale / self.n
        self.kept.append(Measurements.of_features(strategy.features, means, deviations, note))
        products = ProductTerms.of_features(strategy.features)
        self._count(products)
        return products, means, deviations

    def _count(self, products: ProductTerms) -> None:
        """Note in the trace how many numbers of each kind a stage measured."""
        orders = np.where(products.literals, 0, (products.bits >= 0).sum(axis=1))
        queries, columns, more = np.bincount(np.minimum(orders, 2), minlength=3).tolist()
        stage = {"stage": len(self.trace) + 1, "columns": columns}
        self.trace.append({**stage, "products": more, "queries": queries})

    def _measured(self, full: Measurement, ratios: Sequence[float]) -> Evidence:
        """Measure everything, once for each ratio: one measurement of the sum of precisions."""
        together, means = math.hypot(*ratios), np.zeros(len(full.scales))
        for ratio in ratios:
            each = scale_for(full.sensitivity, ratio)
            noisy = full.draw(self.curator, each) / self.n
            means += (ratio / together) ** 2 * noisy
            self.kept.append(full.kept(noisy, full.scales * each / self.n))
        if self.trace:
            self._count(full.products)
        unit = scale_for(full.sensitivity, together) / self.n
        return Evidence(full, means, full.scales * unit)

    def _fitted(
        self, found: Evidence, evidence: Evidence, workload: Workload, shares: Shares | None = None
    ) -> Outcome:
        """Answer by the ensemble; ``shares`` are those of columns that queries are not about."""
        answers, model, trace = fit_mixture(evidence, workload, *self.how)
        if shares is not None:
            assert isinstance(model, ProductMixture)
            domain, literals = workload.domain, workload.literals
            asked = domain.column_of_bit[np.unique(literals[literals >= 0] >> 1)]
            model = with_columns(model, asked, shares)
        self.trace += trace
        return self._outcome(answers, model, found.intervals(workload))

    def _outcome(
        self, answers: Float64, model: Model | None, intervals: Intervals, *remarks: str
    ) -> Outcome:
        """Return answers, records of a model, if there is one, and what all stages measured."""
        return Outcome(
            answers=np.clip(answers, 0.0, 1.0),
            records=None if model is None else model.sample(self.plan.records, self.generator),
            trace=tuple(self.trace),
            remarks=remarks,
            intervals=intervals,
            measurements=Measurements.joined(self.kept),
            model=model,
        )
