"""The main job from Python: what goes in, what is refused and when, what comes out."""

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.independent import Independent
from dualquery.mechanisms.protocol import Budget, Outcome, Task
from dualquery.mechanisms.registry import configure
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.releases.make.beside import TOTAL_SHARE
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, legal, people

SMALL = {"schema": SCHEMA, "queries": 30, "way": 2}
QUICK = {**SMALL, "options": {"rounds": 6, "samples": 5}}


def test_a_declared_table_gives_a_private_release() -> None:
    made = dualquery.release(people(), **QUICK)
    assert made.privacy.private
    assert made.privacy.epsilon == 1.0
    assert made.privacy.delta == made.options["delta"] == 1 / 300**2
    assert made.n == 300
    assert len(made.answers) == len(made.workload) == 30
    assert legal(SCHEMA.domain, made.records)
    assert made.synthetic.columns == people().columns
    assert made.answer_table.columns[:2] == ["query", "answer"]
    assert made.options["mechanism"]["rounds"] == 6
    assert made.parameters["rounds"] == 6


def test_a_seed_takes_the_guarantee_away() -> None:
    made = dualquery.release(people(), **QUICK, seed=1)
    assert not made.privacy.private
    assert "epsilon" not in made.privacy.to_dict()
    assert "a seed was given" in made.privacy.text()
    assert "not private" in made.privacy.text()


def test_an_undeclared_schema_takes_the_guarantee_away() -> None:
    drafted = {"queries": 30, "way": 2, "schema_from_data": True}
    made = dualquery.release(people(), options=QUICK["options"], **drafted)
    assert not made.privacy.private
    assert "epsilon" not in made.privacy.to_dict()
    assert any("the schema is not declared" in text for text in made.privacy.reasons_not_private)
    both = dualquery.release(people(), mechanism="zero", seed=0, **drafted)
    assert len(both.privacy.reasons_not_private) == 2


@pytest.mark.parametrize(
    ("mechanism", "delta"), [("laplace", 0), ("gaussian", 1 / 90_000), ("independent", 1 / 90_000)]
)
def test_default_delta_is_0_for_pure_mechanisms(mechanism, delta) -> None:
    made = dualquery.release(people(), **SMALL, mechanism=mechanism)
    assert made.privacy.delta == delta
    assert made.privacy.private


def test_same_seed_same_release_whatever_the_threads() -> None:
    one, other = (dualquery.release(people(), **QUICK, seed=4, threads=t) for t in (1, 3))
    np.testing.assert_array_equal(one.answers, other.answers)
    np.testing.assert_array_equal(one.records, other.records)


def test_columns_restrict_the_data_and_query_columns_the_workload() -> None:
    made = dualquery.release(people(), **SMALL | {"queries": 10}, columns=["age", "sex", "flag"])
    assert made.schema.column_names == ("age", "flag", "sex")
    assert any("left out: 2" in note for note in made.notes)
    made = dualquery.release(people(), **SMALL | {"queries": 10}, query_columns="age,sex")
    used = {*made.schema.domain.column_of_bit[made.workload.literals.ravel() >> 1].tolist()}
    assert used == {0, 3}
    assert made.synthetic.width == 5


