"""Queries about frequent items: the rule, whom it chooses, and what it refuses."""

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.queries.generate.frequent import MOST, Frequent, FrequentItems
from dualquery.runtime.errors import BadInputError


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("top:7", Frequent(7)),
        ("share>=0.01", Frequent(MOST, 0.01)),
        ("share >= 1e-2, top:5", Frequent(5, 0.01)),
    ],
)
def test_rules_are_read_and_written(text: str, rule: Frequent) -> None:
    assert Frequent.parse(text) == rule
    assert Frequent.parse(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "top:0", "share>=2", "share>=x", "5"])
def test_what_is_no_rule_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(BadInputError, match="--query-items is '"):
        Frequent.parse(text)


def test_the_largest_noisy_shares_are_chosen_by_the_cap_and_the_least_share() -> None:
    domain, noisy = Domain.binary(6), np.array([0.3, -0.1, 0.5, 0.3, 0.05])
    columns = [0, 1, 2, 4, 5]

    def chosen(rule: str) -> list[int]:
        return FrequentItems.of(rule, domain, 2, columns).choose(noisy).tolist()

    assert chosen("top:3") == [0, 2, 4]
    assert chosen("top:99") == columns
    assert chosen("share>=0.04") == [0, 2, 4, 5]
    assert chosen("share>=0.04,top:2") == [0, 2]
    # A query needs two items, however rare they are.
    assert chosen("share>=0.9") == [0, 2]


def test_columns_of_several_values_and_too_few_items_are_refused() -> None:
    mixed = Domain(np.array([0, 1, 2, 5]))
    with pytest.raises(BadInputError, match="the column at position 2 has several values"):
        FrequentItems.of("top:5", mixed, 2, None)
    assert FrequentItems.of("top:5", mixed, 2, [0, 1]).items.tolist() == [0, 1]
    with pytest.raises(BadInputError, match="gives 2 items, but queries have 3"):
        FrequentItems.of("top:2", Domain.binary(9), 3, None)
