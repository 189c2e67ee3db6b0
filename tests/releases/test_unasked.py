"""Columns that no query asks about are named wherever records are: their values are made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dualquery
from dualquery.releases.answer.sampling import unasked
from dualquery.releases.compare.evaluation import evaluate
from tests.tables import SCHEMA, people

NOTE = "No query asks about 'job', 'flag', 'constant': what the records have there is made up."


@pytest.mark.parametrize("mechanism", ["matrix", "dualquery", "uniform"])
def test_columns_that_no_query_asks_about_are_named(tmp_path, mechanism) -> None:
    made = dualquery.release(
        people(), schema=SCHEMA, queries=["age>=50 & sex=Male"], mechanism=mechanism
    )
    assert made.notes[-1] == NOTE
    made.save(tmp_path / "r")
    again = dualquery.load_release(tmp_path / "r")
    assert again.notes == made.notes
    assert unasked(again.schema, again.workload, again) == ["job", "flag", "constant"]
    assert evaluate(again, people())["unasked"] == ["job", "flag", "constant"]


def test_a_mean_that_was_bought_and_what_was_measured_are_known() -> None:
    made = dualquery.release(
        people(), schema=SCHEMA, queries=["flag", "sex=Male"], mechanism="matrix", means="age"
    )
    assert unasked(made.schema, made.workload, made) == ["job", "constant"]
    every = dualquery.release(people(), schema=SCHEMA, queries=20, way=1, mechanism="matrix")
    also = replace(made, measurements=every.measurements)
    assert unasked(also.schema, also.workload, also) == []