def test_workloads_of_every_kind(tmp_path) -> None:
    (tmp_path / "list.txt").write_text("age=0-25 & sex=Male\n!flag\n")
    base = {"schema": SCHEMA, "mechanism": "zero"}
    listed = dualquery.release(people(), **base, queries=tmp_path / "list.txt")
    assert len(listed.workload) == 2
    typed = dualquery.release(people(), **base, queries=["age=0-25 & sex=Male", "!flag"])
    assert np.array_equal(typed.workload.literals, listed.workload.literals)
    for wrong, message in (
        ([], "give it texts"), ([3], "give it texts"), (["flag", "flag"], "query 1: 'flag' is the"),
    ):  # fmt: skip
        with pytest.raises(BadInputError, match=message):
            dualquery.release(people(), **base, queries=wrong)
    every = dualquery.release(people(), **base, queries="all", way=1)
    assert len(every.workload) == 4 + 4 + 2 + 2 + 2
    some = dualquery.release(people(), **base, marginals=2, way=2, max_cells=8)
    assert some.workload.description["kind"] == "random marginals"
    learn = dualquery.release(people(), **base, target="sex")
    sets = {*map(tuple, SCHEMA.domain.column_of_bit[learn.workload.literals >> 1].tolist())}
    assert len(sets) == 6
    assert all(SCHEMA.column_names.index("sex") in chosen for chosen in sets)
    own = random_conjunctions(SCHEMA.domain, 5, 2)
    assert dualquery.release(people(), **base, queries=own).workload.literals.tolist() == (
        own.literals.tolist()
    )


def test_auto_is_the_default_mechanism() -> None:
    made = dualquery.release(people(), **SMALL)
    assert (made.mechanism, made.chosen) == ("auto", "adaptive")
    assert made.parameters["mechanism"] == "adaptive"
    assert len(made.records) == made.n == 300
    assert made.intervals is not None
    assert made.privacy.private
    assert "by adaptive" in repr(made)
    implied = dualquery.release(people(), **QUICK)
    assert implied.mechanism == implied.chosen == "dualquery"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "--epsilon is 0"),
        ({"accountant": "best"}, "--accountant: 'best' is unknown (known: auto, paper"),
        ({"neighbours": "add-remove"}, "give --delta, or state a number of rows with --rows"),
        ({"mechanism": "magic"}, "unknown mechanism 'magic'"),
        ({"options": {"roundz": 3}}, "no option 'roundz'; did you mean 'rounds'"),
        ({"mechanism": "auto", "options": {"population": 3}}, "name the mechanism that has it"),
        ({"options": {"components": -3}}, "components is -3; a whole number"),
        ({"way": 0}, "--way is 0"),
        ({"queries": 10.0}, "queries is 10.0; give a number, 'all', a path or a list"),
        ({"queries": ["!flag"], "signed": False}, "--positive does not go with --queries"),
        ({"epsilon": "1"}, "--epsilon is '1'; a number is needed"),
        ({"target": "sex", "queries": 5}, "--target and --queries are two ways"),
        ({"max_cells": 9}, "--max-cells goes with a number of --marginals"),
        ({"queries": "mine.txt", "query_columns": "age"}, "--query-columns does not go with"),
        ({"seed": -1}, "--seed is -1"),
        ({"seed": 1.5}, "--seed is 1.5"),
        ({"way": "2"}, "--way is '2'"),
        ({"marginals": 2.0}, "--marginals is 2.0"),
        ({"signed": "no"}, "--signed is 'no'"),
        ({"rows": 250.5, "neighbours": "add-remove"}, "--rows is 250.5"),
        ({"query_columns": 5}, "--query-columns is 5"),
        ({"threads": True}, "--threads is True"),
    ],
)
def test_what_is_wrong_is_refused_before_the_table_is_read(options, message, monkeypatch) -> None:
    monkeypatch.setattr("dualquery.rows.engines.read", None)  # so that nobody can call it
    with pytest.raises(BadInputError) as error:
        dualquery.release("adult", **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (people(1), QUICK, "1 record; a private release needs at least 2"),
        (people(), QUICK | {"way": 6}, "6-way queries need 6 different columns"),
        (people(), QUICK | {"query_columns": "colour"}, "there is no column 'colour'"),
        (people(), QUICK | {"queries": None, "marginals": 3, "max_cells": 2},
         "marginals of at most 2 cells"),
        (people(), QUICK | {"queries": None, "way": 3, "target": "0-2"},
         "--target is '0-2'; name one column"),
        (people(), QUICK | {"queries": None, "way": 3, "target": "zz"},
         "--target: there is no column 'zz'"),
        (people().with_columns(age=pl.lit(200)), QUICK, "outside the schema's range"),
        (people(), SMALL | {"accountant": "zcdp", "delta": 0.0}, "no guarantee at delta = 0"),
        (people(), SMALL | {"options": {"rounds": 9, "samples": 9, "eta": 9.0}},
         "above the budget"),
        (pl.DataFrame({"a": [0, 1]}), {"schema": {"columns": [
            {"name": "a", "kind": "numeric", "edges": [0, 1, 1e16], "integer": True}]}},
         "column 'a': numbers from 2^53 on merge"),
        (7, QUICK, "data of type int cannot be read"),
    ],
)  # fmt: skip
def test_bad_tables_and_requests_are_one_message(table, options, message) -> None:
    with pytest.raises(BadInputError) as error:
        dualquery.release(table, **options)
    assert message.lower() in str(error.value).lower()
    assert "\n" not in str(error.value)


