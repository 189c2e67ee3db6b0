"""MWEM as a mechanism: options, budgets, releases."""

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.protocol import Budget, Session, Task
from dualquery.models.mixture import ProductMixture
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals, count_distinct, random_conjunctions
from dualquery.queries.parities import Parities
from dualquery.queries.products import Products
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from dualquery.rows.histogram import Histogram as CellCounts
from dualquery.runtime.errors import BadInputError
from mwem import Mwem, rounded_table, sampled_table
from mwem.algorithm import clip_to_range
from mwem.measures import mean_squared_error
from mwem.representations import Histogram, make
from tests.cases import domain_of, records_of

DOMAIN = domain_of(1, 1, 3, 1, 1)


def table(n: int = 5000, seed: int = 0) -> np.ndarray:
    """Return correlated rows of DOMAIN."""
    generator = np.random.default_rng(seed)
    a = generator.random(n) < 0.8
    b = np.where(generator.random(n) < 0.9, a, ~a)
    c = generator.choice(3, n, p=[0.6, 0.3, 0.1])
    d = np.where(generator.random(n) < 0.8, c == 0, a)
    e = generator.random(n) < 0.1
    return np.column_stack((a, b, c == 0, c == 1, c == 2, d, e)).astype(np.uint8)


WORKLOAD = all_marginals(DOMAIN, 2)


def run(mechanism, budget: Budget, seed=0, workload=WORKLOAD, rows=None, **of_the_room):
    """Return the plan and the outcome of one run of a mechanism."""
    rows = table() if rows is None else rows
    task = Task(workload, len(rows))
    plan, source = mechanism.plan(task, budget), SeededRandomness(seed)
    held = mechanism.statistics(workload)
    curator = Curator(records_of(rows), held, plan.schedule, source, **of_the_room)
    return plan, mechanism.run(task, plan, curator, Session(public_seed=seed))


def truth(workload: Workload = WORKLOAD) -> np.ndarray:
    return workload.answers_on(table())


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        ({}, Budget(2.0, 1e-7)),
        ({"noisy_init": True, "init_budget": 0.3}, Budget(4.0, 0.0)),
        ({"start": "independent"}, Budget(2.0, 1e-7)),
        ({"start": "independent", "cuboids": True, "iterations": 5}, Budget(2.0, 0.0)),
        ({"start": "independent", "average": True}, Budget(4.0, 0.0)),
        ({"representation": "factored"}, Budget(2.0, 0.0)),
    ],
)
def test_it_learns_the_data(options, budget) -> None:
    plan, outcome = run(Mwem(**{"iterations": 12, **options}), budget)
    start = np.abs(truth() - run(Mwem(iterations=1), Budget(1e-3, 0.0))[1].answers)
    assert np.abs(outcome.answers - truth()).mean() < 0.3 * start.mean()
    assert outcome.answers.min() >= 0
    assert outcome.answers.max() <= 1
    assert best(plan.schedule, budget.delta, plan.accountant)[1] <= budget.epsilon


@pytest.mark.parametrize("representation", ["histogram", "factored", "junction-tree"])
def test_a_marginal_that_does_not_fit_as_a_whole_is_not_asked(representation) -> None:
    """One cell of the pair of wide columns would fit the limit, its 1,600 do not."""
    domain, generator = domain_of(1, 1, 40, 40), np.random.default_rng(0)
    rows = np.zeros((2000, 82), np.uint8)
    rows[:, :2] = generator.random((2000, 2)) < 0.5
    wide = generator.integers(40, size=2000)
    rows[np.arange(2000), 2 + wide] = rows[np.arange(2000), 42 + wide] = 1
    mechanism = Mwem(
        iterations=2, cuboids=True, representation=representation, memory_gib=(12 << 20) / 2**30
    )
    _, outcome = run(mechanism, Budget(50.0, 0.0), workload=all_marginals(domain, 2), rows=rows)
    assert [len(line["queries"]) for line in outcome.trace] != []
    assert max(len(line["queries"]) for line in outcome.trace) < 1600


