"""Charges: never more than the budget, and each attempt at a release claimed once."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualquery.budgets.budget_file import BudgetFile
from dualquery.budgets.charge import Charge
from dualquery.privacy.composition import Cost
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError
from tests.budgets.conftest import Make

TENTH = Cost(0.005, 0.1, 1e-7)


def charged(file: BudgetFile, cost: Cost = TENTH) -> Charge:
    """Charge one release."""
    charge = Charge(file)
    charge.pay(cost, mechanism="gaussian")
    return charge


def test_a_budget_is_spent_and_then_refused(make: Make) -> None:
    file = make()
    for _ in range(10):
        charged(file)
    with pytest.raises(BadInputError, match="10 releases leave epsilon 0 and delta 0, summed"):
        charged(file)
    account = file.read()
    assert len(account.releases) == len(account.entries) == 10
    assert account.spent == (1.0, 1e-6)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.floats(0, 0.05), st.floats(0, 1), st.floats(0, 1e-6)), max_size=4))
def test_random_charges_never_exceed(make: Make, asked) -> None:
    for composition in ("sum", "zcdp", "either"):
        file = make(f"{math.floor(1e9 * math.fsum(map(sum, asked)))}-{composition}.sqlite",
                    composition=composition)  # fmt: skip
        paid = []
        for parts in asked:
            cost = Cost(*parts)
            with contextlib.suppress(BadInputError):
                charged(file, cost)
                paid.append(cost)
        account = file.read()
        assert account.costs == paid
        assert account.terms.filter.allows(paid)
        assert account.spent <= (1.0, 1e-6) or account.spent[0] <= 1.0
        file.path.unlink()


def test_a_release_is_charged_in_two_steps_and_not_twice(make: Make) -> None:
    file = make(neighbours="add-remove")
    charge = Charge(file)
    charge.pay(Cost(0.0, 0.04, 0.0), mechanism="mwem")
    charge.pay(Cost(0.3, 0.8, 1e-7), mechanism="mwem")
    charge.pay(Cost(0.3, 0.8, 1e-7), mechanism="mwem")
    account = file.read()
    assert [entry.cost.epsilon for entry in account.entries] == [0.04, 0.8]
    assert account.spent == (0.8, 1e-7)
    with pytest.raises(RuntimeError, match="less than"):
        charge.pay(Cost(0.2, 0.9, 1e-7), mechanism="mwem")


def test_what_is_foreseen_must_have_room(make: Make) -> None:
    file = make()
    with pytest.raises(BadInputError, match="epsilon 2 and"):
        Charge(file).pay(Cost(0, 0.1, 0), mechanism="x", foreseen=Cost(0, 2.0, 0))
    assert not file.read().entries


def test_an_attempt_is_resumed_once(make: Make) -> None:
    file = make()
    first = charged(file)
    second = first.resume()
    assert second == Charge(file, first.release, attempt=1)
    with pytest.raises(BadInputError, match="was resumed from attempt 0 before"):
        first.resume()
    with pytest.raises(BadInputError, match="was resumed from attempt 0 before"):
        first.pay(Cost(0.005, 0.2, 1e-7), mechanism="x")
    with pytest.raises(BadInputError, match="was resumed from attempt 0 before"):
        first.finish()
    second.pay(TENTH, mechanism="gaussian")  # nothing new
    third = second.resume()
    third.finish()
    with pytest.raises(BadInputError, match="is finished"):
        third.resume()
    account = file.read()
    (release,) = account.releases.values()
    assert (release.attempt, release.finished, release.cost) == (2, True, TENTH)
    assert account.spent == (0.1, 1e-7)


def test_of_many_claims_one_succeeds(make: Make) -> None:
    charge = charged(make())

    def claim(_: int) -> bool:
        try:
            charge.resume()
        except BadInputError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(claim, range(12))) == 1


def charge_all(file: BudgetFile) -> None:
    """Charge releases until there is no room for more."""
    with contextlib.suppress(BadInputError):
        while True:
            charged(file)


def test_processes_share_a_file(make: Make) -> None:
    file = make()
    processes = multiprocessing.get_context("spawn")
    workers = [processes.Process(target=charge_all, args=(file,)) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
        assert each.exitcode == 0
    assert file.read().spent == (1.0, 1e-6)
    assert len(file.read().releases) == 10
    assert file.problem() is None


def test_a_release_that_was_never_charged_is_not_resumed(make: Make) -> None:
    file = make()
    with pytest.raises(BadInputError, match="was never charged"):
        Charge(file).resume()
    with pytest.raises(BadInputError, match="was never charged"):
        Charge(file).finish()
    with pytest.raises(BadInputError, match="attempts only"):
        Charge(file, charged(file).release, attempt=3).resume()


def test_a_file_has_one_relation_and_one_unit(make: Make) -> None:
    file = make(neighbours="add-remove", unit="person")
    Charge(file).check(Neighbours.ADD_REMOVE, "person")
    with pytest.raises(BadInputError, match="--neighbours add-remove, and this release has repl"):
        Charge(file).check(Neighbours.REPLACE_ONE, "person")
    with pytest.raises(BadInputError, match="protect one 'person'"):
        Charge(file).check(Neighbours.ADD_REMOVE, "row")
