"""Parities, ranges and matrices: counts, ranges, sensitivities and encodings by brute force."""

import itertools
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery.best_response import Problems
from dualquery.queries import family
from dualquery.queries.conjunctions import Workload
from dualquery.queries.derived_queries import Cuboids
from dualquery.queries.generate.workloads import all_marginals
from dualquery.queries.parities import FactorParities, Parities
from dualquery.queries.ranges import RangeQueries, SeriesRangeQueries
from dualquery.queries.stored_queries import queries_of_table
from dualquery.queries.tabulated import GRID_BITS, HistogramQueries, on_grid
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, domain_of, records_of
from tests.queries.families import FAMILIES, obvious_values

every_family = pytest.mark.parametrize("queries", FAMILIES.values(), ids=FAMILIES.keys())


def some_rows(domain: Domain, n: int = 300) -> np.ndarray:
    every = all_records(domain)
    return every[np.random.default_rng(1).integers(0, len(every), n)]


@every_family
def test_counts_are_sums_over_the_rows(queries) -> None:
    rows = some_rows(queries.domain)
    expected = obvious_values(queries, rows).sum(axis=0) / queries.step
    counts = queries.counts(records_of(rows), threads=2)
    assert counts.dtype == np.int64
    assert np.array_equal(counts, expected)
    assert np.allclose(queries.answers_on(rows), expected * queries.step / len(rows), atol=1e-12)


@every_family
def test_spread_and_range_are_those_of_all_records(queries) -> None:
    values = obvious_values(queries, all_records(queries.domain))
    assert queries.spread == np.ptp(values, axis=0).max() / queries.step
    assert queries.low <= values.min()
    assert values.max() <= queries.high


@every_family
def test_a_table_holds_the_queries(queries) -> None:
    again = queries_of_table(queries.to_columns(), queries.domain, queries.description)
    assert type(again) is (RangeQueries if isinstance(queries, RangeQueries) else type(queries))
    every = all_records(queries.domain)
    assert np.array_equal(obvious_values(again, every), obvious_values(queries, every))


@every_family
def test_sums_of_conjunctions_are_the_queries_in_0_to_1(queries) -> None:
    if isinstance(queries, HistogramQueries):
        with pytest.raises(BadInputError, match="use the mechanism mwem"):
            family.disjunctions_of(queries)
        return
    encoded, every = family.disjunctions_of(queries), all_records(queries.domain)
    mapped = (obvious_values(queries, every) - queries.low) / (queries.high - queries.low)
    assert np.array_equal(np.stack([encoded.on_record(row) for row in every]), mapped)
    rows = some_rows(queries.domain)
    expected = np.stack([encoded.on_record(row) for row in rows]).sum(axis=0, dtype=np.int64)
    assert np.array_equal(encoded.counts(records_of(rows), 1), expected)


@pytest.mark.parametrize("name", ["parities of mixed columns", "boxes", "all intervals"])
def test_a_best_response_counts_the_sample(name: str) -> None:
    queries = FAMILIES[name]
    encoded, generator = family.disjunctions_of(queries), np.random.default_rng(2)
    drawn = np.sort(generator.integers(0, len(queries), 40))
    signs = generator.choice(np.array([-1, 1], np.int8), 40)
    problem = Problems(encoded).of(drawn, signs)
    for row in all_records(queries.domain)[::7]:
        truth = encoded.on_record(row)[drawn]
        assert problem.value(row) == np.where(signs > 0, truth, 1 - truth).sum()


def test_parities_of_all_small_sets() -> None:
    assert len(Parities(np.int64(27), 3)) == 27 + 351 + 2925
    assert FactorParities is Parities
    assert len(Parities(domain_of(1, 3), 2)) == 4 + 3  # bits of one column are not combined


def test_series_have_all_intervals_but_the_whole() -> None:
    queries = SeriesRangeQueries(5)
    assert len(queries) == 14
    assert len(SeriesRangeQueries(5, "prefix")) == 4
    pairs = set(zip(queries.first.ravel().tolist(), queries.last.ravel().tolist(), strict=True))
    assert pairs == set(itertools.combinations_with_replacement(range(5), 2)) - {(0, 4)}


@given(arrays(np.float64, (3, 4), elements=st.floats(-1e30, 1e30, allow_subnormal=False)))
def test_the_grid_is_fine_and_small(values: np.ndarray) -> None:
    step, steps = on_grid(values)
    assert np.abs(steps).max() <= 2**GRID_BITS
    assert np.abs(steps * step - values).max() <= np.abs(values).max() * 2.0**-GRID_BITS


@pytest.mark.parametrize("largest", [0.999995, 1.0, 0.7])
def test_values_on_the_grid_are_rounded_to_themselves(largest: float) -> None:
    step, steps = on_grid(np.array([[largest, 2.2e-5, 0.0]]))
    again, same = on_grid(step * steps)
    assert np.array_equal(again * same, step * steps)


