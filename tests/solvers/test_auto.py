"""The portfolio: what it does when, and that it uses its time."""

from dataclasses import replace

import numpy as np
import pytest

from solvers import BestResponse, Ending, SearchResult, Status, UnknownSolverError, get_solver
from solvers.backends.cpsat import CpSat
from tests.solvers.instances import from_sample, sampled_problem, weighted_maxsat


def ungrouped(seed: int) -> BestResponse:
    """Return an instance whose relaxation is far from its optimum."""
    return sampled_problem(100, 420, seed)


def grouped(seed: int) -> BestResponse:
    """Return an instance that the reductions leave open and the relaxation almost decides."""
    return sampled_problem(120, 320, seed, column=8)


def test_reductions_suffice_for_sparse_samples() -> None:
    rng = np.random.default_rng(0)
    terms = rng.integers(0, 2 * 5000, (1200, 3)).astype(np.int32)
    instance = from_sample(5000, terms, rng.choice([-1, 1], 1200))
    for name in ("auto", "auto:brief", "auto:fast", "auto:prove"):
        solution = get_solver(name).solve(instance)
        assert solution.status is Status.OPTIMAL
        assert solution.steps == ("solved by reductions",)


def test_fast_proves_only_what_takes_milliseconds() -> None:
    certified = get_solver("auto:fast").solve(sampled_problem(120, 200, 1, column=8))
    assert certified.status is Status.OPTIMAL
    assert certified.steps[-1].startswith("dual of")
    open_round = get_solver("auto:fast").solve(ungrouped(0))
    assert open_round.status is Status.FEASIBLE
    assert np.isfinite(open_round.bound)
    assert not any("exact" in step for step in open_round.steps)


def test_brief_takes_no_bound_but_the_reductions() -> None:
    instance = grouped(0)
    brief = get_solver("auto:brief").solve(instance)
    assert brief.status is Status.FEASIBLE
    assert not any(step.startswith("dual of") for step in brief.steps)
    best = get_solver("auto:prove").solve(instance).objective
    assert 0.97 * best <= brief.objective <= best


def test_default_proves_rounds() -> None:
    solver, exact = get_solver("auto"), get_solver("cpsat")
    for seed in range(4):
        instance = grouped(seed)
        solution = solver.solve(instance)
        assert solution.status is Status.OPTIMAL
        assert solution.objective == exact.solve(instance).objective
        assert any(step.startswith("dual of") for step in solution.steps)


def test_goes_on_until_the_limit_or_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gave up at gaps above 3% and more than 300 terms, whatever the limit."""
    solution = get_solver("auto").solve(ungrouped(0), time_limit=1.0)
    assert solution.status is Status.FEASIBLE
    assert solution.seconds >= 0.9
    asked: list[float] = []

    def search(self, kernel, limits, start):
        asked.append(limits.work)
        return SearchResult(Ending.STOPPED if len(asked) < 16 else Ending.INFEASIBLE)

    with monkeypatch.context() as patched:
        patched.setattr(CpSat, "search", search)
        solution = get_solver("auto").solve(ungrouped(0), time_limit=600.0)
    assert solution.status is Status.OPTIMAL
    proofs = [work for work in asked if work > min(asked)]  # the others look near a record only
    assert proofs == sorted(proofs)
    assert proofs[-1] >= 2 * proofs[0]
    instance = weighted_maxsat(1)
    assert len(instance.terms) > 300
    solution = get_solver("auto").solve(instance, time_limit=60.0)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == get_solver("cpsat").solve(instance, time_limit=60.0).objective


def test_within_a_gap_nothing_is_called_proven() -> None:
    """CP-SAT calls OPTIMAL what is within the gap: 2 of 20 calls handed that on."""
    for seed in range(8):
        instance = weighted_maxsat(100 + seed, attributes=30)
        optimum = get_solver("cpsat").solve(instance).objective
        within = get_solver("auto:0.3").solve(instance)
        assert within.objective <= optimum + 1e-9
        assert within.bound >= optimum - 1e-9
        if within.status is Status.OPTIMAL:
            assert within.objective == pytest.approx(optimum)


def test_whole_weights_are_proven_however_large_their_sum() -> None:
    """A gap of a unit was none beside a sum of 1e12: these ended within 10 ms, unproven."""
    for seed in range(20):
        instance = weighted_maxsat(seed, attributes=30)
        layered = instance.weights * np.where(np.arange(len(instance.weights)) % 10, 1.0, 1e10)
        solution = get_solver("auto").solve(replace(instance, weights=layered), time_limit=60.0)
        assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("argument", ["slow", "1.5", "-0.1", "nan"])
def test_unknown_argument(argument: str) -> None:
    with pytest.raises(UnknownSolverError, match="known: auto, auto:brief, auto:fast, auto:prove"):
        get_solver(f"auto:{argument}")
