"""Queries as products over columns: the same functions as the conjunctions they come from."""

import numpy as np
import pytest

from dualquery.data.domain import column_values
from dualquery.queries.conjunctions import Workload
from dualquery.queries.products import Products
from tests.cases import all_records, domain_of, random_case, truth_table


def values_on_cells(queries: Products, domain) -> np.ndarray:
    values = column_values(all_records(domain), domain)
    scopes = [queries.scope(q) for q in range(len(queries))]
    return np.stack([queries.table(q)[tuple(values.T[[*s]])] for q, s in enumerate(scopes)])


@pytest.mark.parametrize("seed", range(25))
def test_products_are_the_conjunctions(seed: int) -> None:
    workload = random_case(seed, most_columns=5)
    queries = Products.of_conjunctions(workload)
    assert np.array_equal(values_on_cells(queries, workload.domain), truth_table(workload))


def test_several_literals_on_one_column_become_one_factor() -> None:
    domain = domain_of(1, 4, 3)
    literals = np.array(
        [
            [3, 5, -1],  # neither the first nor the second value
            [2, 4, -1],  # two values at once: never
            [2, 5, 10],  # the first and not the second value, and a value of the next column
            [1, 3, 7],
        ],
        np.int32,
    )
    workload = Workload(literals, domain)
    queries = Products.of_conjunctions(workload)
    assert queries.scope(0) == (1,)
    assert queries.scope(2) == (1, 2)
    assert np.array_equal(values_on_cells(queries, domain), truth_table(workload))
