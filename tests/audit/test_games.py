"""Games: third parties' mechanisms, what rooms give out, and that chances are all there."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from dualquery.audit import suite
from dualquery.audit.cases import UNITS, name_of
from dualquery.audit.games import Game, audit_game
from dualquery.audit.rooms import EveryPath, replaced
from dualquery.audit.suite import QUICK
from dualquery.data.domain import Domain
from dualquery.data.schema.grids import Grid
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan
from dualquery.mechanisms.registry import configure
from dualquery.privacy.events import LaplaceNoise
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.parities import Parities
from dualquery.room import statistics
from dualquery.room.curator import Curator
from dualquery.room.noise.laplace import Laplace
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import ColumnSums, OneQuery
from dualquery.runtime.errors import BadInputError

BINARY = Workload(np.array([[0, -1], [0, 2], [1, 3]], np.int32), Domain.binary(2))


def game(
    name, options, relation=Neighbours.REPLACE_ONE, delta=0.0, queries=BINARY, rows=2, stated=None
) -> Game:
    mechanism = configure(name, options) if isinstance(name, str) else name
    budget = Budget(1.0, delta, neighbours=relation)
    return Game(mechanism, queries, rows, budget, stated or rows, "a game")


@dataclass(frozen=True, kw_only=True)
class Curious(Mechanism[Details]):
    """Asks about the second query only where the first looks large: a mechanism of nobody's."""

    name: ClassVar[str] = "curious"
    pure: ClassVar[bool] = True
    scale: float = 2.0
    peeks: Callable | None = None

    def plan(self, task, budget) -> Plan[Details]:
        return Plan((LaplaceNoise(0.5), LaplaceNoise(0.5)), "advanced", Details())

    def run(self, task, plan, curator, session) -> Outcome:
        first = curator.measure(OneQuery(0), Laplace(self.scale))
        second = curator.measure(OneQuery(1 if first[0] > 1 else 2), Laplace(self.scale))
        if self.peeks is not None:
            self.peeks(curator)
        return Outcome(answers=np.array([first[0], second[0], 0.0]))


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_mechanism_that_nobody_knows_is_audited(relation) -> None:
    found = audit_game(game(Curious(), {}, relation), paths=2, most=500)
    assert found.violations == []
    assert found.tried == 7 * 7  # every value of two integers, those beyond in one
    assert 0.9 < found.share <= 1 + 1e-9  # no charge to spare where a query holds


def test_a_charge_that_is_refused_is_a_finding() -> None:
    found = audit_game(game(Curious(scale=1.0), {}), paths=2, most=500)
    assert "would cost more than the scheduled" in found.violations[0]


def test_what_depends_on_the_table_is_a_finding(monkeypatch) -> None:
    """A curator with a verb that tells a count."""
    monkeypatch.setattr(Curator, "tell", lambda self: int(self._data.counts[0]), raising=False)
    found = audit_game(game(Curious(peeks=lambda curator: curator.tell()), {}), paths=2, most=500)
    assert "tell gives out" in found.violations[0]
    assert "although the draws showed the same" in found.violations[0]


def test_a_draw_that_only_some_tables_make_is_a_finding(monkeypatch) -> None:
    def tell(self) -> None:
        if self._data.counts[0] > 1:
            self.measure(OneQuery(0), Laplace(2.0))

    monkeypatch.setattr(Curator, "tell", tell, raising=False)
    monkeypatch.setattr(Curious, "plan", lambda *_: Plan((LaplaceNoise(0.5),) * 3, "", Details()))
    found = audit_game(game(Curious(peeks=lambda curator: curator.tell()), {}), paths=2, most=500)
    assert "makes more draws than table 0" in found.violations[0]


def test_noise_that_is_too_small_is_a_finding() -> None:
    with replaced(statistics, "one_count_move", lambda queries, neighbours: 0.5):
        found = audit_game(game(Curious(scale=1.0), {}), paths=2, most=500)
    assert any("delta of the budget" in line for line in found.violations)


@pytest.mark.parametrize(
    ("name", "options", "delta"),
    [
        ("dualquery", {"rounds": 2, "samples": 2}, 1e-2),
        ("mwem", {"iterations": 1, "records": 2, "select": "noisy-max"}, 0.0),
        ("smalldb", {"size": 2}, 0.0),
        ("randomized-response", {}, 0.0),
        ("laplace", {}, 0.0),
        ("gaussian", {}, 1e-2),
        ("barak", {"fit": "none"}, 1e-2),
    ],
)
def test_charges_cover_the_truth_and_are_not_idle(name, options, delta) -> None:
    found = audit_game(game(name, options, delta=delta), paths=2, most=300)
    assert found.violations == []
    assert found.pairs == 48  # all pairs of the ten tables, both ways
    assert 0.2 < found.share <= 1 + 1e-9


@pytest.mark.parametrize("relation", UNITS, ids=name_of)
@pytest.mark.parametrize(
    ("name", "options", "delta"),
    [
        ("dualquery", {"rounds": 3, "samples": 1}, 0.0),
        ("mwem", {"iterations": 1, "records": 2, "select": "noisy-max"}, 0.0),
        ("gaussian", {}, 1e-2),
    ],
)
def test_charges_cover_units_of_two_rows(name, options, delta, relation) -> None:
    played = game(name, options, relation, delta=delta, rows=1, stated=2)
    found = audit_game(played, paths=2, most=300)
    assert found.violations == []
    assert 0.2 < found.share <= 1 + 1e-9


@pytest.mark.parametrize("name", ["uniform", "zero"])
def test_queries_that_a_mechanism_does_not_answer_are_no_violation(name) -> None:
    """They are refused before anything is planned, as in a release."""
    with pytest.raises(BadInputError, match="answers conjunctions, not Parities"):
        _ = game(name, {}, queries=Parities(2, 2)).plan


@pytest.mark.parametrize(
    ("name", "options"),
    [("mwem", {"iterations": 1, "records": 2}), ("dualquery", {"rounds": 2, "samples": 2})],
)
def test_the_paths_that_differ_in_the_last_draw_are_known_from_one(name, options) -> None:
    """What is computed of them is what playing each of them shows."""
    played, one, other = game(name, options), EveryPath(500), EveryPath(500)
    each, known = [], []
    more = True
    while more:
        each.append(played.play(one).log_chances())
        more = one.next_path()
    more = True
    while more:
        known += played.play(other).log_chances_of(other.outcomes())
        more = other.next_path(known=True)
    assert one.paths == other.paths == len(each) == len(known)
    np.testing.assert_allclose(known, each, atol=1e-12)
    np.testing.assert_allclose(np.exp(each).sum(axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("relation", [*RELATIONS, *UNITS], ids=name_of)
def test_means_that_are_bought_cost_what_is_charged(relation) -> None:
    grid = Grid("x", -1.0, 1.0, 2, exact=True)
    queries = Workload(np.array([[0]], np.int32), Domain.binary(1))
    bought = replace(game("laplace", {}, relation, queries=queries, rows=1), grids=(grid,))
    found = audit_game(bought, paths=2, most=500)
    assert found.violations == []
    assert 0.5 < found.share <= 1 + 1e-9
    with replaced(ColumnSums, "moves", lambda *_: Moves.of_entries(1, 0.5)):
        found = audit_game(replace(bought), paths=2, most=500)
    assert any("delta of the budget" in line for line in found.violations)


def test_a_refusal_is_told_and_is_no_violation() -> None:
    found = suite.list_checks(QUICK)["games/randomized-response/add-remove"]()
    assert "refuses every game" in found.remarks[0]
    assert (found.violations, found.tried) == ([], 0)
