"""Charges: never more than the budget, and each attempt at a release claimed once."""

import contextlib
import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from dualquery.budgets.account import new_token
from dualquery.budgets.budget_file import BudgetFile
from dualquery.budgets.charge import Charge
from dualquery.privacy.composition import Cost
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError
from tests.budgets.conftest import Make

TENTH = Cost(0.005, 0.1, 1e-7)


def charged(file: BudgetFile, cost: Cost = TENTH) -> Charge:
    charge = Charge(file)
    charge.pay(cost, mechanism="gaussian")
    return charge


def refused(file: BudgetFile, message: str) -> None:
    """Check that a charge is refused, and that this is said."""
    with pytest.raises(BadInputError, match=message):
        charged(file)


def resumed(charge: Charge, draws: int = 0, *, open_draw: bool = False) -> Charge:
    """Take a release over, from a checkpoint that knows an attempt."""
    after = Charge(charge.file, charge.release, earlier=(charge.nonce,))
    after.go_on(draws, open_draw=open_draw)
    return after


def test_a_budget_is_spent_and_then_refused(make: Make) -> None:
    file = make()
    for _ in range(10):
        charged(file)
    refused(file, "10, leave epsilon 0 and delta 0, summed")
    account = file.read()
    assert len(account.releases) == len(account.entries) == 10
    assert account.spent == (1.0, 1e-6)


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
    second = resumed(first)
    for step in (
        lambda: resumed(first),
        lambda: first.pay(Cost(0.005, 0.2, 1e-7), mechanism="x"),
        lambda: first.draw(1),
        lambda: first.finish(new_token()),
    ):
        with pytest.raises(BadInputError, match="another copy of its checkpoint"):
            step()
    second.pay(TENTH, mechanism="gaussian")  # nothing new
    third, last = resumed(second), new_token()
    third.finish(last)
    with pytest.raises(BadInputError, match="another copy"):
        resumed(third)  # from a copy that was made before it was finished
    again = Charge(file, third.release, earlier=(third.nonce, last))
    assert again.go_on(0, open_draw=False) == 0  # it was not given out yet, for all that is known
    again.finish(new_token())
    account = file.read()
    (release,) = account.releases.values()
    assert (release.attempt, release.finished, release.cost) == (3, True, TENTH)
    assert account.spent == (0.1, 1e-7)


def test_of_many_claims_one_succeeds(make: Make) -> None:
    charge = charged(make())

    def claim(_: int) -> bool:
        try:
            resumed(charge)
        except BadInputError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(claim, range(12))) == 1


def charge_all(file: BudgetFile) -> None:
    with contextlib.suppress(BadInputError):
        while True:
            charged(file)


def test_processes_share_a_file(make: Make) -> None:
    file, processes = make(), multiprocessing.get_context("spawn")
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
    assert Charge(file).go_on(0, open_draw=False) is None  # it may pay
    for step in (
        lambda: Charge(file).go_on(1, open_draw=True),
        lambda: Charge(file).finish(new_token()),
        lambda: Charge(file).draw(1),
    ):
        with pytest.raises(BadInputError, match="was never charged"):
            step()


def test_of_two_that_pay_for_one_release_the_first_draws(make: Make) -> None:
    """Two copies of a checkpoint that was not charged yet."""
    first = Charge(make())
    second = Charge(first.file, first.release, earlier=(first.nonce,))
    assert second.go_on(0, open_draw=False) is None
    first.pay(TENTH, mechanism="x")
    with pytest.raises(BadInputError, match="another copy"):
        second.pay(TENTH, mechanism="x")
    first.draw(1)


def test_draws_are_counted_and_none_is_begun_twice(make: Make) -> None:
    charge = charged(make())
    charge.draw(1)
    charge.draw(2)
    with pytest.raises(BadInputError, match="was not at draw 2"):
        charge.draw(2)
    for draws, opened, found in ((2, True, 2), (2, False, 2), (3, True, 2)):
        charge = resumed(charge, draws, open_draw=opened)
        assert charge.file.read().claims[charge.release].begun == found
    before = charge.file.read()
    after = Charge(charge.file, charge.release, earlier=(charge.nonce,))
    assert after.go_on(2, open_draw=True, needed=True) == 2  # it cannot go on, and takes nothing
    assert charge.file.read() == before
    with pytest.raises(BadInputError, match="this checkpoint is an older copy or was shortened"):
        resumed(charge, 1)
    for draws, opened in ((3, False), (4, True)):
        with pytest.raises(BadInputError, match="the budget file is an older copy"):
            resumed(charge, draws, open_draw=opened)
    assert charge.file.read() == before  # whoever is refused takes nothing over


def test_a_file_of_version_1_gets_claims_when_it_is_charged(make: Make) -> None:
    file = make()
    old = charged(file)
    with closing(sqlite3.connect(file.path)) as connection, connection:
        connection.execute("DROP TABLE claims")
        connection.execute("ALTER TABLE entries DROP COLUMN threshold")
        connection.execute("PRAGMA user_version=1")
    assert len(file.read().releases) == 1
    with pytest.raises(BadInputError, match="by an older version"):
        resumed(old)
    charged(file).draw(1)
    assert [claim.begun for claim in file.read().claims.values()] == [1]


def test_a_file_has_one_relation_and_one_unit(make: Make) -> None:
    file = make(neighbours="add-remove", unit="person")
    Charge(file).check(Neighbours.ADD_REMOVE, "person")
    with pytest.raises(BadInputError, match="--neighbours add-remove, and this release has repl"):
        Charge(file).check(Neighbours.REPLACE_ONE, "person")
    with pytest.raises(BadInputError, match="--unit person"):
        Charge(file).check(Neighbours.ADD_REMOVE, "row")