def test_the_schedule_lists_the_run_in_order() -> None:
    pure = Mwem(iterations=2, noisy_init=True).plan(Task(WORKLOAD, 100), Budget(1.0, 0.0))
    kinds = [type(event) for event in pure.schedule]
    assert kinds == [LaplaceNoise] + 2 * [SampledQueries, LaplaceNoise]
    columns = Mwem(iterations=2, start="independent").plan(Task(WORKLOAD, 100), Budget(1.0, 1e-6))
    kinds = [type(event) for event in columns.schedule]
    assert kinds == [GaussianNoise] + 2 * [SampledQueries, GaussianNoise]
    noisy = Mwem(iterations=2).plan(Task(WORKLOAD, 100), Budget(1.0, 1e-6))
    assert [type(e) for e in noisy.schedule] == 2 * [SampledQueries, GaussianNoise]
    assert (pure.accountant, noisy.accountant) == ("advanced", "exact")


def test_measured_columns_are_the_start_and_are_kept() -> None:
    """Of a budget that leaves nothing to doubt. The average of one distribution is A_0."""
    _, outcome = run(Mwem(iterations=1, start="independent", average=True), Budget(1e6, 0.0))
    shares = table().mean(axis=0)
    expected = ProductMixture.single(WORKLOAD.domain, shares).answers(WORKLOAD)
    measured = outcome.trace[0]["query"]
    expected[measured] = truth()[measured]
    np.testing.assert_allclose(outcome.answers, expected, atol=1e-3)
    np.testing.assert_allclose(outcome.records.mean(axis=0), shares, atol=0.05)
    assert len(outcome.measurements) == DOMAIN.bits + 1
    np.testing.assert_allclose(outcome.measurements.values[:-1], shares, atol=1e-3)
    assert outcome.trace[0]["query"] < len(WORKLOAD)  # not one that the start has measured


def test_columns_are_measured_for_conjunctions_only() -> None:
    with pytest.raises(BadInputError, match="conjunctions"):
        Mwem(start="independent").plan(Task(Parities(DOMAIN, 1), 100), Budget(1.0, 0.0))


@pytest.mark.parametrize("seed", range(4))
def test_representations_select_the_same_queries(seed: int) -> None:
    generator = np.random.default_rng(seed)
    bits = int(generator.integers(4, 17))
    rows = (generator.random((500, bits)) < generator.random(bits)).astype(np.uint8)
    way = int(generator.integers(1, 4))
    asked = min(200, count_distinct(Domain.binary(bits), way, True))
    workload = random_conjunctions(Domain.binary(bits), asked, way, True, seed)
    options = {"iterations": min(8, asked), "repetitions": 3, "records": 10}
    outcomes = [
        run(Mwem(**options, representation=name), Budget(3.0, 0.0), seed, workload, rows)[1]
        for name in ("histogram", "factored", "junction-tree")
    ]
    first, *others = outcomes
    for other in others:
        assert [line["query"] for line in other.trace] == [line["query"] for line in first.trace]
        np.testing.assert_allclose(other.answers, first.answers, atol=1e-9)


def test_the_average_is_over_the_distributions_before_each_update() -> None:
    options = {"repetitions": 1, "average": True, "records": 3}
    averaged = run(Mwem(iterations=3, **options), Budget(3.0, 0.0))[1].answers
    lasts = []
    events = run(Mwem(iterations=3, **options), Budget(3.0, 0.0))[1].trace
    queries = Products.of_conjunctions(WORKLOAD)
    model = Histogram(queries, 1 << 20)
    for line in events:
        lasts.append(model.answers())
        target = clip_to_range(line["measured"], queries, line["query"])
        model.update(np.array([line["query"]]), np.array([target]))
    measured = [line["query"] for line in events]  # they have intervals, and answers in them
    np.testing.assert_allclose(
        np.delete(averaged, measured), np.delete(np.mean(lasts, axis=0), measured), atol=1e-12
    )


