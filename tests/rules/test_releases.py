"""Releases keep the rules: every mechanism's records, samples, answers; who is told what."""

import json
import logging
from dataclasses import replace
from typing import get_args

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.cli.main import DONE, main
from dualquery.data import Binary, Categorical, Numeric, TableSchema
from dualquery.data.schema.schema_files import write_schema
from dualquery.mechanisms.registry import BUILT_IN
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.answer.cross_tables import cross_table
from dualquery.releases.keep.folder import Release
from dualquery.report.facts import shares, widths
from dualquery.rules.reading import rules_of
from mwem.representations import Name
from tests.tables import SCHEMA, people

RULES = (
    "age<25 => job=nurse",
    "not (flag & sex=Male & job=clerk)",
    "job=smith => age>=50",
    "constant=b => flag",
    'job="(missing)" => constant=a',
)
RULED = replace(SCHEMA, rules=RULES)
OPTIONS = {
    "dualquery": {"rounds": 30, "samples": 10},
    "matrix": {"components": 16, "steps": 50},
    "mwem": {"iterations": 4},
    "mwem-sampled": {"rounds": 4, "population": 500},
}


def released(mechanism: str, **others) -> Release:
    asked = {"schema": RULED, "queries": 80, "way": 2, "seed": 3}
    asked |= {"options": OPTIONS.get(mechanism), **others}
    return dualquery.release(people(), mechanism=mechanism, **asked)


def broken(rows: pl.DataFrame) -> pl.Series:
    """Return the rows in the user's columns that break a rule, by its words."""
    age, job, flag = rows["age"], rows["job"], rows["flag"].cast(pl.Boolean)
    none, clerk, smith = job.is_null(), (job == "clerk"), (job == "smith")
    clerk, smith = clerk.fill_null(value=False), smith.fill_null(value=False)
    return (
        ((age < 25) & ~(job == "nurse").fill_null(value=False))
        | (flag & (rows["sex"] == "Male") & clerk)
        | (smith & (age < 50))
        | ((rows["constant"] == "b") & ~flag)
        | (none & (rows["constant"] != "a"))
    )


@pytest.mark.parametrize("mechanism", BUILT_IN)
def test_every_mechanism_keeps_the_rules(mechanism: str) -> None:
    """Whatever writes records, in a release and drawn from it; and the forced answers."""
    made, rules = released(mechanism), rules_of(RULED)
    if made.records is not None:
        assert (rules.broken(made.records) < 0).all()
        assert not broken(made.synthetic).any()
        assert not broken(made.sample(777, seed=1)).any()
    forced = {
        "age=0-25 & job=smith": 0.0,
        "constant=b & !flag": 0.0,
        "job=clerk & flag & sex=Male": 0.0,
        "not (job=smith & age<50)": 1.0,
        "job=nurse given age=0-25": 1.0,
        "count(age<25 & job!=nurse)": 0.0,
    }
    for line, truth in zip(answer_queries(made, list(forced)), forced.values(), strict=True):
        assert (line["answer"], line["low"], line["high"]) == (truth, truth, truth), line
        assert line["source"] == "rules"
        assert "forced by the rules of the schema" in line["basis"]
    stated = replace(made, base=replace(made.base, known="stated"))
    (line,) = answer_queries(stated, ["count(not (job=smith & age<50))"])
    assert (line["answer"], line["low"]) == (made.base.amount, None)
    table = made.answer_table.filter(pl.col("query") == "age=0-25 & job=smith")
    assert table.rows() == [] or table["answer"][0] == table["interval_high"][0] == 0.0


@pytest.mark.parametrize("representation", get_args(Name))
def test_every_representation_of_mwem_keeps_the_rules(representation: str) -> None:
    options = {"iterations": 4, "representation": representation}
    assert not broken(released("mwem", options=options).synthetic).any()
    assert broken(released("mwem", options=options, schema=SCHEMA).synthetic).any()


def test_answers_of_the_workload_are_forced_in_the_files(tmp_path) -> None:
    made = released("gaussian", queries="all")
    texts = made.answer_table["query"]
    zero = (texts == "age=0-25 & job=smith") | (texts == "age=0-25 & job=clerk")
    assert zero.sum() == 2
    made.save(tmp_path / "made")
    assert dualquery.load_release(tmp_path / "made").schema == made.schema
    rows = pl.read_parquet(tmp_path / "made/answers.parquet").filter(zero)
    for name in ("answer", "interval_low", "interval_high"):
        assert rows[name].to_list() == [0.0, 0.0]
    same = made.answers == released("gaussian", queries="all", schema=SCHEMA).answers
    assert same.any()
    assert np.isin(made.answers[~same], (0.0, 1.0)).all()
    told = json.loads((tmp_path / "made/release.json").read_text())
    assert any("5 rules between columns" in note for note in told["notes"])
    kept = people().filter(~broken(people()))
    for way in (1, 2, 3):
        made = dualquery.release(kept, schema=RULED, queries="all", way=way, epsilon=1e4)
        assert dualquery.evaluate(made, kept)["max_error"] < 1e-3
    lists = [["flag", "job=nurse", "job=nurse & flag"], ["age=0-25", "job=nurse & sex=Male"]]
    lists += [["job!=nurse & flag & constant=a"], ["!flag & job=clerk", "job!=nurse & sex=Female"]]
    lists[-1] += ["constant!=b & age>=50", "age<25 & sex=Female", "constant=b & job=nurse"]
    for asked in lists:
        made = dualquery.release(kept, schema=RULED, queries=asked, epsilon=1e4, records=5_000)
        assert np.abs(made.workload.answers_on(made.records) - made.answers).max() < 0.02


