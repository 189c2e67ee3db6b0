"""Figures 3 and 4 of the MWEM paper: relative entropy of contingency tables against epsilon."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes
from dualquery.mechanisms.protocol import Budget, Plan, Session, Task
from dualquery.queries.derived_queries import asked_sets, odd_counts
from dualquery.queries.generate.workloads import all_marginals
from dualquery.queries.parities import Parities
from dualquery.room.curator import Curator
from dualquery.room.randomness import randomness
from experiments.comparing import Means, curve_means, listed_ratios, tables
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.mwem_data_sets import WITHOUT, Study, contingency_table, exact_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SURVEY = "nltcs"
SMALL_TABLES = ("mildew", "rochdale", "czech")
EPSILONS = tuple(round(0.1 * step, 1) for step in range(1, 11))
SMALL_RUNS, SURVEY_RUNS = 100, 10
WAY = 3
"""Attributes of the marginals that Figure 3 maintains."""

SURVEY_PANELS = (
    (2, (0.01, 0.03, 0.05, 0.07, 0.1)),
    (2, (0.1, 0.25, 0.5, 0.75, 1.0)),
    (3, (0.1, 0.25, 0.5, 0.75, 1.0)),
)
"""Attributes of the marginals and epsilons of Figure 4."""

_QUICK_EPSILONS = (0.1, 0.5, 1.0)
_QUICK_SMALL_RUNS, _QUICK_SURVEY_RUNS = 5, 1
_QUICK_SURVEY_PANELS = ((2, (0.1, 1.0)), (3, (0.1, 1.0)))


@dataclass(frozen=True)
class Method:
    """A curve."""

    iterations: int | None  # t of MWEM; None for the mechanism of Barak et al
    passes: int = 10
    """Of multiplicative weights; MWEM's first in an iteration is over the newest measurement."""
    start_share: float | None = None
    """Share of the budget for a noisy count of every cell, from which MWEM starts."""


BARAK = {"Barak et al., 10 passes": Method(None), "Barak et al., 1 pass": Method(None, passes=1)}
ALL_PASSES, ONE_PASS = "MWEM, 10 passes", "MWEM, 1 pass"
NOISY_START = "MWEM, noisy start, 1 pass"
SMALL_METHODS = {
    ALL_PASSES: Method(10),
    ONE_PASS: Method(10, passes=1),
    NOISY_START: Method(10, passes=1, start_share=0.5),
    **BARAK,
}
SURVEY_MWEM = {f"MWEM, {queries} queries": Method(queries) for queries in (20, 30, 40)}
SURVEY_METHODS = {**SURVEY_MWEM, **BARAK}
_QUICK_SURVEY_METHODS = {k: v for k, v in SURVEY_METHODS.items() if v.iterations != 40}

_SHOWN = (0.01, 0.1, 0.5, 1.0)
"""Epsilons of the summary."""

_MOST_UPDATES = 10**9
"""The fit without noise updates single cells at most this often."""

UNIFORM, NO_NOISE = "uniform table", "no noise: fit to exact marginals"


def plan(choices: Choices) -> Sequence[Run]:
    """Run all methods at all epsilons, once for each table, width of the marginals and seed."""
    quick = choices.quick
    wanted = choices.named("table", (*SMALL_TABLES, SURVEY)) or (*SMALL_TABLES, SURVEY)
    small = (WAY, _QUICK_EPSILONS if quick else EPSILONS)
    figure3 = (SMALL_METHODS, choices.seeds(SMALL_RUNS, _QUICK_SMALL_RUNS))
    figure4 = (
        _QUICK_SURVEY_METHODS if quick else SURVEY_METHODS,
        choices.seeds(SURVEY_RUNS, _QUICK_SURVEY_RUNS),
    )
    panels = [(name, small, figure3) for name in SMALL_TABLES] + [
        (SURVEY, panel, figure4) for panel in (_QUICK_SURVEY_PANELS if quick else SURVEY_PANELS)
    ]
    return [
        {"table": name, "path": _path(name, choices), "way": way, "epsilons": list(epsilons),
         "methods": list(methods), "seed": seed}
        for name, (way, epsilons), (methods, seeds) in panels
        if name in wanted
        for seed in seeds
    ]  # fmt: skip


def _path(name: str, choices: Choices) -> str | None:
    """Return the file of a table; the survey, which may not be passed on, has a stand-in."""
    if choices.quick or (name == SURVEY and name not in choices.data):
        return None
    return str(choices.data.path(name, WITHOUT))


