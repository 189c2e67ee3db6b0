"""What the audit makes of a mechanism that refuses a game."""

from __future__ import annotations

import numpy as np

from dualquery.audit.findings import Finding
from dualquery.audit.games import Game
from dualquery.audit.suite import FULL, _add_game
from dualquery.data.domain import Domain
from dualquery.mechanisms.protocol import Budget
from dualquery.mechanisms.registry import configure
from dualquery.queries.conjunctions import Workload


def test_a_refusal_is_told_and_is_no_violation() -> None:
    one = Workload(np.array([[0]], np.int32), Domain.binary(1))
    game = Game(configure("dualquery", {}), one, 1, Budget(1.0, 1e-2), 1, "one row")
    finding = Finding()
    assert "at least 2" in _add_game(game, FULL, finding)
    assert not finding.violations
    assert not finding.tried
