"""Sensitivities: everything that the room counts is tried, and plans are found."""

import pytest

from dualquery.audit import sensitivities
from dualquery.audit.cases import CASES, UNITS, WEIGHTS, name_of
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.room.statistics import AllQueries, RowTotal

every_relation = pytest.mark.parametrize("relation", [*RELATIONS, *UNITS, *WEIGHTS], ids=name_of)


def test_everything_that_the_room_counts_has_a_case() -> None:
    assert set(CASES) == set(sensitivities.EVERYTHING)


@every_relation
@pytest.mark.parametrize("kind", sensitivities.EVERYTHING, ids=lambda k: k.__name__)
def test_nothing_moves_by_more_than_is_charged(kind, relation) -> None:
    found = sensitivities.audit_moves(relation, kind, 3)
    assert found.violations == []
    assert found.tried == 3
    # Where it is public the number of rows does not move, and is charged all the same.
    still = kind is RowTotal and relation.rows_public
    assert found.share == pytest.approx(0 if still else 1, abs=0 if still else 0.5)


def test_a_new_statistic_without_a_case_is_a_finding() -> None:
    class New(AllQueries):
        pass

    found = sensitivities.audit_moves(Neighbours.REPLACE_ONE, New, 3)
    assert found.violations == ["New is measured by the room, and not tried here"]


def test_the_number_of_rows() -> None:
    for relation in (Neighbours.ADD_REMOVE, *UNITS, *WEIGHTS):
        found = sensitivities.audit_row_count(relation, 3)
        assert (found.violations, found.tried) == ([], 3)
        assert found.share == pytest.approx(1)


@pytest.mark.parametrize("relation", [UNITS[0], *WEIGHTS], ids=name_of)
def test_which_rows_count(relation) -> None:
    found = sensitivities.audit_units(relation, 8)
    assert (found.violations, found.tried, found.share) == ([], 8, 1)


@pytest.mark.parametrize("relation", [*RELATIONS, *UNITS], ids=name_of)
def test_thresholds_of_a_learned_schema(relation) -> None:
    found = sensitivities.audit_thresholds(relation)
    assert found.violations == []
    assert 0.9 < found.share <= 1 + 1e-9


def test_texts_of_single_rows() -> None:
    found = sensitivities.audit_single_texts()
    assert (found.violations, found.tried) == ([], 40_000)
    assert found.share > 0.8
