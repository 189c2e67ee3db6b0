"""Units of several rows: what moves, over all units and all neighbours of tiny tables."""

import itertools

import numpy as np
import pytest

from dualquery.audit.cases import UNITS, Case, carrying, legal_records, name_of, records_of
from dualquery.data.domain import Domain
from dualquery.data.given_table import Unit, Weight
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.mechanisms.registry import configure
from dualquery.privacy.accountants.formulas import PaperAccountant
from dualquery.privacy.events import GameSchedule
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.tabulated import HistogramQueries
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.private_data import PrivateData
from dualquery.room.randomness import randomness
from dualquery.room.row_count import RowCount, bought_epsilon
from dualquery.room.scores import GRID, SCORES, WorstCuboid
from dualquery.room.statistics import AllQueries, FeatureSums
from dualquery.runtime.errors import BadInputError
from tests.audit.test_games import game

DOMAINS = (Domain.binary(2), Domain(np.array([0, 1, 4])))
units = pytest.mark.parametrize("relation", UNITS, ids=name_of)


@units
@pytest.mark.parametrize("kind", [AllQueries, FeatureSums, WorstCuboid], ids=lambda k: k.__name__)
def test_no_unit_moves_anything_by_more_than_is_charged(kind, relation) -> None:
    """All units of up to three rows, none and the largest included; the audit tries the others."""
    most = 3
    relation = Neighbours.parse(relation.value, Unit("unit", most))
    for seed, domain in enumerate(DOMAINS):
        generator = np.random.default_rng(seed)
        case = Case(kind, domain, generator)
        records = carrying(legal_records(case.queries.domain), case.grids, generator)
        base = records[generator.integers(len(records), size=2)]
        every = [
            unit
            for size in range(most + 1)
            for unit in itertools.combinations_with_replacement(range(len(records)), size)
        ]
        exact = [
            case.counted.exact(
                PrivateData(
                    records_of(np.concatenate((base, records[list(unit)]))),
                    case.queries,
                    relation,
                    public_rows=4,
                    grids=case.grids,
                )
            )
            for unit in every
        ]
        pairs = np.array(
            [
                (one, other)
                for one, other in itertools.combinations(range(len(every)), 2)
                if relation.replaces or () in (every[one], every[other])
            ]
        )
        if kind in SCORES:
            values = np.array([each.values for each in exact]) / GRID
            moved = np.abs(values[pairs[:, 0]] - values[pairs[:, 1]]).max()
            assert moved <= exact[0].move * (1 + 1e-12)
            continue
        values = np.array([(each.numbers / each.scales).ravel() for each in exact])
        apart = np.abs(values[pairs[:, 0]] - values[pairs[:, 1]])
        moves = exact[0].moves
        assert apart.sum(axis=1).max() <= moves.l1 * (1 + 1e-12)
        assert np.linalg.norm(apart, axis=1).max() <= moves.l2 * (1 + 1e-12)
        assert moves == case.counted.moves(case.queries, relation)


@units
@pytest.mark.parametrize("queries", [game("gaussian", {}).queries, HistogramQueries([[3.0, 4.0]])])
def test_a_unit_of_one_row_costs_what_a_row_does_or_both_kinds_of_steps(queries, relation) -> None:
    one = AllQueries().moves(queries, Neighbours.parse(relation.value, Unit("unit", 1)))
    rows = [AllQueries().moves(queries, each) for each in RELATIONS]
    assert one.l2 == max(each.l2 for each in (rows if relation.replaces else rows[1:]))
    seven = AllQueries().moves(queries, Neighbours.parse(relation.value, Unit("unit", 7)))
    assert (seven.l1, seven.l2) == (7 * one.l1, 7 * one.l2)


def test_games_that_forget_the_rows_of_a_unit_are_refused() -> None:
    """A plan for one row, in a room that protects units: the ledger refuses the first draw."""
    planned = game("gaussian", {}, Neighbours.ADD_REMOVE, delta=1e-2)
    queries, schedule = planned.queries, planned.plan.schedule
    rows = records_of(legal_records(queries.domain))
    curator = Curator(rows, queries, schedule, randomness(1), neighbours=UNITS[0], public_rows=4)
    with pytest.raises(RuntimeError, match="cost more than the scheduled"):
        curator.measure(AllQueries(), Gaussian(schedule[0].scale))


def test_randomized_response_protects_rows_only() -> None:
    queries = game("randomized-response", {}).queries
    budget = Budget(1.0, 0.0, neighbours=UNITS[0])
    with pytest.raises(BadInputError, match="without --unit"):
        configure("randomized-response", {}).plan(Task(queries, 10), budget)


def test_the_paper_is_about_rows() -> None:
    schedule = GameSchedule(5, 2, 0.01, 100, UNITS[1])
    assert "not about units" in str(PaperAccountant().supports(schedule, 1e-3))
    draws = GameSchedule(5, 2, 0.01, 100, Neighbours.ADD_REMOVE).events()
    assert schedule.events()[0].range == pytest.approx(2 * draws[0].range)


def test_relations() -> None:
    household = Unit("household", 5)
    for relation in RELATIONS:
        stored = Neighbours.parse(relation.value, household).described()
        assert Neighbours.of_options(stored) == Neighbours.parse(relation.value, household)
        assert Neighbours.of_options(relation.described()) is relation
    assert Neighbours.of_options({"neighbours": "add-remove"}) is Neighbours.ADD_REMOVE
    replaced = Neighbours.parse("replace-one", household)
    assert not replaced.rows_public
    assert (replaced.furthest(2.0, 1.0), replaced.furthest(0.5, 1.0)) == (10.0, 5.0)
    assert Neighbours.parse("add-remove", household).furthest(2.0, 1.0) == 5.0
    assert Neighbours.REPLACE_ONE.furthest(2.0, 7.0) == 2.0
    weight = Weight("w", 2.0)
    assert Neighbours.parse("add-remove", household, weight).steps == 5 * weight.copies > 5
    assert RowCount(10, replaced, 0.1, 4).relation == (
        "replace one unit of column 'household' with at most 5 rows, the number of units public, "
        "the number of rows released with noise"
    )


def test_what_the_number_of_rows_costs() -> None:
    five, one = (Neighbours.parse("replace-one", Unit("h", most)) for most in (5, 1))
    assert bought_epsilon(five, None, 1.0) == pytest.approx(0.04)
    assert bought_epsilon(five, 100, 1.0) == 0
    assert bought_epsilon(one, None, 1.0) == 0
    assert bought_epsilon(Neighbours.parse("add-remove", Unit("h", 1)), None, 1.0) > 0
    assert bought_epsilon(Neighbours.REPLACE_ONE, None, 1.0) == 0
    assert RowCount(100, five, 0.5).noise_scale == pytest.approx(10.0)