def perform(run: Run, threads: int) -> Sequence[Row]:  # noqa: ARG001
    """Run every method at every epsilon, and compare its table with the exact one."""
    study = contingency_table(run["table"], run["path"])
    truth = exact_cells(study.data)
    rows = [
        (label, epsilon, fitted_table(study, run["way"], method, epsilon, run["seed"]))
        for label, method in (SMALL_METHODS | SURVEY_METHODS).items()
        if label in run["methods"]
        for epsilon in run["epsilons"]
    ]
    if run["seed"] == 1:
        uniform = np.full(truth.shape, 1.0 / truth.size)
        for label, fitted in ((UNIFORM, uniform), (NO_NOISE, noiseless_table(study, run["way"]))):
            rows += [(label, epsilon, fitted) for epsilon in run["epsilons"]]
    from mwem import relative_entropy

    return [
        {
            "title": study.title,
            "curve": label,
            "epsilon": epsilon,
            # A share that underflows is not 0: no logarithm is infinite.
            "relative_entropy": relative_entropy(truth, np.maximum(fitted, np.finfo(float).tiny)),
        }
        for label, epsilon, fitted in rows
    ]


def fitted_table(
    study: Study, way: int, method: Method, epsilon: float, seed: int
) -> NDArray[np.float64]:
    """Return the share of every cell that a method finds.

    MWEM measures some of the parities of up to ``way`` attributes; the mechanism of Barak et al.
    all of them, and its fit is by multiplicative weights.
    """
    from mwem import Barak, Mwem
    from mwem.barak import Cells, noisy_coefficients
    from mwem.representations import Histogram as FittedHistogram

    domain = study.data.schema.domain
    n = study.data.n
    budget = Budget(epsilon, 0.0)

    def curator(queries: Any, plan: Plan[Any]) -> Curator:
        return Curator(study.data.records, queries, plan.schedule, randomness(seed))

    if method.iterations is None:
        barak, workload = (
            Barak(fit="weights", repetitions=method.passes),
            all_marginals(domain, way),
        )
        plan = barak.plan(Task(workload, n), budget)
        sets = barak.statistics(workload)
        noisy = noisy_coefficients(n, plan.details.noise, curator(sets, plan))
        measured = np.clip(noisy, -1.0, 1.0)
        return Cells(sets).multiply_weights(measured, method.passes).reshape(axis_sizes(domain))
    mwem = Mwem(
        iterations=method.iterations,
        repetitions=method.passes,
        noisy_init=method.start_share is not None,
        init_budget=method.start_share or Mwem.init_budget,
        representation="histogram",
    )
    task = Task(Parities(domain, way), n)
    chosen = mwem.plan(task, budget)
    session = Session(public_seed=seed)
    _, distribution = mwem.fit(task, chosen, curator(task.queries, chosen), session)
    assert isinstance(distribution, FittedHistogram)
    return distribution.shares()


def noiseless_table(study: Study, way: int) -> NDArray[np.float64]:
    """Return the table of most entropy with the exact marginals, nearly. Not private."""
    from mwem.barak import Cells

    sets = asked_sets(all_marginals(study.data.schema.domain, way)).workload
    odd = odd_counts(sets, sets.counts(study.data.records, threads=1))
    truth = exact_cells(study.data)
    passes = int(np.clip(_MOST_UPDATES / (len(sets) * truth.size), 20, 1_000))
    return Cells(sets).multiply_weights(1.0 - 2.0 * odd / study.data.n, passes).reshape(truth.shape)


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the mean relative entropies, in nats, at some of the epsilons."""
    names = {"title": "table", "table": "name", "way": "degree", "curve": "relative entropy of"}
    index = ["table", "degree", "relative entropy of"]
    return (
        table.rename(names)
        .filter(pl.col("epsilon").is_in(_SHOWN))
        .sort("epsilon")
        .with_columns(pl.format("at {}", "epsilon").alias("epsilon"))
        .pivot("epsilon", index=index, values="relative_entropy", aggregate_function="mean")
        .sort("table", "degree", maintain_order=True)
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State the paper's findings one by one."""
    findings: list[Finding] = []
    for title, lines in tables(table.filter(pl.col("table") != SURVEY), "title"):
        findings += _expect_small(title, _means(lines))
    if len(survey := table.filter(table=SURVEY)):
        two, three = (_means(survey.filter(way=way)) for way in (2, 3))
        findings += _expect_survey(survey["title"][0], two, three)
    return findings


def _means(lines: pl.DataFrame) -> Means:
    return curve_means(lines, "curve", "epsilon", "relative_entropy")


def _expect_small(title: str, means: Means) -> list[Finding]:
    mwem, barak = _lowest(means, (ALL_PASSES, ONE_PASS)), _lowest(means, BARAK)
    last = max(mwem)
    uniform, exact = means[UNIFORM][last], means[NO_NOISE][last]
    return [
        _below(f"{title}: MWEM below Barak et al. at every epsilon (Figure 3)",
               "Barak's relative entropy over MWEM's, each with the better number of passes",
               mwem, barak),
        _below(f"{title}: a noisy start lowers the relative entropy (Figure 3, section 2.3.2)",
               "without over with", means[NOISY_START], means[ONE_PASS]),
        Finding(
            f"{title}: MWEM approaches the non-private values (section 3.2): at epsilon {last:g}, "
            "three quarters of the way from the uniform table to a fit without noise",
            f"uniform {uniform:.3f}, MWEM {mwem[last]:.3f}, without noise {exact:.3f}",
            uniform - mwem[last] >= 0.75 * (uniform - exact),
        ),
    ]  # fmt: skip


