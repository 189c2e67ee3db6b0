"""Privacy filters: what they let through keeps within the budget, whatever is asked for."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.privacy.accountants.formulas import epsilon_from_rho, rho_of
from dualquery.privacy.composition import Composition, Cost, PrivacyFilter
from dualquery.privacy.events import GaussianNoise, LaplaceNoise
from dualquery.runtime.errors import BadInputError

COMPOSITIONS = [*Composition]

costs = st.builds(
    Cost,
    st.floats(0, 0.05) | st.just(math.inf),
    st.sampled_from([0.1, 0.2, 0.3, 1 / 3]) | st.floats(0, 1),
    st.sampled_from([0.0, 1e-7, 5e-7, 1e-6]) | st.floats(0, 2e-6),
)
filters = st.builds(
    PrivacyFilter,
    st.sampled_from([0.1, 1.0, 3.0]) | st.floats(0.01, 5),
    st.sampled_from([1e-6, 1e-3]) | st.floats(1e-9, 1e-2),
    st.sampled_from(COMPOSITIONS),
)


def accepted(chosen: PrivacyFilter, asked: list[Cost]) -> list[Cost]:
    """Return what a filter lets through, one after the other."""
    known: list[Cost] = []
    for cost in asked:
        if chosen.allows([*known, cost]):
            known.append(cost)
    return known


@given(filters, st.lists(costs, max_size=30))
def test_what_is_let_through_keeps_within_the_budget(chosen, asked) -> None:
    known = accepted(chosen, asked)
    epsilon = sum((Fraction(each.epsilon) for each in known), Fraction(0))
    delta = sum((Fraction(each.delta) for each in known), Fraction(0))
    halves = 2 if chosen.composition is Composition.EITHER else 1
    rounding = 1 + Fraction(2) ** -52
    summed = (
        epsilon <= Fraction(chosen.epsilon) * rounding
        and delta <= Fraction(chosen.delta) / halves * rounding
    )
    rho = math.fsum(each.rho for each in known)
    zcdp = math.isfinite(rho) and epsilon_from_rho(rho, chosen.delta / halves) <= chosen.epsilon
    holds = {Composition.SUM: summed, Composition.ZCDP: zcdp, Composition.EITHER: summed or zcdp}
    assert holds[chosen.composition]
    spent = chosen.spent(known)
    assert spent[0] <= chosen.epsilon
    assert spent[1] <= chosen.delta


@given(filters, st.lists(costs, max_size=8), costs)
def test_costs_only_add_up(chosen, asked, more) -> None:
    """What is refused stays refused after more was spent: the lemma of `either` rests on it."""
    known = accepted(chosen, asked)
    assert chosen.allows(known)
    assert all(chosen.allows(known[:i] + known[i + 1 :]) for i in range(len(known)))
    if not chosen.allows([*known, more]):
        assert not chosen.allows([*known, more, more])


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_an_adversary_of_two_releases_by_enumeration(composition) -> None:
    """Choose the second release by the first one's answer, on all events of all outcomes."""
    chosen = PrivacyFilter(0.8, 0.05, composition)

    def response(epsilon: float, bit: int) -> dict[str, float]:
        right = math.exp(epsilon) / (1 + math.exp(epsilon))
        return {"0": right if bit == 0 else 1 - right, "1": right if bit == 1 else 1 - right}

    def shown(delta: float, bit: int) -> dict[str, float]:
        return {f"bit {bit}": delta, "none": 1 - delta}

    offers = [("response", e, Cost(e * e / 2, e, 0.0)) for e in (0.2, 0.4, 0.5, 0.8)]
    offers += [("shown", d, Cost(math.inf, 0.0, d)) for d in (0.02, 0.025, 0.05)]
    laws = {"response": response, "shown": shown}
    tried = 0
    for first in offers:
        if not chosen.allows([first[2]]):
            continue
        law_of = laws[first[0]]
        answers = sorted({*law_of(first[1], 0), *law_of(first[1], 1)})
        seconds = [None, *(each for each in offers if chosen.allows([first[2], each[2]]))]
        for plan in itertools.product(seconds, repeat=len(answers)):
            after = dict(zip(answers, plan, strict=True))
            law: list[dict[str, float]] = [{}, {}]
            for bit in (0, 1):
                for answer, chance in laws[first[0]](first[1], bit).items():
                    then = after[answer]
                    rest = {"": 1.0} if then is None else laws[then[0]](then[1], bit)
                    for second, also in rest.items():
                        law[bit][f"{answer}, {second}"] = chance * also
            for one, other in (law, law[::-1]):
                delta = sum(
                    max(0.0, p - math.exp(chosen.epsilon) * other.get(outcome, 0.0))
                    for outcome, p in one.items()
                )
                assert delta <= chosen.delta * (1 + 1e-12)
            tried += 1
    assert tried >= 5


def test_either_takes_the_better_of_both_halves() -> None:
    either = PrivacyFilter(1.0, 1e-6, Composition.EITHER)
    pure = [Cost.of((LaplaceNoise(0.5),), 0.5, 0.0)] * 2
    assert either.allows(pure)
    assert not PrivacyFilter(1.0, 1e-6, Composition.ZCDP).allows(pure)
    many = [Cost.of((GaussianNoise(1.0, 20.0),), 0.3, 1e-7)] * 10
    assert either.allows(many)
    assert not PrivacyFilter(1.0, 1e-6).allows(many)
    # Of one kind each: the sums are too large by both ways together.
    assert not either.allows([*pure, *many])
    # Half of delta: what the sum alone would allow.
    assert PrivacyFilter(1.0, 1e-6).allows([Cost(math.inf, 0.5, 6e-7)])
    assert not either.allows([Cost(math.inf, 0.5, 6e-7)])
    assert not either.allows([Cost(0.0199, 5.0, 9e-7, 4.5e-7)])
    assert not either.allows([Cost(0.0, 5.0, 9e-7, 6e-7)])


def test_nothing_spent_and_nothing_left() -> None:
    for composition in COMPOSITIONS:
        chosen = PrivacyFilter(1.0, 1e-6, composition)
        assert chosen.spent([]) == (0.0, 0.0)
        assert chosen.spent([Cost(0.0, 0.0, 0.0)]) == (0.0, 0.0)
        assert not chosen.allows([Cost(1e200, 2.0, 0.0)] * 3)
        assert chosen.left([Cost(0.0, 0.3, 0.0)])


def test_a_cost_is_that_of_its_events() -> None:
    events = (GaussianNoise(1.0, 10.0), LaplaceNoise(0.1))
    cost = Cost.of(events, 0.9, 1e-7)
    assert cost == Cost(rho_of(events), 0.9, 1e-7)
    assert cost.rho >= 0.005 + 0.005
    assert cost.covers(Cost(0.01, 0.9, 0.0))
    assert not cost.covers(Cost(0.01, 0.91, 0.0))


@pytest.mark.parametrize(
    ("epsilon", "delta", "composition", "message"),
    [
        (1.0, 0.0, "zcdp", "needs a delta above 0"),
        (1.0, 0.0, "either", "needs a delta above 0"),
        (1.0, 1e-6, "zdcp", "did you mean 'zcdp'"),
    ],
)
def test_bad_budgets(epsilon, delta, composition, message) -> None:
    with pytest.raises(BadInputError, match=message):
        PrivacyFilter(epsilon, delta, Composition.parse(composition))