def test_a_function_of_the_users_own() -> None:
    domain = domain_of(1, 3)
    queries = HistogramQueries.tabulate(
        lambda x: np.stack((x.sum(axis=1) / 2, x[:, 0] - x[:, 3]), axis=1), domain, -1, 1
    )
    assert len(queries) == 2
    rows = some_rows(domain)
    assert np.allclose(queries.answers_on(rows)[0], rows.sum(axis=1).mean() / 2)
    with pytest.raises(BadInputError, match=r"outside its declared range 0 to 0\.5"):
        HistogramQueries.tabulate(lambda x: x[:, :1] / 1, domain, 0, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Parities(4), "either way"),
        (lambda: Parities(40, 13), "at most 12"),
        (lambda: Parities(4, sets=np.array([[0, 0]])), "two bits of one column"),
        (lambda: Parities(4, sets=np.array([[0, 1], [1, 0]])), "repeated"),
        (lambda: Parities(4, sets=np.array([[0.5]])), "integer array"),
        (lambda: SeriesRangeQueries(5, [(3, 2)]), "outside its column"),
        (lambda: SeriesRangeQueries(5, [(2**32, 2**32 + 1)]), "outside its column"),
        (lambda: RangeQueries(domain_of(3), [{1: (0, 0)}]), "no such column"),
        (lambda: RangeQueries(domain_of(3), [{0: (0, 0)}, {}]), "no columns"),
        (lambda: Workload(np.array([[0]], np.int32), domain_of(1), {"a": {1}}).over(domain_of(1)),
         "what JSON cannot hold"),
        (lambda: HistogramQueries([[1.0, np.nan]]), "query 0 has the value nan on cell 1"),
        (lambda: HistogramQueries([[1, 2, 3]], domain_of(1, 1)), "3 cells, but the domain 4"),
        (lambda: Cuboids.of(Parities(3, 2)), "made of conjunctions"),
        (lambda: Cuboids.of(Workload(np.array([[1], [2]], np.int32), domain_of(3))), "query 0 is"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        make()


def test_columns_are_whole_numbers() -> None:
    for make in (lambda: RangeQueries(domain_of(3), [{0.9: (0, 1)}]),
                 lambda: all_marginals(domain_of(3, 2), 1, columns=[0.9])):  # fmt: skip
        with pytest.raises(TypeError, match="float"):
            make()


def test_what_a_list_of_conjunctions_is_called_decides_nothing() -> None:
    asked = Workload(np.array([[0], [2]], np.int32), domain_of(2), {"kind": "ranges"})
    again = queries_of_table(asked.to_columns(), asked.domain, asked.description)
    assert np.array_equal(again.literals, asked.literals)


def test_cuboids_are_the_marginals() -> None:
    workload = all_marginals(domain_of(1, 3, 1, 2), 2)
    cuboids = Cuboids.of(workload)
    assert len(cuboids) == 6
    assert cuboids.whole.all()
    for cuboid in range(len(cuboids)):
        members = cuboids.queries(cuboid)
        for row in all_records(workload.domain):
            assert workload.on_record(row)[members].sum() == 1


class Bare:
    """One query, "the first bit is 1": what `Queries` asks for, and nothing else."""

    low, high, step, spread, way = 0.0, 1.0, 1.0, 1, 1
    description: ClassVar = {"kind": "first bit"}
    domain = Domain.binary(3)

    def __len__(self) -> int:
        return 1

    def counts(self, records, threads):
        return Workload(np.array([[0]]), self.domain).counts(records, threads)

    def answers_on(self, records, threads=1):
        return records[:, :1].mean(axis=0)

    def text(self, schema):
        raise NotImplementedError

    def to_columns(self):
        raise NotImplementedError


class Inheriting(family.QueryFamily, Bare):
    """The same with all defaults."""


class Posed(Inheriting):
    """The same with a form of its own."""

    def disjunctions(self):
        return Workload(np.array([[0]]), self.domain).disjunctions()


class TestDefaults:
    RECORDS = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0]], np.uint8)

    @pytest.mark.parametrize("queries", [Bare(), Inheriting()])
    def test_forms_that_a_family_lacks_are_refused(self, queries) -> None:
        assert isinstance(queries, family.Queries)
        with pytest.raises(BadInputError, match=f"{type(queries).__name__} have no products"):
            family.products_of(queries)
        with pytest.raises(BadInputError, match=f"{type(queries).__name__} are not sums"):
            family.disjunctions_of(queries)
        assert family.over_domain(queries, Domain.binary(3)) is queries
        assert not family.offers(queries, "disjunctions")

    def test_a_family_offers_what_it_has_itself(self) -> None:
        assert family.offers(Posed(), "disjunctions")
        assert not family.offers(Posed(), "products")
        found = family.disjunctions_of(Posed())
        assert [int(found.on_record(record)[0]) for record in self.RECORDS] == [1, 0, 0]

    def test_answers_follow_from_counts(self) -> None:
        np.testing.assert_array_equal(Inheriting().answers_on(self.RECORDS), [1 / 3])

    def test_conjunctions_cannot_be_counted_in_another_way(self) -> None:
        class Halved(Workload):
            def counts(self, records, threads):
                return super().counts(records, threads) // 2

            def on_record(self, record):
                return 2 * super().on_record(record)

        rows = family.as_records(np.ones((8, 3), np.uint8), Domain.binary(3))
        queries = Halved(np.array([[0], [2]]), Domain.binary(3)).disjunctions()
        assert queries.counts(rows, 1).tolist() == [8, 8]
        assert queries.on_record(np.ones(3, np.uint8)).tolist() == [1, 1]
