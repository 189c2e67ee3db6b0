"""Summaries of tables, and what findings say of curves: both by means over runs."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from experiments.contenders import BEST, OURS, PAPERS, RECOUNTED
from experiments.harness.recipe import Finding

Means = Mapping[str, Mapping[float, float]]
"""Mean of a column by curve and by place on the x axis, ascending."""


def means(
    *by: str, of: Sequence[str], first: Sequence[str] = ()
) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return a summary: means over runs of the columns ``of``, and the number of runs.

    The columns ``by`` tell its lines apart; of the columns ``first``, the same or nearly so in all
    runs, it shows the first value.
    """

    def summarise(table: pl.DataFrame) -> pl.DataFrame:
        return table.group_by(by, maintain_order=True).agg(
            pl.col(first).first(), pl.col(of).mean(), runs=pl.len()
        )

    return summarise


def tables(table: pl.DataFrame, column: str = "data") -> list[tuple[str, pl.DataFrame]]:
    """Return the values of a column in their order, each with its lines."""
    return [(str(key[0]), part) for key, part in table.group_by(column, maintain_order=True)]


def curve_means(table: pl.DataFrame, curve: str, x: str, y: str) -> Means:
    """Return the mean of column ``y`` over runs, by the columns ``curve`` and ``x``."""
    averages = table.group_by(curve, x, maintain_order=True).agg(pl.col(y).mean())
    found: dict[str, dict[float, float]] = {}
    for label, place, mean in averages.sort(x, maintain_order=True).iter_rows():
        found.setdefault(label, {})[place] = mean
    return found


def ratios(above: Mapping[float, float], below: Mapping[float, float]) -> dict[float, float]:
    """Return one curve over another, at the places that both have."""
    return {place: above[place] / mean for place, mean in below.items() if place in above}


def listed(values: Mapping[float, float], form: str = ".2g") -> str:
    """Return the values of a curve as text, each with its place."""
    return ", ".join(f"{value:{form}} at {place:g}" for place, value in values.items())


def listed_ratios(above: Mapping[float, float], below: Mapping[float, float]) -> str:
    """Return one curve over another as text."""
    return listed(ratios(above, below))


def best_below_all(
    where: str, lines: pl.DataFrame, kinds: Sequence[str] = ("max_error",)
) -> list[Finding]:
    """State whether the best mechanism has a smaller error than every other at every epsilon.

    ``where`` begins the sentence; the lines have ``contender``, ``epsilon`` and the ``kinds`` of
    error that are compared as columns.
    """
    losses = []
    for kind in kinds:
        curves = dict(curve_means(lines, "contender", "epsilon", kind))
        best = curves.pop(BEST, None)
        if best is None or not curves:
            return []
        losses += [
            f"{label} at {epsilon:g} ({kind.replace('_', ' ')})"
            for label, errors in curves.items()
            for epsilon, error in best.items()
            if errors[epsilon] <= error
        ]
    compared = " and ".join(kind.replace("_", " ") for kind in kinds)
    expected = f"{where}: {BEST} below every other mechanism at every epsilon in {compared}"
    found = f"not below {', '.join(losses)}" if losses else "it is"
    return [Finding(expected, found, not losses)]


def gains_over_the_paper(where: str, lines: pl.DataFrame) -> list[Finding]:
    """State by what factor accounting, and then the rest, make the max error smaller."""
    curves = curve_means(lines, "contender", "epsilon", "max_error")
    findings = []
    for low, high, gain in (
        (RECOUNTED, PAPERS, "accounting alone"),
        (OURS, RECOUNTED, "remembered draws and fitted shares"),
        (OURS, PAPERS, "all of it together"),
    ):
        if factors := ratios(curves.get(high, {}), curves.get(low, {})):
            expected = f"{where}: {low} below {high} at every epsilon"
            found = f"{gain} divides the error by {listed(factors, '.1f')}"
            findings.append(Finding(expected, found, min(factors.values()) > 1))
    return findings
