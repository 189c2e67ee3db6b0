"""Best responses: whole runs against the paper's way, quality in milliseconds, limits kept.

- Every round of one run with the paper's parameters, solved by ours and, as the paper does, by one
  call a round of a MIP solver on the aggregated program with a limit of 20 seconds. All solve the
  same problems: those of a run with the local search.
- The share of the best known value that 10 and 50 milliseconds are good for.
- What every installed back-end makes of a limit of one second on random samples at large sizes,
  without reductions, counted from the call.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from dualquery.capture import FIRST_SOLVED, captured_rounds
from dualquery.runtime.errors import BadInputError
from experiments.contenders import AS_PUBLISHED
from experiments.processes import measure
from solvers import BestResponse, Groups, SolverError, Status, available_solvers, get_solver
from solvers.formulation import Formulation

RUNS: dict[str, dict[str, Any]] = {
    "adult": {"schema": "adult-paper", "options": {"rounds": 40, "samples": 1_000, "eta": 0.8}},
    "kdd99": {"schema": "kdd99", "options": {"rounds": 170, "samples": 1_750, "eta": 1.2}},
}
"""Rounds and samples of the paper's Table 1; the problems do not depend on epsilon."""

CONTENDERS = ("auto:fast", "auto", "scip:aggregated", "highs:aggregated")
PAPER_LIMIT = 20.0
SETTLED = 5
"""Round from which the weights are far from uniform."""

LIMITS = (0.01, 0.05)
GLANCED_AT = (2, 5, 20, 80)

LARGE = ((512_000, 70_000), (17_770, 4_500))
"""Attributes and samples: the paper's largest tables, and Netflix's shape."""
OVERRUN_LIMIT = 1.0
VARIANTS = ("fast", Formulation.AGGREGATED.value)
NOT_TIMED = ("exhaustive", "maxsat")
"""Too large for the one; the other needs a command."""


def run(console: Console, quick: bool, data: str | None = None) -> dict[str, Any]:
    """Measure all three, and print tables.

    Parameters
    ----------
    console
        For the tables.
    quick
        Short runs and small samples.
    data
        ``kdd99:PATH`` adds the run on KDD99 to that on Adult.

    Raises
    ------
    BadInputError
        If the data are others, or cannot be read.
    """
    sources = ["adult"] if data is None else ["adult", data]
    found: dict[str, Any] = {"runs": {}, "milliseconds": []}
    for source in sources:
        problems = _problems(source, quick)
        name = source.partition(":")[0]
        found["runs"][name] = _whole_run(console, name, problems)
        found["milliseconds"] += _milliseconds(name, problems)
    _print_milliseconds(console, found["milliseconds"])
    found["overrun"] = _overruns(console, ((2_000, 600),) if quick else LARGE)
    return found


def _problems(source: str, quick: bool) -> dict[int, BestResponse]:
    name = source.partition(":")[0]
    if name not in RUNS:
        raise BadInputError(f"--data is {source!r}; this experiment takes kdd99:PATH")
    setting = RUNS[name]
    options = {**AS_PUBLISHED, **setting["options"]}
    if quick:
        options |= {"rounds": 6, "samples": 300}
    return captured_rounds(
        source,
        range(FIRST_SOLVED, options["rounds"] + 1),
        options=options,
        schema=setting["schema"],
        epsilon=10.0,
        delta=1e-3,
        seed=1,
    ).problems


def _whole_run(
    console: Console, data: str, problems: Mapping[int, BestResponse]
) -> dict[str, dict[str, Any]]:
    # Imports and the loading of compiled kernels are no part of a round; auto may call CP-SAT.
    for name in ("cpsat", *CONTENDERS):
        get_solver(name).solve(next(iter(problems.values())), time_limit=PAPER_LIMIT)
    lines = {contender: _solve_all(contender, problems) for contender in CONTENDERS}
    table = Table(
        Column("solver", no_wrap=True),
        "CPU s",
        "times auto",
        "times auto:fast",
        "median ms",
        "sum of values",
        "proven",
        title=f"{data}: the {len(problems)} problems of a run, at most {PAPER_LIMIT:g} s each",
    )
    for contender, line in lines.items():
        line |= {
            f"times {ours}": line["cpu_s"] / lines[ours]["cpu_s"] for ours in ("auto", "auto:fast")
        }
        table.add_row(
            contender,
            f"{line['cpu_s']:.2f}",
            f"{line['times auto']:.1f}",
            f"{line['times auto:fast']:.1f}",
            f"{1e3 * line['median_s']:.1f}",
            f"{line['objective']:,.0f}",
            f"{line['proven']} of {len(problems)}",
        )
    console.print(table)
    return lines


def _solve_all(name: str, problems: Mapping[int, BestResponse]) -> dict[str, Any]:
    solver = get_solver(name)
    began, cpu_began = time.perf_counter(), time.process_time()
    solutions = {
        number: solver.solve(problem, time_limit=PAPER_LIMIT, seed=number)
        for number, problem in problems.items()
    }
    cpu_seconds, seconds = time.process_time() - cpu_began, time.perf_counter() - began
    proven = [number for number, found in solutions.items() if found.status is Status.OPTIMAL]
    return {
        "seconds": seconds,
        "cpu_s": cpu_seconds,
        "median_s": float(np.median([found.seconds for found in solutions.values()])),
        "objective": sum(found.objective for found in solutions.values()),
        "proven": len(proven),
        f"proven from round {SETTLED} on": sum(number >= SETTLED for number in proven),
    }