def _expect_survey(title: str, two: Means, three: Means) -> list[Finding]:
    mwem, barak = _lowest(two, SURVEY_MWEM), _lowest(two, BARAK)
    late = {epsilon: value for epsilon, value in mwem.items() if epsilon >= 0.1}
    early = {epsilon: value for epsilon, value in mwem.items() if epsilon < 0.1}
    last = max(mwem)
    by_queries = [means[last] for label, means in two.items() if label in SURVEY_MWEM]
    findings = [
        _below(f"{title}, degree 3: MWEM below Barak et al. (Figure 4)",
               "Barak's relative entropy over MWEM's, each at its best",
               _lowest(three, SURVEY_MWEM), _lowest(three, BARAK)),
        Finding(
            f"{title}, degree 2: Barak et al. no worse than MWEM from epsilon 0.1 on (Figure 4)",
            f"Barak's over MWEM's: {listed_ratios(barak, late)}",
            all(barak[epsilon] <= value for epsilon, value in late.items()),
        ),
        Finding(f"{title}: more measured queries help where epsilon is large (Figure 4)",
                f"degree 2, epsilon {last:g}: " + ", ".join(f"{value:.3f}" for value in by_queries),
                by_queries == sorted(by_queries, reverse=True)),
    ]  # fmt: skip
    if early:
        expected = f"{title}, degree 2: MWEM below Barak et al. below epsilon 0.1 (Figure 4)"
        findings.append(_below(expected, "Barak's over MWEM's", early, barak))
    return findings


def _lowest(means: Means, labels: Collection[str]) -> dict[float, float]:
    """Return the smallest mean of those of these curves that are there, by epsilon."""
    chosen = [of_one for label, of_one in means.items() if label in labels]
    return {epsilon: min(of_one[epsilon] for of_one in chosen) for epsilon in chosen[0]}


def _below(
    expected: str, ratio: str, low: Mapping[float, float], high: Mapping[float, float]
) -> Finding:
    """State whether one curve is below another at every epsilon of its own."""
    holds = all(value < high[epsilon] for epsilon, value in low.items())
    return Finding(expected, f"{ratio}: {listed_ratios(high, low)}", holds)


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw a figure for the small tables, and one for the survey."""
    from experiments.harness import style

    panels: dict[str, list[tuple[str, pl.DataFrame]]] = {
        "figure3": tables(table.filter(pl.col("table") != SURVEY), "title")
    }
    if len(survey := table.filter(table=SURVEY)):
        shown = SURVEY_PANELS if survey["epsilon"].min() == 0.01 else _QUICK_SURVEY_PANELS
        panels["figure4"] = [
            (
                f"{survey['title'][0]}, degree {way}",
                survey.filter(pl.col("epsilon").is_in(epsilons), way=way),
            )
            for way, epsilons in shown
        ]
    methods = {"figure3": SMALL_METHODS, "figure4": SURVEY_METHODS}
    return {
        name: style.picture(
            [
                style.Chart(
                    table=lines, x="epsilon", y="relative_entropy", by="curve", title=title,
                    looks=style.curves(methods[name]),
                    levels=[
                        (label, level) for label in (UNIFORM, NO_NOISE)
                        for level in lines.filter(curve=label)["relative_entropy"][:1]
                    ],
                )
                for title, lines in charts
            ],
            len(charts), legend=3,
        )
        for name, charts in panels.items() if charts
    }  # fmt: skip


RECIPE = Recipe(
    name="contingency",
    title="MWEM, Figures 3 and 4: contingency tables, relative entropy",
    setting=(
        "The paper's setting: relative entropy between exact and released table; Figure 3: mildew, "
        "rochdale, czech, marginals of 3 attributes, 100 runs, MWEM with and without a noisy "
        "start, and Barak et al. with its observations combined by multiplicative weights; Figure "
        "4: the National Long Term Care Survey, 20, 30 and 40 queries, degrees 2 and 3, 10 runs. "
        "Ours: T = 10 in Figure 3 and half of the budget for the noisy start (the paper says "
        "neither); neighbours replace one row, which doubles the change of a parity, so epsilon "
        "here is worth half of the paper's, for all methods. The horizontal lines are the "
        "uniform table and a fit to the exact marginals, not the published values. The survey may "
        "not be passed on: without the user's copy (--data nltcs:PATH), and for all tables in the "
        "quick form, stand-ins are drawn from written-down models."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(Option("table", str, "Only this table: mildew, rochdale, czech or nltcs."),),
)
