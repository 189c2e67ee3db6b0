"""Measurements that releases keep: what their codes mean, and that they come back from a table."""

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.estimates.measurements import Measurements
from dualquery.queries.parities import Parities
from dualquery.queries.ranges import RangeQueries
from dualquery.room.features import Features
from dualquery.room.noise.laplace import laplace_deviation
from tests.cases import all_records, domain_of, functionals

DOMAIN = domain_of(1, 3, 2)


def features() -> Features:
    bits = np.array([[0, -1, -1], [1, -1, -1], [0, 2, -1], [0, 3, 4], [4, -1, -1]], np.int32)
    return Features(bits, DOMAIN)


def some() -> Measurements:
    literals = Measurements.of_codes(
        np.array([[0, 3], [5, -1]], np.int32),
        np.array([0.25, 1.5]),
        np.array([0.1, 0.2]),
        absent=np.array([0.0, np.nan]),
    )
    return Measurements.joined(
        (literals, Measurements.of_features(features(), np.linspace(-1, 1, 5), 0.5, "limited"))
    )


def test_codes_say_what_a_number_is_the_mean_of() -> None:
    rows = all_records(DOMAIN)
    sign, found = 1.0 - 2.0 * rows, functionals(some(), rows, DOMAIN)
    expected = [
        rows[:, 0] * (1 - rows[:, 1]),
        1 - rows[:, 2],
        sign[:, 0],
        rows[:, 1],
        sign[:, 0] * rows[:, 2],
        sign[:, 0] * rows[:, 3] * sign[:, 4],
        sign[:, 4],
    ]
    np.testing.assert_array_equal(found, expected)


def test_they_come_back_from_their_table() -> None:
    kept = some()
    again = Measurements.from_table(kept.table(), kept.describe())
    for name in ("starts", "factors", "queries", "values", "deviations", "absent"):
        np.testing.assert_array_equal(getattr(again, name), getattr(kept, name))
        assert getattr(again, name).dtype == getattr(kept, name).dtype, name
    assert (again.noise, again.note) == (kept.noise, kept.note) == ("gaussian", "limited")
    assert kept.table()["factors"].to_list()[:3] == [[0, 3], [5], [-(2**30)]]


def test_queries_without_literals_are_named_by_their_place() -> None:
    queries, given = RangeQueries.all_products(Domain.binary(4), 2), (np.zeros(2), 1.0)
    kept = Measurements.of_queries(queries, np.array([3, 1]), *given, "discrete laplace")
    assert kept.queries.tolist() == [3, 1]
    again = Measurements.from_table(kept.table(), kept.describe())
    assert again.queries.tolist() == [3, 1]
    assert len(again.factors) == 0
    signs = Measurements.of_queries(Parities(4, 2), np.array([0, 9]), *given, "gaussian")
    assert (signs.starts.tolist(), signs.factors.tolist()) == ([0, 1, 3], [-1, -3, -4])


def test_measurements_that_cannot_be_are_refused() -> None:
    literals, nothing = np.array([[0]], np.int32), np.array([[-1]], np.int32)
    with pytest.raises(ValueError, match="value is nan"):
        Measurements.of_codes(literals, np.array([np.nan]), 1.0)
    with pytest.raises(ValueError, match="deviation is -1"):
        Measurements.of_codes(literals, np.zeros(1), -1.0)
    with pytest.raises(ValueError, match="has factors"):
        Measurements.of_codes(nothing, np.zeros(1), 1.0)
    with pytest.raises(ValueError, match="do not fit"):
        Measurements.of_codes(literals, np.zeros(2), 1.0)


@pytest.mark.parametrize("scale", [1e-5, 0.3, 1.0, 40.0])
def test_the_deviation_of_laplace_noise_is_that_of_its_distribution(scale: float) -> None:
    values = np.arange(-4000, 4001)
    chance = np.exp(-np.abs(values) / scale)
    chance /= chance.sum()
    exact = np.sqrt(chance @ values.astype(float) ** 2)
    assert laplace_deviation(scale) == pytest.approx(max(exact, 1e-4))  # never 0
