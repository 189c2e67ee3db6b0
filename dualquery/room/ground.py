"""Why a charge covers what is drawn: what a release's proof record says of every event."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ground:
    """Why an event covers what is drawn. Public: it goes into the release's proof record.

    Parameters
    ----------
    lemma
        Module of the room whose docstring proves the charge.
    statistic
        What is measured, or what a draw is made from.
    sensitivity
        How far that moves between neighbours, in the norm and the unit of the lemma.
    scale
        Of the noise, in the same unit; None for a draw without noise on numbers.
    proof
        The argument that proves the sensitivity.
    numbers
        How many noisy numbers the draw gives; 0 if it gives none, or was lost.
    variances, precisions
        Sums of the variances of their noise and of 1 / variance, in the unit of an answer times
        the public number of rows: so ``measurements.parquet`` can be compared.
    """

    lemma: str
    statistic: str
    sensitivity: float
    scale: float | None = None
    proof: str = ""
    numbers: int = 0
    variances: float = 0.0
    precisions: float = 0.0
