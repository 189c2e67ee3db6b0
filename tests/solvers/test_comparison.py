"""Comparisons: what a run measures, and what is made of it."""

import math
import os
import shlex
import sys

import numpy as np
import pytest

from solvers import BestResponse
from solvers.comparison import Measurement, NamedProblem, compare, runs, summarise
from solvers.comparison.summary import primal_integral
from tests.solvers.instances import sampled_problem


def call(solver: str, instance: str, limit: float, **values: object) -> Measurement:
    return Measurement(instance, solver, limit, **values)  # type: ignore[arg-type]


MEASURED = [
    call("quick", "a", 1.0, status="feasible", objective=99.5, incumbent_seconds=0.01, seconds=0.1),
    call("quick", "a", 4.0, status="feasible", objective=99.5, incumbent_seconds=0.02, seconds=0.1),
    call("quick", "b", 1.0, status="feasible", objective=-10, incumbent_seconds=0.02, seconds=0.1),
    call("exact", "a", 1.0, status="fallback", objective=98.0, seconds=1.5),
    call("exact", "a", 4.0, status="optimal", objective=100.0, bound=100.0, incumbent_seconds=2.0,
         seconds=3.0),
    call("exact", "b", 4.0, status="feasible", objective=-11.0, bound=-8.0, incumbent_seconds=1.0,
         seconds=6.0),
    call("broken", "a", 4.0, status="crashed", message="its process ended with -11"),
    call("broken", "b", 4.0, status="error", message="too large"),
]  # fmt: skip


def test_summary() -> None:
    quick, exact, broken = summarise(MEASURED)
    assert (quick.solver, quick.instances, quick.solved, quick.proven) == ("quick", 2, 1, 0)
    assert (quick.within_1_percent, quick.failed) == (2, 0)
    assert quick.proof_seconds is None
    # Problem "a" was never solved and counts as the limit of 4 s.
    assert quick.incumbent_seconds == pytest.approx(math.sqrt(4.01 * 0.03) - 0.01)
    assert quick.close_seconds == pytest.approx(math.sqrt(0.02 * 0.03) - 0.01)
    assert quick.gap == pytest.approx(0.005 / 2)
    assert quick.bound_gap is None
    assert (exact.solved, exact.proven, exact.failed) == (1, 1, 0)
    assert exact.overrun_seconds == 2.0
    assert exact.proof_seconds == pytest.approx(math.sqrt(3.01 * 4.01) - 0.01)
    assert exact.gap == pytest.approx(0.1 / 2)
    assert exact.bound_gap == pytest.approx(0.2 / 2)
    assert not any(each.wrong for each in (quick, exact, broken))
    assert (broken.solved, broken.proven, broken.failed, broken.gap) == (0, 0, 2, 1.0)


def test_what_is_zero_but_for_rounding_is_zero() -> None:
    """All prove that the best is no attribute, worth 0; of a, b and c the sum is 5.6e-17."""
    weights = np.array([0.1, 0.2, -0.3, -1.0])
    zero = BestResponse(4, np.array([[0, 2], [0, 4], [0, 6], [0, 7]], np.int32), weights)
    names = ["exhaustive", "highs", "cpsat"]
    for each in summarise(compare([NamedProblem("zero", zero)], names, 1.0)):
        assert (each.solved, each.proven, each.wrong, each.gap, each.bound_gap) == (1, 1, 0, 0, 0)
    at_once = call("quick", "a", 1.0, status="optimal", objective=1.0, incumbent_seconds=0.0)
    assert summarise([at_once])[0].first_seconds == 0.0


def test_runs() -> None:
    heard: list[Measurement] = []
    problems = [NamedProblem("p", sampled_problem(10, 30, 0))]
    found = compare(
        problems, ["exhaustive", "local-search"], 1.0, shares=(0.5, 1.0), listen=heard.append
    )
    assert heard == found
    assert [each.solver for each in found] == ["exhaustive", "local-search", "local-search"]
    assert found[0].status == "optimal"
    assert found[0].objective == found[0].bound


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("number", "status"), [("SIGKILL", "crashed"), ("SIGSTOP", "killed")])
def test_a_solver_that_takes_its_process_down(tmp_path, monkeypatch, number, status) -> None:
    monkeypatch.setattr(runs, "_PATIENCE_SECONDS", 2.0)
    script = tmp_path / "solver.py"
    script.write_text(
        f"import os, signal, time\nos.kill(os.getppid(), signal.{number})\ntime.sleep(0.3)"
    )
    name = f"maxsat:{shlex.join([sys.executable, '-S', str(script)])}"
    (found,) = compare([NamedProblem("p", sampled_problem(6, 10, 0))], [name], 0.5, shares=(1.0,))
    assert found.status == status


def test_the_primal_integral_is_the_mean_gap_over_the_limit() -> None:
    calls = [
        Measurement("a", "s", 5.0, "feasible", 50.0, incumbent_seconds=2.0),
        Measurement("a", "s", 10.0, "feasible", 100.0, incumbent_seconds=6.0),
        Measurement("a", "s", 1.0, "fallback", 100.0, incumbent_seconds=0.1),
    ]
    # 2 s without a record, 4 s at half of the best known, then none; a fallback is not its own.
    assert primal_integral(calls, 100.0, 10.0) == pytest.approx((2 + 4 * 0.5) / 10)
    assert primal_integral([], 100.0, 10.0) == 1.0
    assert primal_integral(calls, 100.0, 4.0) == pytest.approx((2 + 2 * 0.5) / 4)