def test_a_tiny_budget_is_played_or_refused_but_never_a_fault() -> None:
    for epsilon in (1e-6, 1e-3, 1e4):
        made = dualquery.release(people(), **SMALL, epsilon=epsilon, accountant="zcdp")
        assert made.privacy.epsilon == epsilon
    with pytest.raises(BadInputError, match="--epsilon is 1e-12"):
        dualquery.release(people(), **SMALL, epsilon=1e-12)


def test_a_workload_of_another_domain_is_refused() -> None:
    other = random_conjunctions(Domain.binary(SCHEMA.domain.bits), 5, 2)
    with pytest.raises(BadInputError, match="make it for the schema's own domain"):
        dualquery.release(people(), schema=SCHEMA, queries=other)


def test_a_table_of_two_columns_is_asked_2_way_queries_by_default() -> None:
    small = {"schema": SCHEMA, "columns": "age,sex", "mechanism": "independent"}
    made = dualquery.release(people(), **small)
    assert made.workload.way == 2
    assert any("2 literals" in note for note in made.notes)
    with pytest.raises(BadInputError, match="4-way queries need 4 different columns"):
        dualquery.release(people(), **small, way=4)


@pytest.mark.parametrize("what", ["unit", "weight"])
def test_a_unit_or_weight_is_no_column_name(what) -> None:
    message = rf"{what} is 'row'; a dualquery.{what.title()}\(column"
    with pytest.raises(BadInputError, match=message):
        dualquery.release(people(), schema=SCHEMA, **{what: "row"})


@pytest.mark.parametrize("answers", [[np.nan] * 9, [0.5] * 8, np.float32([0.5] * 9)], ids=str)
def test_answers_that_are_none_are_not_kept(answers, monkeypatch) -> None:
    monkeypatch.setattr(Independent, "run", lambda *_: Outcome(np.array(answers)))
    with pytest.raises(ValueError, match="independent must answer 9 queries"):
        dualquery.release(people(), schema=SCHEMA, queries=9, way=2, mechanism="independent")


@pytest.mark.parametrize("n", [-5, 1.5, float("nan"), float("inf"), 10**400])
def test_no_error_is_expected_of_fewer_than_two_rows_or_no_number(n) -> None:
    with pytest.raises(BadInputError, match=f"n is {n}; a number of rows from 2 on"):
        dualquery.expected_error(random_conjunctions(SCHEMA.domain, 9, 2), n)


def test_the_error_told_counts_what_a_stated_number_of_rows_costs() -> None:
    task, own = Task(random_conjunctions(SCHEMA.domain, 9, 2), 400), configure("gaussian", {})
    rest = Budget(1.0 - TOTAL_SHARE, 1e-6, neighbours=Neighbours.ADD_REMOVE)
    asked = {"mechanism": "gaussian", "neighbours": "add-remove", "delta": 1e-6}
    told = dualquery.expected_error(task.queries, 400, rows=400, **asked)
    assert told == own.expected_error(task, own.plan(task, rest))
