"""Randomized reports: the channel's exact privacy, and how its reports are counted."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dualquery.data.domain import column_values
from dualquery.data.schema.items import ItemSchema
from dualquery.queries.conjunctions import Workload
from dualquery.room.draws.randomized import WORDS, RandomizedCounts, randomize, steps_of
from dualquery.room.randomness import SeededRandomness
from dualquery.rows.dask_cluster import ClusterRows
from dualquery.runtime.errors import BadInputError
from tests.cases import domain_of

DOMAIN = domain_of(1, 3, 1)
WORKLOAD = Workload(
    np.array(
        [
            [0, -1, -1],
            [1, 2, -1],  # not the first bit, and the first value
            [3, 5, -1],  # two values of one column excluded
            [2, 5, 9],  # one value, which already excludes another one
            [2, 4, -1],  # two values at once: never
            [0, 7, 8],
        ],
        np.int32,
    ),
    DOMAIN,
)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.1, 1.0, 3.7, 30.0, 100.0])
@pytest.mark.parametrize("values", [2, 3, 7, 1000])
def test_a_report_costs_no_more_than_epsilon_and_hardly_less(epsilon, values) -> None:
    steps = steps_of(epsilon, values)
    # log1p keeps what a float of the ratio would lose.
    cost = math.log1p(float(Fraction(WORDS - (values - 1) * steps, steps) - 1))
    assert cost <= epsilon
    if epsilon < 40:
        assert cost == pytest.approx(epsilon, rel=1e-3, abs=1e-11)
    assert steps >= 1


def test_a_report_that_words_left_over_would_make_dearer_is_refused() -> None:
    with pytest.raises(BadInputError, match="too small for a report of 1,000,000 values"):
        steps_of(1e-9, 10**6)


def test_words_become_reports_as_the_chances_say() -> None:
    """The boundaries of the words, one by one: the last of each kind and the first of the next."""
    domain, steps = domain_of(3), steps_of(0.7, 3)

    class Words(SeededRandomness):
        def words(self, count: int) -> np.ndarray:
            edges = [0, steps - 1, steps, 2 * steps - 1, 2 * steps, 3 * steps - 1, 3 * steps]
            return np.array([*edges, WORDS - 1], np.uint64)[:count]

    rows = np.tile(np.array([[0, 1, 0]], np.uint8), (8, 1))
    reported = randomize(rows, domain, np.array([0]), 0.7, Words(0))
    assert column_values(reported, domain)[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 1, 1]


def test_it_stays_in_its_process() -> None:
    statistic = RandomizedCounts(WORKLOAD, 1.0, SeededRandomness(0))
    with pytest.raises(TypeError, match="RandomizedCounts stays in its process"):
        pickle.dumps(statistic)
    elsewhere = ClusterRows(None, (), ItemSchema.numbered(5, "bits"), (), 50)
    with pytest.raises(BadInputError, match="--engine memory"):
        elsewhere.total(statistic, 1)
