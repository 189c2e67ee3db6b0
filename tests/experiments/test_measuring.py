"""Errors are against the exact answers, which are counted once."""

import numpy as np

from dualquery.requests import WorkloadRequest
from dualquery.rows.engines import load
from experiments.contenders import Contender
from experiments.measuring import question, release
from tests.cases import truth


def test_a_question_has_the_exact_answers() -> None:
    asked = question("biased:700,12,3", None, None, WorkloadRequest(queries=50))
    rows = load("biased:700,12,3").records.dense_rows(0, 700)
    np.testing.assert_array_equal(asked.truth, truth(asked.workload.literals, rows).mean(axis=1))
    found = release(asked, Contender("zero"), 1, epsilon=1.0, delta=0.001)
    off = np.abs(found.outcome.answers - asked.truth)
    assert found.row()["max_error"] == off.max()
    assert found.row()["mean_error"] == off.mean()


def test_plans_are_made_once_and_seeds_differ() -> None:
    asked = question("adult", "adult-paper", None, WorkloadRequest(queries=300))
    first, again, other = (
        release(asked, Contender("gaussian"), seed, epsilon=1.0, delta=0.001) for seed in (1, 1, 2)
    )
    assert first.plan is again.plan is other.plan
    assert first.errors == again.errors != other.errors