def _milliseconds(name: str, problems: Mapping[int, BestResponse]) -> list[dict[str, Any]]:
    """Return the share of the best known value that short limits reach, a line a problem."""
    lines = []
    for number in GLANCED_AT:
        if number not in problems:
            continue
        for grouped in (True, False):
            problem = problems[number]
            if not grouped:
                problem = replace(problem, groups=Groups.none())
            best = get_solver("auto").solve(problem, time_limit=PAPER_LIMIT)
            line = {"data": name, "round": number, "groups": grouped, "best": best.objective}
            line["best_proven"] = best.status is Status.OPTIMAL
            for limit in LIMITS:
                for solver in ("auto:fast", "local-search"):
                    solution = get_solver(solver).solve(problem, time_limit=limit)
                    line[f"{solver} {1e3 * limit:g} ms"] = solution.objective / best.objective
            lines.append(line)
    return lines


def _print_milliseconds(console: Console, lines: list[dict[str, Any]]) -> None:
    shares = [key for key in lines[0] if key.endswith(" ms")]
    table = Table("data", "round", "groups", "best", *shares, title="share of the best known value")
    for line in lines:
        table.add_row(
            line["data"],
            str(line["round"]),
            "yes" if line["groups"] else "no",
            f"{line['best']:g}{'' if line['best_proven'] else ' (open)'}",
            *(f"{line[key]:.4f}" for key in shares),
        )
    console.print(table)


def _overruns(console: Console, sizes: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    table = Table(
        Column("solver", no_wrap=True),
        "attributes",
        "samples",
        "seconds over",
        "CPU s",
        "status",
        "share of best",
        "peak MiB",
        title=f"a limit of {OVERRUN_LIMIT:g} s, no reductions",
    )
    lines: list[dict[str, Any]] = []
    for attributes, samples in sizes:
        size = {"attributes": attributes, "samples": samples}
        of_size = [
            {"solver": name, **size, **_limited(name, attributes, samples)} for name in _back_ends()
        ]
        best = max(line.get("objective", 0.0) for line in of_size)
        for line in of_size:
            if "objective" in line:
                line["share_of_best"] = line["objective"] / best
            table.add_row(line["solver"], f"{attributes:,}", f"{samples:,}", *_cells(line))
        lines += of_size
    console.print(table)
    return lines


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    if "refusal" in line:
        return "-", "-", "refused", "-", "-"
    return (
        f"{line['over_s']:+.2f}",
        f"{line['cpu_s']:.2f}",
        line["status"],
        f"{line['share_of_best']:.4f}",
        "unknown" if line["peak_mib"] is None else f"{line['peak_mib']:,.0f}",
    )


def _back_ends() -> list[str]:
    """Return what is installed, each in both formulations where it has two."""
    names = [info.name for info in available_solvers() if info.installed]
    names = [name for name in names if name not in NOT_TIMED]
    variants = [f"{name}:{form}" for name in names for form in VARIANTS]
    return sorted([*names, *(name for name in variants if _is_known(name))])


def _is_known(name: str) -> bool:
    try:
        get_solver(name)
    except SolverError:
        return False
    return True


def _limited(name: str, attributes: int, samples: int) -> dict[str, Any]:
    """Solve in a process of its own; return what came of it, or why the solver refused."""
    measured = measure(solve_limited, name, attributes, samples)
    return {"peak_mib": measured.peak_mib, **measured.value}


def solve_limited(name: str, attributes: int, samples: int) -> dict[str, Any]:
    """Solve a random sample within :data:`OVERRUN_LIMIT`; return what came of it."""
    problem = random_sample(attributes, samples)
    solver = get_solver(name)
    try:
        # Imports and the loading of compiled kernels are no part of a call.
        solver.solve(random_sample(60, 100), time_limit=OVERRUN_LIMIT)
        began, cpu_began = time.perf_counter(), time.process_time()
        solution = solver.solve(problem, time_limit=OVERRUN_LIMIT)
        over = time.perf_counter() - began - OVERRUN_LIMIT
    except SolverError as error:
        return {"refusal": str(error)}
    return {
        "over_s": over,
        "cpu_s": time.process_time() - cpu_began,
        "status": solution.status.value,
        "objective": solution.objective,
        "bound": solution.bound if np.isfinite(solution.bound) else None,
    }


def random_sample(attributes: int, samples: int) -> BestResponse:
    """Return signed 3-literal conjunctions over distinct random attributes, half complemented."""
    generator = np.random.default_rng(attributes + samples)
    picked = generator.integers(0, attributes, (samples, 3))
    while True:
        ranked = np.sort(picked, axis=1)
        again = (ranked[:, 1:] == ranked[:, :-1]).any(axis=1)
        if not again.any():
            break
        picked[again] = generator.integers(0, attributes, (np.count_nonzero(again), 3))
    terms = (2 * picked + generator.integers(0, 2, picked.shape)).astype(np.int32)
    return BestResponse.from_sample(attributes, terms, generator.choice([-1, 1], samples))
