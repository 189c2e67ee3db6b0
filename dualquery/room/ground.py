"""Why a charge covers what is drawn: what a release's proof record says of every event."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Ground:
    """Why an event covers what is drawn. Public: it goes into the release's proof record."""

    lemma: str  # module of the room whose docstring proves the charge
    statistic: str  # what is measured, or what a draw is made from
    sensitivity: float  # how far that moves between neighbours, in the lemma's norm and unit
    scale: float | None = None  # of the noise, in the same unit; None without noise on numbers
    proof: str = ""  # the argument that proves the sensitivity
    numbers: int = 0  # how many noisy numbers the draw gives; 0 if none, or if it was lost
    # Sums of the variances of their noise and of 1 / variance, in the unit of an answer times the
    # public number of rows: so ``measurements.parquet`` can be compared.
    variances: float = 0.0
    precisions: float = 0.0


def laplace_deviation(scale: float) -> float:
    """Return the standard deviation of discrete Laplace noise of a scale > 0, in steps.

    At least 1e-4: noise that is all but certainly 0 can still be squared, and divided by.
    """
    exact = -math.sqrt(2.0) * math.exp(-0.5 / scale) / math.expm1(-1.0 / scale)
    return max(exact, 1e-4)
