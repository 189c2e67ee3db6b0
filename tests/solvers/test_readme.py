"""The README's examples run, and its back-end passes the conformance suite."""

import re
from pathlib import Path

import pytest

import solvers
from solvers import Solver
from tests.solvers import test_conformance as conformance
from tests.solvers.instances import NAMED, random_problem

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


def test_the_backend_of_the_page_conforms(milp: Solver) -> None:
    for named in NAMED:
        conformance.test_known_optimum(milp, named)
    conformance.test_exact_on_random_problems(milp, random_problem, 100, 100)
    conformance.test_contradictory_constraints_are_named(milp)
    conformance.test_limit_returns_an_incumbent(milp)
