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
    """

    lemma: str
    statistic: str
    sensitivity: float
    scale: float | None = None
    proof: str = ""
