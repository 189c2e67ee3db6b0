"""The README's examples run, and its back-end passes the conformance suite."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import solvers
from solvers import Solver, get_solver
from tests.solvers import test_conformance as conformance
from tests.solvers.instances import NAMED, Named, random_problem

README = Path(solvers.__file__).with_name("README.md")


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def milp() -> Solver:
    namespace: dict[str, type] = {}
    exec(examples()[1], namespace)
    return namespace["Milp"]()


def test_first_example_runs() -> None:
    exec(examples()[0], {})


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.name)
def test_known_optimum(milp: Solver, named: Named) -> None:
    conformance.test_known_optimum(milp, named)


def test_rest_of_the_suite(milp: Solver, capfd: pytest.CaptureFixture[str]) -> None:
    reference = get_solver("exhaustive")
    for seed in range(60):
        instance = random_problem(seed)
        assert conformance.agrees(milp, instance, reference.solve(instance).objective)
    conformance.test_contradictory_constraints_are_named(milp)
    conformance.test_impossible_constraint_is_named(milp)
    conformance.test_constraint_without_attributes(milp)
    conformance.test_answer_is_at_least_as_good_as_a_feasible_hint(milp)
    conformance.test_default_fills_what_no_term_mentions(milp)
    conformance.test_prints_nothing(milp, capfd)
    conformance.test_limit_returns_an_incumbent(milp)
    conformance.test_vanishing_limit_returns_a_record(milp)
    conformance.test_same_seed_same_answer(milp)
    conformance.test_two_threads_at_once(milp)
    conformance.test_bad_options(milp)
    for limit in (0.0, -1.0, np.nan):
        conformance.test_bad_time_limit(milp, limit)
