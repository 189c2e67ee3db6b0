"""A comparison's pictures; they need Matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from solvers.comparison.runs import Measurement
from solvers.comparison.summary import (
    CLOSE,
    OWN,
    best_known,
    by_instance,
    distance,
    proof_time,
    time_to,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_GAP = 1e-5
"""Shown for a gap of 0, which a logarithmic axis cannot."""


def write_plots(folder: Path, measurements: Sequence[Measurement]) -> None:
    """Write ``profile.png`` and ``gap.png`` into a folder.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    profile = Figure(figsize=(10, 4), layout="constrained")
    performance_profiles(profile.subplots(1, 2), measurements, best_known(measurements))
    profile.savefig(folder / "profile.png", dpi=150)

    gap = Figure(figsize=(6, 4), layout="constrained")
    _gaps(gap.subplots(), _runs(measurements), best_known(measurements))
    gap.savefig(folder / "gap.png", dpi=150)


def _runs(measurements: Sequence[Measurement]) -> dict[str, dict[str, list[Measurement]]]:
    names = dict.fromkeys(each.solver for each in measurements)
    return {
        name: by_instance(each for each in measurements if each.solver == name) for name in names
    }


def performance_profiles(
    axes: Sequence[Axes], measurements: Sequence[Measurement], best: Mapping[str, float]
) -> None:
    """Draw, in two panels, the times to within 1% of the best known objective and to proofs."""
    runs = _runs(measurements)
    close = {
        name: {key: time_to(run, best[key], CLOSE) for key, run in of_one.items() if key in best}
        for name, of_one in runs.items()
    }
    proof = {name: {k: proof_time(r) for k, r in of_one.items()} for name, of_one in runs.items()}
    performance_profile(axes[0], close, "within 1% of the best known")
    performance_profile(axes[1], proof, "proven optimal")


def performance_profile(axes: Axes, times: dict[str, dict[str, float | None]], title: str) -> None:
    """Draw a performance profile (Dolan and More, "Benchmarking optimization software", 2002)."""
    instances = list(dict.fromkeys(key for of_one in times.values() for key in of_one))
    fastest = {
        key: min(
            (t for of_one in times.values() if (t := of_one.get(key)) is not None), default=None
        )
        for key in instances
    }
    ratios = {
        name: sorted(
            max(time, 1e-4) / max(least, 1e-4)  # below, clocks and not solvers are compared
            for key in instances
            if (time := of_one.get(key)) is not None and (least := fastest[key]) is not None
        )
        for name, of_one in times.items()
    }
    # Every line goes to the right edge: one that ended early would look like a solver left out.
    edge = 1.1 * max([10.0, *(ratio for of_one in ratios.values() for ratio in of_one)])
    for name, of_solver in ratios.items():
        shares = [n / max(len(instances), 1) for n in range(len(of_solver) + 1)]
        axes.step([1.0, *of_solver, edge], [*shares, shares[-1]], where="post", label=name)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.05)
    axes.set_title(title)
    axes.set_xlabel("time, in units of the fastest solver's")
    axes.set_ylabel("share of problems")
    _name_lines(axes)


def _gaps(
    axes: Axes, runs: dict[str, dict[str, list[Measurement]]], best: dict[str, float]
) -> None:
    """Draw the mean gap at each limit; after a proof it stays what it was."""
    limits = sorted({each.limit for of_one in runs.values() for run in of_one.values()
                     for each in run})  # fmt: skip
    for name, of_one in runs.items():
        means = []
        for limit in limits:
            gaps = []
            for key, run in of_one.items():
                until = [each for each in run if each.limit <= limit]
                if key in best:
                    own = until and until[-1].status in OWN
                    gaps.append(distance(until[-1].objective, best[key]) if own else 1.0)
            means.append(max(sum(gaps) / len(gaps), _LEAST_GAP) if gaps else math.nan)
        axes.plot(limits, means, marker="o", label=name)
    if best:  # a scale of logarithms needs a number
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel("time limit, seconds")
    axes.set_ylabel(f"mean gap to the best known (0 drawn at {_LEAST_GAP:g})")
    _name_lines(axes)


def _name_lines(axes: Axes) -> None:
    """Draw the legend; a solver's command may hold a dollar, which is no formula."""
    if not axes.lines:
        return
    for name in axes.legend().get_texts():
        name.set_parse_math(False)