def test_queries_that_do_not_fit_are_excluded() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (200, 16), dtype=np.uint8)
    workload = all_marginals(Domain.binary(16), 2, signed=False)
    small = 40_000 / 2**30
    options = {"iterations": 8, "memory_gib": small, "representation": "factored"}
    _, outcome = run(Mwem(**options), Budget(1.0, 0.0), workload=workload, rows=rows)
    assert max(line["largest"] for line in outcome.trace) * 64 <= small * 2**30
    model = make("factored", Products.of_conjunctions(workload), 40_000, 1)
    with pytest.raises(BadInputError, match="above the limit"):
        _ = [model.update(np.array([query]), np.array([0.25])) for query in range(40)]
    options["iterations"] = 60
    _, outcome = run(Mwem(**options), Budget(1.0, 0.0), workload=workload, rows=rows)
    assert 8 < len(outcome.trace) < 60  # what is paid for is released
    assert f"{len(outcome.trace)} of 60 iterations" in "".join(outcome.remarks)
    options["memory_gib"] = 1e-7
    with pytest.raises(BadInputError, match="no query is left whose measurement fits"):
        Mwem(**options).plan(Task(workload, 200), Budget(1.0, 0.0))  # nothing is paid


def test_queries_about_very_many_columns_are_refused_before_anything_is_paid() -> None:
    """Linked columns beyond the 64th counted as independent ones; tables had 2^41 cells."""
    for name, width in ("auto", 70), ("junction-tree", 1100), ("factored", 25):
        every = np.arange(0, 2 * width, 2, dtype=np.int32)
        wide = Task(Workload(every[None, :], Domain.binary(width)), 100)
        with pytest.raises(BadInputError, match=rf"{width} columns, and 2\^{width} cells at least"):
            Mwem(iterations=1, representation=name).plan(wide, Budget(1.0, 0.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations is 0; a whole number of at least 1"),
        ({"init_budget": 0.0}, "init_budget is 0.0; a share above 0 and below 1"),
        ({"representation": "dense"}, "known: auto, histogram, factored, junction-tree"),
        ({"start": "independent", "noisy_init": True}, "take one"),
    ],
)
def test_bad_options(options, message) -> None:
    with pytest.raises(BadInputError, match=message):
        Mwem(**options)


def test_bad_plans() -> None:
    task = Task(WORKLOAD, 100)
    with pytest.raises(BadInputError, match="iterations is 500, but the workload has only"):
        Mwem(iterations=500).plan(task, Budget(1.0, 0.0))
    with pytest.raises(BadInputError, match="too little to select"):
        Mwem().plan(task, Budget(1e-12, 0.0))
    with pytest.raises(BadInputError, match="No valid accounting"):
        Mwem().plan(task, Budget(1.0, 0.0, accountant="zcdp"))
    with pytest.raises(BadInputError, match="No valid accounting"):
        Mwem().plan(task, Budget(1.0, 1e-6, accountant="advanced"))


def test_tables_and_histograms_both_ways() -> None:
    rows = table(500)
    cells = records_of(rows).total(CellCounts(DOMAIN), 1)
    assert cells.shape == (2, 2, 3, 2, 2)
    back = rounded_table(cells.astype(float), DOMAIN, 500)
    order = [np.lexsort(r.T) for r in (rows, back)]
    assert np.array_equal(rows[order[0]], back[order[1]])
    fewer = rounded_table(cells.astype(float), DOMAIN, 37)
    assert len(fewer) == 37
    off = np.cumsum(records_of(fewer).total(CellCounts(DOMAIN), 1) - cells * 37 / 500)
    assert off.max() - off.min() <= 1 + 1e-9
    drawn = sampled_table(cells.astype(float), DOMAIN, 100, np.random.default_rng(0))
    assert (cells[records_of(drawn).total(CellCounts(DOMAIN), 1) > 0] > 0).all()
    with pytest.raises(BadInputError, match="shape"):
        rounded_table(np.ones(3), DOMAIN, 5)
    with pytest.raises(BadInputError, match="not all of them 0"):
        rounded_table(np.zeros((2, 2, 3, 2, 2)), DOMAIN, 5)


def test_the_mean_squared_error_is_the_mean_of_squares() -> None:
    assert mean_squared_error(np.array([0.0, 0.5]), np.array([0.5, 0.5])) == pytest.approx(0.125)
