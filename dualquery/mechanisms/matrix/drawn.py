"""A noisy measurement as it came out: what it tells a fit, and intervals of the answers.

Post-processing, all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import Intervals
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.matrix.measurement import Measurement
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]


class Determining(Protocol):
    """Products whose means determine the answers of all queries."""

    @property
    def products(self) -> ProductTerms:
        """Return the products."""
        ...

    def answers(self, means: Float64) -> Float64:
        """Return the answers that their means determine."""
        ...

    def deviations(self, deviations: Float64) -> Float64:
        """Return the answers' standard deviations from those of the means."""
        ...


@dataclass(frozen=True, eq=False)
class Known:
    """What noisy numbers tell of products that determine the answers.

    Parameters
    ----------
    source
        The products.
    means, deviations
        float64, shape ``(f,)``: their noisy means, and the standard deviations of the noise.
    """

    source: Determining
    means: Float64
    deviations: Float64

    @cached_property
    def unbiased(self) -> Float64:
        """The answers that the means determine."""
        return self.source.answers(self.means)

    @cached_property
    def spread(self) -> Float64:
        """Their standard deviations."""
        return self.source.deviations(self.deviations)


@dataclass(frozen=True, eq=False)
class Drawn(Known):
    """What was measured itself, and what came of it."""

    source: Measurement

    @property
    def known(self) -> Known:
        """What a fit learns from: this, or the features that it tells of."""
        cells = self.source.cells
        if cells is None:
            return self
        return Known(cells, *cells.told_by(self.means, float(self.deviations[0])))

    def intervals(self, workload: Workload) -> Intervals:
        """Return intervals of the true answers of the queries that were measured."""
        measured = self.source
        return Intervals.of_gaussian(
            self.unbiased,
            self.spread,
            0.0,
            1.0,
            measured.basis,
            measured.absent_row_answer,
            measured.guesses(workload, self.means, self.deviations),
        )

    def kept(self) -> Measurements:
        """Return what a release keeps of it."""
        return self.source.kept(self.means, self.deviations)
