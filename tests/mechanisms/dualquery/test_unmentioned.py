"""Free attributes: always a legal record, whatever the policy."""

from typing import get_args

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery.game_options import FreePolicy
from dualquery.mechanisms.dualquery.record_player import fill_unmentioned
from tests.tables import legal, random_records

FREE_POLICIES = get_args(FreePolicy)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Domain, np.ndarray, int]:
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3, 9]), min_size=1, max_size=8))
    domain = Domain(np.concatenate(([0], np.cumsum(sizes))))
    mentioned = draw(st.lists(st.booleans(), min_size=domain.bits, max_size=domain.bits))
    return domain, np.array(mentioned), draw(st.integers(0, 2**32 - 1))


@given(situations(), st.sampled_from(FREE_POLICIES), st.booleans())
def test_records_are_legal_under_every_policy(situation, policy, first) -> None:
    domain, mentioned, seed = situation
    rng = np.random.default_rng(seed)
    previous = None if first else random_records(domain, 1, rng)[0]
    record = fill_unmentioned(domain, mentioned, policy, rng, previous)
    assert legal(domain, record[None, :])


@given(situations(), st.sampled_from(["zeros", "coins"]))
def test_free_columns_take_free_values(situation, policy) -> None:
    """A one-hot column with a value that no query mentions takes such a value."""
    domain, mentioned, seed = situation
    record = fill_unmentioned(domain, mentioned, policy, np.random.default_rng(seed))
    for start, size in zip(domain.offsets[:-1], domain.sizes, strict=True):
        column = slice(start, start + size)
        if size > 1 and not mentioned[column].all():
            assert not mentioned[column][record[column] == 1].any()


@given(situations())
def test_zeros_leaves_binary_columns_at_0_and_hint_repeats(situation) -> None:
    domain, mentioned, seed = situation
    rng = np.random.default_rng(seed)
    zeros = fill_unmentioned(domain, mentioned, "zeros", rng)
    assert not zeros[domain.offsets[:-1][domain.sizes == 1]].any()
    previous = random_records(domain, 1, rng)[0]
    np.testing.assert_array_equal(
        fill_unmentioned(domain, mentioned, "hint", rng, previous), previous
    )


def test_coins_and_choices_are_fair() -> None:
    """Fixed seed; each count within 4.5 standard deviations, so a false alarm is below 1e-4."""
    domain = Domain(np.array([0, 1, 5]))
    rng = np.random.default_rng(0)
    draws = 4_000
    mentioned = np.array([False, False, True, False, False])
    total = sum(fill_unmentioned(domain, mentioned, "coins", rng).astype(int) for _ in range(draws))
    shares = total / draws
    assert abs(shares[0] - 1 / 2) < 4.5 * np.sqrt(0.25 / draws)
    assert shares[2] == 0
    assert np.abs(shares[[1, 3, 4]] - 1 / 3).max() < 4.5 * np.sqrt(2 / 9 / draws)
