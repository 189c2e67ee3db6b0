"""Every planted bug is caught by the check named with it, and nothing stays planted."""

import pytest

from dualquery.audit import suite
from dualquery.audit.planted import PLANTED
from dualquery.audit.suite import PLANTED_EFFORT, Effort, carry_out
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.sensitivity import moves
from dualquery.room.sensitivity.moves import table_moves

LITTLE = Effort(1, 60, 25, 20.0, 150, larger=False)
SLOW = {"noise of a tenth of its scale", "the true n as the noisy number of rows"}
"""Caught by some hundred releases; the others' checks are fast."""


def test_every_bug_names_a_check() -> None:
    assert {bug.check for bug in PLANTED} <= {*suite.list_checks(PLANTED_EFFORT)}
    assert len({bug.name for bug in PLANTED}) == len(PLANTED) >= 21
    assert {bug.name for bug in PLANTED} >= SLOW


@pytest.mark.parametrize(
    "bug",
    [pytest.param(b, marks=[pytest.mark.slow] * (b.name in SLOW), id=b.name) for b in PLANTED],
)
def test_a_planted_bug_is_caught_and_its_check_passes_without_it(bug, monkeypatch) -> None:
    # One set of options and two workloads are enough here.
    monkeypatch.setattr(suite, "SMALL", {name: each[:1] for name, each in suite.SMALL.items()})
    workloads = [*suite.workloads(LITTLE)][::2]
    monkeypatch.setattr(suite, "workloads", lambda _: workloads)
    effort = PLANTED_EFFORT if bug.name in SLOW else LITTLE
    caught = carry_out(effort, bug.check, bug.name)
    assert caught.finding.violations
    assert caught.fault == ""
    assert carry_out(effort, bug.check).finding.violations == []


def test_nothing_stays_planted() -> None:
    before = table_moves
    with next(bug for bug in PLANTED if bug.name.startswith("sqrt 2")).plant():
        assert moves.table_moves(Neighbours.REPLACE_ONE).l1 == 1
    assert moves.table_moves is before
    assert moves.table_moves(Neighbours.REPLACE_ONE).l1 == 2
