"""How far the practical policy of DualQuery is from the best parameters of a grid.

The policy fixes rounds, samples and step from epsilon, delta, n, the number of queries and the
schema. Here its neighbours are tried as well. The best of the grid is found by looking at the
private error, which a release may not: it is what the policy is measured against. The mechanism
that is used if none is named stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dualquery.mechanisms.dualquery.game import DualQuery
from dualquery.requests import BudgetRequest
from experiments.comparing import means, tables
from experiments.contenders import BEST, OURS, Contender, specified
from experiments.data_sets import DATA_SETS, chosen
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import perform as release_all
from experiments.measuring import question_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, DELTA = 1.0, 0.001
ACCOUNTANT = "zcdp"
"""Plans in milliseconds, so that a grid of plans is affordable."""
QUERIES, RUNS = 100_000, 3
NAMES = ("adult", "plants", "mushroom", "groceries", "msweb")
FACTORS = (
    (1.0, 1.0), (0.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 2.0), (0.5, 0.5), (2.0, 0.5),
    (0.5, 2.0),
)  # fmt: skip
"""Rounds and samples a round of the grid, in units of the policy's; the first is the policy."""
WITHIN = 1.15
FEWEST_RUNS = 3
"""With fewer, differences of some percent are noise, and nothing is decided."""

_QUICK_QUERIES, _QUICK_EPSILON = 5_000, 0.1


def plan(choices: Choices) -> Sequence[Run]:
    """Play the policy and its neighbours on every table at hand."""
    return [
        {
            **table.parameters(choices),
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            "rounds_factor": rounds,
            "samples_factor": samples,
            "epsilons": [_QUICK_EPSILON if choices.quick else EPSILON],
            "delta": DELTA,
            "seed": seed,
        }
        for table in chosen(choices, NAMES)
        for rounds, samples in (FACTORS[:3] if choices.quick else FACTORS)
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Plan with the policy, and release with its rounds and samples times the factors.

    The policy's own run releases with the default mechanism, too.
    """
    wanted = BudgetRequest(epsilon=run["epsilons"][0], delta=run["delta"], accountant=ACCOUNTANT)
    policy = question_of(run, threads).plan(DualQuery(), wanted).parameters
    options = {
        "rounds": max(2, round(policy["rounds"] * run["rounds_factor"])),
        "samples": max(1, round(policy["samples"] * run["samples_factor"])),
    }
    contenders = {OURS: asdict(Contender("dualquery", ACCOUNTANT, options))}
    if (run["rounds_factor"], run["samples_factor"]) == FACTORS[0]:
        contenders |= specified((BEST,))
    return release_all({**run, "contenders": contenders}, threads)


summarise = means(
    "data", "contender", "rounds_factor", "samples_factor",
    of=("max_error", "mean_error", "seconds"), first=("rounds", "samples", "eta"),
)  # fmt: skip
"""Mean errors of every point of the grid, the policy first, and of the default mechanism."""


def _grid(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the lines of the grid, the policy first."""
    return lines.filter(contender=OURS)


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare the policy with the best of the grid on each table."""
    decided = table["seed"].n_unique() >= FEWEST_RUNS
    findings = []
    for name, lines in tables(_grid(summarise(table))):
        for kind in ("max_error", "mean_error"):
            ratio = float(lines[kind][0] / lines[kind].to_numpy().min())
            findings.append(
                Finding(
                    f"{name}: {kind.replace('_', ' ')} of the policy within 15% of the best of the "
                    "grid",
                    f"{ratio:.2f} times the grid's smallest",
                    ratio <= WITHIN if decided else None,
                )
            )
    return findings


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw the errors of the grid in units of the policy's."""
    from experiments.harness import style

    figure, axes = style.panels(1, 2)
    lines = summarise(table)
    looks = style.curves(lines["data"].unique(maintain_order=True))
    for panel, kind in zip(axes, ("max error", "mean error"), strict=True):
        for name, of_one in tables(lines):
            column = kind.replace(" ", "_")
            errors = _grid(of_one)[column].to_numpy()
            best = of_one.filter(contender=BEST)[column].to_numpy()
            panel.plot(
                range(len(errors) + 1), np.append(errors, best) / errors[0], **looks[name].unjoined
            )
        grid = _grid(lines).select("rounds_factor", "samples_factor").unique(maintain_order=True)
        labels = [f"{rounds:g} x {samples:g}" for rounds, samples in grid.iter_rows()] + [BEST]
        panel.set_xticks(range(len(labels)), labels, rotation=40, ha="right")
        panel.set(xlabel="rounds x samples, in units of the policy's", ylabel=f"{kind} / policy's")
        panel.axhline(1.0 / WITHIN, color="0.6", linewidth=0.8, linestyle=(0, (1, 3)))
    style.legend_below(figure, axes, 3)
    return {"policy": figure}


RECIPE = Recipe(
    name="policy",
    title="DualQuery: the practical policy against the best of a grid",
    setting=(
        "(1, 0.001)-private, 100,000 signed 3-way conjunctions, neighbours replace one row. Rounds "
        "and samples a round are the policy's times the factors below, the step spends the budget "
        "(zCDP accounting). Below the dotted line a point of the grid is more than 15% better than "
        "the policy. On the right is auto, the default. The policy's constants were chosen on the "
        "first four of these tables, msweb is one it had not seen. The quick form asks 5,000 "
        "queries about Adult at epsilon 0.1."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(Option("table", str, f"One of {', '.join(DATA_SETS)}; by default those at hand."),),
)
