"""Forty questions of every form about Adult, against their truth."""

from __future__ import annotations

import polars as pl
import pytest

import dualquery
from dualquery.data.builtin import dataset_path
from dualquery.releases.answering import answer_queries


def share(e):
    return lambda d: float(d.select(e.cast(pl.Float64).mean()).item())


def given(e, g):
    return lambda d: float(d.filter(g).select(e.cast(pl.Float64).mean()).item())


rich = pl.col("income") == ">50K"
fem = pl.col("sex") == "Female"
age = pl.col("age")
h = pl.col("hours-per-week")
edu = pl.col("education")
QUESTIONS = [
    ("sex=Female", share(fem)),
    ("sex!=Female & income=>50K", share(~fem & rich)),
    ("education=Bachelors & sex=Female & income=>50K", share((edu == "Bachelors") & fem & rich)),
    ("age=18-64", share(age.is_between(18, 64))),
    ("age>=25", share(age >= 25)),
    ("age<40 & sex=Male", share((age < 40) & ~fem)),
    ("age between 30 and 44", share(age.is_between(30, 44))),
    ("age>=65 & income=>50K", share((age >= 65) & rich)),
    ("hours-per-week>40", share(h > 40)),
    ("hours-per-week>=45 & income=>50K", share((h >= 45) & rich)),
    (
        "education in (Bachelors, Masters, Doctorate)",
        share(edu.is_in(["Bachelors", "Masters", "Doctorate"])),
    ),
    (
        "education in (Masters, Doctorate) & sex=Female",
        share(edu.is_in(["Masters", "Doctorate"]) & fem),
    ),
    ("race not in (White, Black)", share(~pl.col("race").is_in(["White", "Black"]))),
    ("sex=Female or income=>50K", share(fem | rich)),
    ("not (sex=Female or income=>50K)", share(~(fem | rich))),
    (
        "marital-status=Divorced or marital-status=Separated",
        share(pl.col("marital-status").is_in(["Divorced", "Separated"])),
    ),
    ("not native-country=United-States", share(pl.col("native-country") != "United-States")),
    ("(age<25 or age>=65) & sex=Female", share(((age < 25) | (age >= 65)) & fem)),
    ("count(sex=Male)", lambda d: d.filter(~fem).height),
    ("count(age>=60 or income=>50K)", lambda d: d.filter((age >= 60) | rich).height),
    ("capital-gain>=5000", share(pl.col("capital-gain") >= 5000)),
    (
        "capital-loss=0 & capital-gain=0",
        share((pl.col("capital-loss") == 0) & (pl.col("capital-gain") == 0)),
    ),
    ("mean(age)", lambda d: d["age"].mean()),
    ("mean(hours-per-week)", lambda d: d["hours-per-week"].mean()),
    ("mean(capital-gain)", lambda d: d["capital-gain"].mean()),
    ("mean(age) given income=>50K", lambda d: d.filter(rich)["age"].mean()),
    ("mean(hours-per-week) given sex=Female", lambda d: d.filter(fem)["hours-per-week"].mean()),
    ("sum(hours-per-week)", lambda d: d["hours-per-week"].sum()),
    (
        "mean(education-num) given race=Black",
        lambda d: d.filter(pl.col("race") == "Black")["education-num"].mean(),
    ),
    ("median(age)", lambda d: d["age"].median()),
    ("median(hours-per-week)", lambda d: d["hours-per-week"].median()),
    ("quantile(age, 0.25)", lambda d: d["age"].quantile(0.25, "lower")),
    ("quantile(capital-gain, 0.75)", lambda d: d["capital-gain"].quantile(0.75, "lower")),
    ("median(age) given income=>50K", lambda d: d.filter(rich)["age"].median()),
    ("income=>50K given sex=Female", given(rich, fem)),
    ("income=>50K given education=Masters", given(rich, edu == "Masters")),
    ("income=>50K given sex=Female & education=Bachelors", given(rich, fem & (edu == "Bachelors"))),
    ("sex=Female given age>=30 & age<40", given(fem, age.is_between(30, 39))),
    ("age>=40 given native-country=Mexico", given(age >= 40, pl.col("native-country") == "Mexico")),
    (
        "income=>50K given marital-status=Married-civ-spouse & hours-per-week>=50",
        given(rich, (pl.col("marital-status") == "Married-civ-spouse") & (h >= 50)),
    ),
]


@pytest.mark.slow
def test_forty_questions_about_adult() -> None:
    """One seeded release at epsilon 1: all answered, and 34 intervals or more hold."""
    made = dualquery.release("adult", epsilon=1.0, seed=1)
    table = pl.read_parquet(dataset_path("adult").read_bytes())
    table = table.select(made.schema.column_names)
    assert (len(table), len(QUESTIONS)) == (made.n, 40)
    found = answer_queries(made, [text for text, _ in QUESTIONS])
    assert all(line["answer"] is not None for line in found)
    held = [
        line["low"] is not None and line["low"] - 1e-9 <= truth(table) <= line["high"] + 1e-9
        for line, (_, truth) in zip(found, QUESTIONS, strict=True)
    ]
    assert sum(held) >= 34
