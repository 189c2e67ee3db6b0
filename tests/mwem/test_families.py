"""MWEM on parities, ranges, matrices and cuboids: distributions, sensitivities, releases."""

import numpy as np
import pytest

from dualquery.data.domain import cells_of, rows_of_values
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.accountants.choice import best
from dualquery.queries.family import products_of
from dualquery.queries.generate.workloads import all_marginals
from dualquery.queries.parities import Parities
from dualquery.queries.ranges import RangeQueries, SeriesRangeQueries
from dualquery.queries.tabulated import HistogramQueries
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.statistics import OneCuboid, OneQuery
from mwem import Mwem
from mwem.representations import Factored, Histogram, JunctionTree
from tests.cases import MEMORY, all_records, both_relations, domain_of, records_of, refused
from tests.mwem.test_mechanism import run
from tests.mwem.test_representations import measured, naive_mwem
from tests.noise import NoNoise
from tests.queries.families import FAMILIES, obvious_values

KINDS = (Histogram, Factored, JunctionTree)
every_family = pytest.mark.parametrize("queries", FAMILIES.values(), ids=FAMILIES.keys())


@every_family
def test_products_are_the_queries(queries) -> None:
    products = products_of(queries)
    expected = obvious_values(queries, all_records(queries.domain)).mean(axis=0)
    for kind in KINDS:
        uniform = kind(products, MEMORY).answers()
        np.testing.assert_allclose(products.scale * uniform, expected, atol=1e-12)
    assert all(np.abs(products.table(query)).max() <= 1 for query in range(len(queries)))


@pytest.mark.parametrize("kind", KINDS)
@every_family
def test_answers_are_those_of_figure_1(kind, queries) -> None:
    products = products_of(queries)
    truth = obvious_values(queries, all_records(queries.domain)).T / products.scale[:, None]
    generator = np.random.default_rng(len(queries))
    updates = [
        (int(q), float(generator.uniform(truth[q].min(), truth[q].max())))
        for q in generator.integers(0, len(queries), 5)
    ]
    representation = kind(products, MEMORY)
    measured(products, updates, 3, representation)
    expected = truth @ naive_mwem(truth, updates, 3, np.full(truth.shape[1], 1 / truth.shape[1]))
    np.testing.assert_allclose(representation.answers(), expected, atol=1e-11)


TINY = {
    "parities": (Parities(2, 2), {}),
    "parities of a one-hot column": (Parities(domain_of(1, 3), 2), {}),
    "intervals": (SeriesRangeQueries(4), {}),
    "boxes": (RangeQueries.all_products(domain_of(1, 3), 2), {}),
    "matrix": (HistogramQueries([[-1.5, 0.3, 2.0, 0.1], [0, 1, 0, 1], [0.2, 0.1, 0, 0]]), {}),
    "cuboids": (all_marginals(domain_of(1, 3), 1), {"cuboids": True}),
}
every_tiny = pytest.mark.parametrize(("queries", "options"), TINY.values(), ids=TINY.keys())
ROWS = 3


@both_relations
@every_tiny
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_room_charges_what_was_planned(queries, options, delta: float, relation) -> None:
    """Less noise than planned is refused, in the queries' own units."""
    budget = Budget(1.0, delta, neighbours=relation)
    plan = Mwem(iterations=1, **options).plan(Task(queries, ROWS), budget)
    spending, rows = plan.parameters["spending"], all_records(queries.domain)[:ROWS]
    curator = Curator(
        records_of(rows), queries, plan.schedule[1:], NoNoise(0), neighbours=relation,
        public_rows=ROWS,
    )  # fmt: skip
    asked = OneCuboid(0) if options else OneQuery(0)
    noise = Gaussian if delta else Laplace
    refused(curator.measure, asked, noise(0.999 * spending["measure_scale"]))
    curator.measure(asked, noise(spending["measure_scale"]))


def skewed_rows(domain, n: int = 4000) -> np.ndarray:
    """Return correlated rows that are far from uniform."""
    generator, sizes = np.random.default_rng(0), np.maximum(domain.sizes, 2)
    common, noise = generator.random(n), generator.random((n, len(sizes)))
    values = np.floor(np.where(noise < 0.7, common[:, None], noise) ** 2 * sizes).astype(int)
    return rows_of_values(values, domain)


LARGER = {**FAMILIES, "cuboids": all_marginals(domain_of(1, 1, 3, 1, 4), 2)}


@pytest.mark.parametrize("name", LARGER)
def test_it_learns_the_data(name: str) -> None:
    queries, delta = LARGER[name], 1e-7
    rows = skewed_rows(queries.domain)
    options = {"cuboids": True} if name == "cuboids" else {}
    mechanism = Mwem(iterations=min(8, len(queries)), repetitions=30, **options)
    budget = Budget(20.0, delta)
    plan, outcome = run(mechanism, budget, 1, queries, rows)
    truth, start = queries.answers_on(rows), obvious_start(queries)
    assert np.square(outcome.answers - truth).sum() < 0.35 * np.square(start - truth).sum()
    assert best(plan.schedule, delta, plan.accountant)[1] <= budget.epsilon
    assert outcome.answers.min() >= queries.low
    assert outcome.answers.max() <= queries.high
    assert outcome.records.shape == (4000, queries.domain.bits)
    # Records are drawn from the distribution: 4 standard errors of 4000 draws, and the rounding.
    width = queries.high - queries.low
    assert np.abs(queries.answers_on(outcome.records) - outcome.answers).max() < 0.05 * width


def obvious_start(queries) -> np.ndarray:
    """Return the answers of the uniform distribution."""
    products = products_of(queries)
    return products.scale * Histogram(products, MEMORY).answers()


@pytest.mark.parametrize("name", ["parities of mixed columns", "boxes", "mixed matrix"])
@pytest.mark.parametrize("average", [False, True])
def test_a_noisy_start_and_the_average(caplog, name: str, average: bool) -> None:
    queries = FAMILIES[name]
    rows = skewed_rows(queries.domain)
    mechanism = Mwem(iterations=2, noisy_init=True, init_budget=0.8, average=average, records=2000)
    _, outcome = run(mechanism, Budget(20.0, 0.0), 1, queries, rows, show_private_errors=True)
    truth, start = queries.answers_on(rows), obvious_start(queries)
    assert np.abs(outcome.answers - truth).max() < 0.2 * np.abs(start - truth).max()
    assert f"max error {np.abs(outcome.answers - truth).max():.4f}" in caplog.text or average
    assert len(outcome.measurements) > cells_of(queries.domain)  # the noisy cells are kept
