"""Releases whose schema is learned: what is known costs nothing, what cannot be costs nothing."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.budgets.budget_file import BudgetFile
from dualquery.data.schema.column_choice import select_columns
from dualquery.data.schema.schema_files import schema_from_dict
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.releases.keep.folder import load_release
from dualquery.releases.make.schema_learning import schema_of_table
from dualquery.room.ledger import numerical_assumptions
from dualquery.room.randomness import SeededRandomness
from dualquery.runtime.errors import BadInputError
from dualquery.verification import verify

ROWS = 20_000
FRAME = pl.DataFrame({"a": ["x", "y"] * (ROWS // 2), "b": [1, 2, 2, 2] * (ROWS // 4)})
A = {"name": "a", "kind": "categorical", "values": ["x", "y"]}
PART, MWEM = {"name": "a", "kind": "categorical"}, {"mechanism": "mwem", "options": {"rounds": 10}}
B = {"name": "b", "kind": "numeric", "edges": [1, 2, 3], "integer": True}


def known(*columns: dict[str, object]) -> dict[str, object]:
    return {"partial": True, "declared": True, "columns": [*columns]}


@pytest.mark.parametrize("case", ["described", "types"])
def test_where_all_is_known_nothing_is_charged_for_a_schema(case, tmp_path) -> None:
    truth = pl.DataFrame({"a": [True, False] * 500, "b": [True, True, False, False] * 250})
    if case == "types":
        truth.write_parquet(tmp_path / "t.parquet")
        made = dualquery.release(tmp_path / "t.parquet", public_types=True, queries=2, way=1)
    else:
        made = dualquery.release(FRAME, schema=known(B, A), queries=2, way=1)
    assert made.privacy.private
    assert made.schema.column_names == ("a", "b")
    assert "thresholded" not in str(made.proof)
    assert verify(made.save(tmp_path / "out")).faults == ()


def test_a_schema_that_is_known_leaves_a_budget_file_as_it_is(tmp_path) -> None:
    file = BudgetFile.create(tmp_path / "b.budget", epsilon=1, delta=1e-6)
    found = schema_of_table(FRAME, 1.0, known=schema_from_dict(known(A, B)), budget=file.path)
    assert found.schema.column_names == ("a", "b")
    assert (found.schema.learned, found.price) == (None, None)
    assert file.read().releases == {}


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"queries": random_conjunctions(dualquery.data.Domain.binary(4), 9, 2)}, "queries"),
        ({"queries": 9, "accountant": "paper"}, "accountant"),
        ({"queries": 9, "mechanism": "mwem", "accountant": "exact", "delta": 1e-6}, "accountant"),
        ({"queries": 9, "delta": 0.0}, "delta"),
        ({"queries": 9, "mechanism": "dualquery", "delta": 0.0}, "delta"),
        ({"queries": 9, "neighbours": "add-remove"}, "delta"),
        ({"queries": 9, "schema": known({**A, "name": "c"})}, "'c'"),
        *[({name: "c"}, "'c'") for name in ("target", "query_columns", "means")],
        ({"way": 4}, "--way 2"),
        ({"schema": known(A), "schema_from_data": True}, "exclude each other"),
        ({"schema": {**known(A, B), "partial": False}, "schema_share": 0.2}, "nothing is learned"),
        ({"schema": {**known(A, B), "partial": False}, "public_types": True}, "nothing is learned"),
        ({"queries": ["a=x", "c=1"]}, "query 1: there is no column 'c'"),
        ({"queries": ["a=x", "a >> 3 &"]}, "query 1: 'a >> 3 &' is no question"),
        ({"schema": {**known(PART), "rules": ["((( hello"]}}, "is no question"),
        ({"schema": {**known(PART), "rules": ["c=1 => a=x"]}}, "there is no column 'c'"),
        ({"schema": known({**B, "edges": [0.5, 1]})}, "no two whole numbers"),
        ({"schema": known({**B, "edges": [1, 3], "within": [2]})}, "within is of buckets"),
        ({"public_types": True}, "it states no types"),
        ({"target": "0-1"}, "name one column"),
        ({"target": "a", "columns": "a"}, "needs another column"),
        ({"marginals": 500, "way": 2}, "only 1 "),
        ({"queries": 5, "way": 2, "columns": "a"}, "2 different columns"),
        ({"mechanism": "laplace", "delta": 1e-6}, "cannot follow a learned schema"),
        ({"mechanism": "auto", "options": {"rounds": 9}}, "dualquery has to be named"),
        ({"query_items": "top:2", "way": 2}, "several values"),
        ({"max_ones_per_row": 1}, "rows cannot be cut"),
        ({"weight": dualquery.Weight("a", 1.0)}, "is no weight"),
        ({"schema": known({**A, "values": ["x", "z"]})}, "is not in the schema"),
        ({"neighbours": "add-remove", "delta": 1e-6, "rows": 40, "queries": 9}, "from 40 rows"),
        ({"queries": 5, "way": 1, **MWEM, "delta": 1e-6}, "at most 5 iterations"),
        ({"weight": dualquery.Weight("b", 1e6), "columns": "a"}, "all weights are far below"),
    ],
)
def test_what_cannot_be_is_refused_before_a_schema_is_paid(asked, named, tmp_path) -> None:
    relation = asked.get("neighbours", "replace-one")
    file = BudgetFile.create(tmp_path / "b.budget", epsilon=9, delta=1e-3, neighbours=relation)
    with pytest.raises(BadInputError, match=named):
        dualquery.release(FRAME, budget=file.path, **asked)
    assert file.read().releases == {}


def test_a_refusal_before_rows_are_bought_says_that_a_schema_was_paid() -> None:
    asked = {"marginals": 1, "max_cells": 1, "mechanism": "independent", "neighbours": "add-remove"}
    with pytest.raises(BadInputError, match=r"only 0 .* its cost is spent\)$"):
        dualquery.release(FRAME, epsilon=5.0, delta=1e-5, **asked)


def test_a_learned_schema_says_its_cost_to_other_releases_only(tmp_path) -> None:
    """A part that was learned before is a condition; of the whole, both costs are."""
    first = dualquery.release(FRAME, columns="a", queries=1_000, way=1, epsilon=8.0)
    assert len(first.workload) == len({*first.answer_table["query"]}) < 1_000
    part = replace(first.schema, partial=True).to_dict()
    part = {**part, "columns": [*part["columns"], {"name": "b", "kind": "categorical"}]}
    second = dualquery.release(FRAME, schema=part, epsilon=8.0, way=1)
    third = dualquery.release(FRAME, schema=second.schema, epsilon=1.0, way=1)
    costs = [made.schema.learned["epsilon"] for made in (first, second, third)]
    assert 0 < costs[0] < costs[1] == costs[2]
    for made, cost in ((first, None), (second, costs[0]), (third, costs[1])):
        assert str(cost) in str(made.privacy.condition)
        made.save(tmp_path / str(cost))
        assert not verify(tmp_path / str(cost)).faults
    (tmp_path / "t.dat").write_text("1 2\n2\n2 3\n" * 400)
    items = dualquery.release(tmp_path / "t.dat", max_ones_per_row=2)
    again = dualquery.release(tmp_path / "t.dat", schema=items.schema)
    cost = again.schema.learned["epsilon"]
    assert items.privacy.condition is None
    assert f"(learned: epsilon {cost}" in again.privacy.condition
    assert not verify(again.save(tmp_path / "items")).faults
    for table, made in (FRAME, second), (tmp_path / "t.dat", items):
        with pytest.raises(BadInputError, match="learned with other neighbours"):
            dualquery.release(table, schema=made.schema, neighbours="add-remove", delta=1e-6)


def test_what_is_learned_draws_noise_of_its_own(monkeypatch) -> None:
    """Else a seeded schema and its release have the same numbers."""
    seeds, begin = [], SeededRandomness.__init__
    noted = lambda source, seed: seeds.append(seed) or begin(source, seed)  # noqa: E731
    monkeypatch.setattr(SeededRandomness, "__init__", noted)
    dualquery.release(FRAME, queries=9, way=1, epsilon=8.0, mechanism="gaussian", seed=1)
    assert len({*seeds}) == len(seeds) == 2


def test_positions_count_columns_that_are_not_learned_too() -> None:
    frame = FRAME.rename({"a": "sex", "b": "kids"}).with_columns(pl.Series("ill", FRAME["b"] == 1))
    frame = frame.insert_column(0, pl.Series("id", [f"k{n}" for n in range(ROWS)]))
    made = dualquery.release(frame, query_columns="1,3", queries="all", way=2, epsilon=8.0)
    assert made.schema.column_names == ("sex", "kids", "ill")
    asked = made.schema.domain.column_of_bit[made.workload.literals >> 1]
    assert {*asked.ravel().tolist()} == {0, 2}
    rest = dualquery.release(frame, query_columns="!id", queries="all", way=1, epsilon=8.0)
    assert {*rest.schema.domain.column_of_bit[rest.workload.literals >> 1].ravel()} == {0, 1, 2}
    assert dualquery.release(frame, target=3, epsilon=8.0).workload.description["target"] == 2
    # A name is no position, and has its blanks.
    assert select_columns("!b ,c", ["a", "b ", "c"]) == [2]
    assert select_columns(["c"], ["a", "b ", "c"]) == [2]
    assert select_columns(["! 0"], [" 0", "x"]) == [1]
    odd = frame.rename({"id": "2", "sex": " 0"})
    assert dualquery.release(odd, target=1, epsilon=8.0).workload.description["target"] == 0
    for asked in ({"target": "2"}, {"query_columns": "2"}):
        with pytest.raises(BadInputError, match=r"of \['2'\] not all could be learned"):
            dualquery.release(odd, epsilon=8.0, **asked)


def test_a_schema_of_units_goes_by_the_rows_that_they_may_have() -> None:
    homes = FRAME.with_columns(pl.Series("home", np.arange(ROWS) // 4)).head(6_000)
    made = dualquery.release(homes, unit=dualquery.Unit("home", 5), epsilon=2.0, queries=9, way=1)
    assert made.schema.column_names == ("a", "b")


def test_a_large_epsilon_learns_a_schema() -> None:
    rare = np.where(np.arange(ROWS) % 50, "often", np.arange(ROWS).astype(str))
    found = schema_of_table(pl.DataFrame({"a": rare}), 50.0, 1e-6, seed=1).schema
    assert found.columns[0].labels == ("often", "(other)", "(missing)")
    made = dualquery.release(FRAME, epsilon=20.0, queries=2, way=1)
    assert made.privacy.private
    assert made.schema.column_names == ("a", "b")


def test_of_a_column_whose_range_is_said_only_the_edges_are_learned() -> None:
    rng = np.random.default_rng(3)
    frame = FRAME.with_columns(
        hours=pl.Series(np.where(rng.random(ROWS) < 0.5, 40, rng.integers(0, 90, ROWS))),
        order=pl.Series(rng.choice([1, 500, 1005], ROWS)),
        mark=pl.Series(rng.choice([1, 4, 9], ROWS)),
    )
    hours = {"name": "hours", "kind": "numeric", "edges": [0, 100], "integer": True}
    orders = {**hours, "name": "order", "edges": [1, 1005]}
    marks = {**hours, "name": "mark", "edges": [1, 9], "missing_values": ["9"]}
    said = schema_from_dict(known(hours, {"name": "a", "kind": "categorical"}, B, orders, marks))
    found = schema_of_table(frame, 1.0, 1e-6, known=said, seed=2)
    assert [type(event).__name__ for event in found.events] == ["ThresholdedCounts"]
    assert "discrete Gaussian" in " ".join(numerical_assumptions(found.events))
    assert found.price.sizes == (4, 0)
    columns = {each.name: each for each in found.schema.columns}  # type: ignore[union-attr]
    assert columns["a"].labels == ("x", "y", "(other)", "(missing)")
    edges = columns["hours"].edges
    assert (edges[0], edges[-1]) == (0, 100)
    assert {40.0, 41.0} <= {*edges}
    assert len(edges) > 8
    assert columns["order"].edges[-2:] == (1005.0, 1006.0)  # a declared end is in the range
    assert columns["mark"].edges[-2:] == (8.0, 9.0)  # unless it stands for missing


def test_what_stands_for_missing_values_in_all_columns_is_said_once() -> None:
    frame = FRAME.with_columns(
        c=pl.Series(["u", "v", "?", "."] * (ROWS // 4)),
        d=pl.Series([1, 2, 9, 4] * (ROWS // 4)),
        e=pl.Series(["u", "(missing)", "(other)", "v"] * (ROWS // 4)),
        day=pl.Series(["2014-01-31", "2014-01-30", "2014-01-09", "9"] * (ROWS // 4)),
        f="b",
    )
    rules = {"rules": ["c <= d", "day=2014-01-09 => d=1", "c=zzz => d=1", "b <= f", "c=u => d=1"]}
    public = known(A, B, {**B, "name": "f"}) | rules
    said = schema_from_dict(public | {"missing_values": ["", "?", "9", "2014-01-31"]})
    learned = schema_of_table(frame, 1.0, 1e-6, known=said, seed=2)
    found = learned.schema
    assert (found.rules, found.left_out) == (said.rules[3:], ())
    assert learned.notes[-1].endswith(": " + "; ".join(rules["rules"][:3]))
    assert dualquery.release(frame, schema=found, queries=2, way=1, delta=1e-6).schema == found
    assert [(each.name, each.labels, each.missing_values) for each in found.columns[2:]] == [
        ("c", ("u", "v", "(other)", "(missing)"), (".",)),
        ("d", ("1", "2", "3", "4", "(missing)"), ()),
        ("e", ("u", "v", "(other)", "(missing)"), ("(missing)",)),
        ("f", ("1", "2"), ()),
    ]


def test_a_schema_and_a_number_of_rows_that_are_bought_are_paid_together(tmp_path) -> None:
    terms = {"epsilon": 2, "delta": 1e-3, "neighbours": "add-remove"}
    file = BudgetFile.create(tmp_path / "b.budget", **terms)
    asked = {"neighbours": "add-remove", "delta": 1e-4, "queries": 2, "way": 1}
    made = dualquery.release(FRAME, budget=file, **asked)
    assert made.privacy.private
    assert made.proof["rows"]["bought"] is not None
    assert file.read().spent == pytest.approx((made.privacy.epsilon, 1e-4))
    with pytest.raises(BadInputError, match="nowhere"):  # its price is one with what follows
        dualquery.release(FRAME, budget=file, **{**asked, "queries": ["a=nowhere"]})
    assert file.read().spent == pytest.approx((1.96, 2e-4))
    assert verify(made.save(tmp_path / "out")).faults == ()


def test_what_was_learned_before_is_added_up() -> None:
    one = schema_of_table(FRAME, 1.0, 1e-6).schema
    again = replace(one, columns=one.columns[:1], partial=True)
    both = schema_of_table(FRAME, 2.0, 1e-6, known=again).schema.learned
    assert (both["epsilon"], both["delta"], len(both["events"])) == (3.0, 2e-6, 4)
    with pytest.raises(BadInputError, match="learned with other neighbours"):
        schema_of_table(FRAME, 2.0, 1e-6, known=again, neighbours=Neighbours.ADD_REMOVE)


def test_a_seed_learns_the_same_schema_again() -> None:
    rare = pl.Series("c", np.random.default_rng(0).geometric(0.05, ROWS)).cast(pl.String) + "x"
    one, other = (schema_of_table(FRAME.with_columns(rare), 0.2, 1e-6, seed=3) for _ in range(2))
    assert one.schema == other.schema


def test_a_column_whose_range_is_lost_in_noise_stays_out() -> None:
    wide = np.random.default_rng(0).lognormal(8, 3, 6_000)
    found = schema_of_table(FRAME[:6_000].with_columns(wide=wide), 0.3, 1e-8)
    assert "wide" not in found.schema.column_names
    assert "wide (" in found.notes[1]


def test_a_range_wider_than_any_number_is_learned_and_kept(tmp_path) -> None:
    column = {**B, "edges": [-1.7e308, 1.7e308], "integer": False, "within": ["sloped"]}
    made = dualquery.release(FRAME, schema=known(A, column), queries=2, way=1, epsilon=9.0)
    edges = load_release(made.save(tmp_path / "out")).schema.columns[1].edges
    assert (edges[0], edges[-1]) == (-1.7e308, 1.7e308)


@pytest.mark.parametrize("more", [{"declared": False}, {"drop_incomplete": True}])
def test_a_partial_schema_that_cannot_be_is_refused(more) -> None:
    with pytest.raises(BadInputError, match=next(iter(more))):
        dualquery.release(FRAME, schema={**known(A), **more}, queries=2, way=1)