def test_what_rules_imply_leaves_no_question_open() -> None:
    age = Categorical("age", tuple("nyo"))
    rules = ("child => age != n", "not child => age = n")
    ruled = TableSchema((Binary("child"), age), declared=True, rules=rules)
    rows = pl.DataFrame({"child": [1, 1, 0] * 900, "age": [*"yon"] * 900})
    asked = {"queries": ["child & age=y", "child & age=o"], "epsilon": 1.0, "seed": 1}
    made = dualquery.release(rows, schema=ruled, **asked)
    (line,) = dualquery.answer_queries(made, ["child & (age=y or age=o)"])
    assert 0.6 < line["low"] < 2 / 3 < line["high"] < 0.7


def test_given_rows_that_the_rules_forbid_are_none() -> None:
    texts = [f"{asked} given job=smith & age<25" for asked in ("flag", "mean(age)", "median(age)")]
    for line in answer_queries(released("matrix"), texts):
        assert line["answer"] is None
        assert "allow no rows like the given ones" in line["basis"]
    (total,) = answer_queries(released("matrix"), ["sum(age) given job=smith & age<25"])
    assert (total["answer"], total["interval"], total["source"]) == (0.0, (0.0, 0.0), "rules")
    cells = cross_table(released("matrix"), "age", "job").cells
    zeros = [cell for cell in cells if cell["source"] == "rules"]
    assert len(zeros) == 4  # three jobs of the youngest, and a smith below 50
    assert {cell["answer"] for cell in zeros} == {0.0}


def test_cells_that_rules_tie_add_up_though_nothing_measured_them_together() -> None:
    """A model knows no rules: mass on forbidden cells would be lost; records keep them."""
    drawn = np.sort(np.random.default_rng(0).integers(0, 30, (5000, 2)), axis=1)
    names, table = ("start", "end"), pl.DataFrame(drawn, ["start", "end"], orient="row")
    columns = tuple(Numeric(name, (0.0, 10.0, 20.0, 30.0), integer=True) for name in names)
    schema = replace(SCHEMA, columns=columns, rules=("start <= end",))
    made = dualquery.release(table, schema=schema, way=1, queries="all", epsilon=5.0, seed=1)
    late, both = answer_queries(made, ["start>=20", "start>=20 & end>=20"])
    assert both["answer"] == pytest.approx(late["answer"], abs=0.002)
    assert (late["source"], both["source"]) == ("released", "synthetic")
    cells = [cell["answer"] for cell in cross_table(made, *names).cells]
    assert sum(cells) == pytest.approx(1.0, abs=0.002)


def test_a_report_shows_what_the_rules_force() -> None:
    ruled = replace(SCHEMA, rules=("job!=smith", "flag"))
    made = released("independent", schema=ruled)
    assert all(each.known and np.isnan(each.half).all() for each in widths(made))  # none measured
    known = shares(made)
    labels = ruled.bit_labels().to_list()
    smith, flag = labels.index("job=smith"), labels.index("flag")
    for each in (known.share, known.low, known.high):
        assert (each[smith], each[flag]) == (0.0, 1.0)


def test_rules_about_columns_that_are_not_read_are_left_out_and_told() -> None:
    made = released("independent", columns="age,job", queries=20)
    assert made.schema.to_dict()["rules"] == [RULES[0], RULES[2]]
    assert any("rules about columns that are not released" in note for note in made.notes)


def test_a_release_says_nothing_of_broken_rows(tmp_path, capsys, caplog) -> None:
    """Rows that break rules are counted like others, and nothing says how many there are."""
    with caplog.at_level(logging.DEBUG):
        made = released("gaussian")
    assert "break" not in caplog.text
    assert "break" not in json.dumps(made.summary())
    table, schema = tmp_path / "people.csv", tmp_path / "people.json"
    people().write_csv(table)
    write_schema(RULED, schema)
    assert main(["schema", "check", str(schema), "--with", str(table)]) == DONE
    shown = capsys.readouterr()
    assert "rule 3: job=smith => age>=50" in shown.out
    assert "break" not in shown.out + shown.err + caplog.text
