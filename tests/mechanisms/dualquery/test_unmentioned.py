"""Free attributes: always a legal record, whatever the policy."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery.game_options import FreePolicy
from dualquery.mechanisms.dualquery.record_player import RecordPlayer, fill_unmentioned
from dualquery.rules.constraints import groups_of
from solvers import BestResponse, get_solver
from tests.tables import legal, random_records


@st.composite
def situations(draw: st.DrawFn) -> tuple[Domain, np.ndarray, int]:
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3, 9]), min_size=1, max_size=8))
    domain = Domain(np.concatenate(([0], np.cumsum(sizes))))
    mentioned = draw(st.lists(st.booleans(), min_size=domain.bits, max_size=domain.bits))
    return domain, np.array(mentioned), draw(st.integers(0, 2**32 - 1))


@given(situations(), st.sampled_from(get_args(FreePolicy)), st.booleans())
def test_records_are_legal_under_every_policy(situation, policy, first) -> None:
    domain, mentioned, seed = situation
    rng = np.random.default_rng(seed)
    previous = None if first else random_records(domain, 1, rng)[0]
    assert legal(domain, fill_unmentioned(domain, mentioned, policy, rng, previous)[None, :])


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
    found = fill_unmentioned(domain, mentioned, "hint", rng, previous)
    np.testing.assert_array_equal(found, previous)


def test_coins_and_choices_are_fair() -> None:
    """Fixed seed; each count within 4.5 standard deviations, so a false alarm is below 1e-4."""
    domain, rng = Domain(np.array([0, 1, 5])), np.random.default_rng(0)
    draws, mentioned = 4_000, np.array([False, False, True, False, False])
    total = sum(fill_unmentioned(domain, mentioned, "coins", rng).astype(int) for _ in range(draws))
    shares = total / draws
    assert abs(shares[0] - 1 / 2) < 4.5 * np.sqrt(0.25 / draws)
    assert shares[2] == 0
    assert np.abs(shares[[1, 3, 4]] - 1 / 3).max() < 4.5 * np.sqrt(2 / 9 / draws)


def test_a_round_that_is_recalled_changes_nothing_in_those_after_it() -> None:
    domain, found = Domain(np.arange(0, 97, 8)), []
    empty = BestResponse(domain.bits, np.zeros((0, 1), np.int32), np.zeros(0), groups_of(domain))
    known: dict[str, Any] = {}

    def recall(name: str, compute: Callable[[], Any], _: object) -> Any:
        return known[name] if name in known else known.setdefault(name, compute())

    for recalled in (0, 1, 3):
        known = {name: known[name] for name in [*known][:recalled]}
        player = RecordPlayer(domain, get_solver("auto"), 1.0, 1, "zeros", np.random.default_rng(0))
        record = player.first_record()
        for number in range(5):
            record = player.recalled(number, empty, record, SimpleNamespace(recall=recall)).record
        found.append(record.tolist())
    assert found[0] == found[1] == found[2]
