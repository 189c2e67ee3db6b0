"""A comparison's picture; it needs Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from solvers.comparison.runs import Measurement
from solvers.comparison.summary import CLOSE, best_known, by_instance, proof_time, time_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_plots(folder: Path, measurements: Sequence[Measurement]) -> None:
    """Write ``profile.png`` into a folder."""
    from matplotlib.figure import Figure

    profile = Figure(figsize=(10, 4), layout="constrained")
    performance_profiles(profile.subplots(1, 2), measurements, best_known(measurements))
    profile.savefig(folder / "profile.png", dpi=150)


def performance_profiles(
    axes: Sequence[Axes], measurements: Sequence[Measurement], best: Mapping[str, float]
) -> None:
    """Draw, in two panels, the times to within 1% of the best known objective and to proofs."""
    names = dict.fromkeys(each.solver for each in measurements)
    runs = {
        name: by_instance(each for each in measurements if each.solver == name) for name in names
    }
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
    if axes.lines:
        for label in axes.legend().get_texts():
            label.set_parse_math(False)  # a solver's command may hold a dollar, which is no formula
