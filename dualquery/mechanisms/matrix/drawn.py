"""A noisy measurement as it came out: unbiased answers, their spread and intervals.

Post-processing, all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import Intervals
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.matrix.measurement import Measurement
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A measurement and what came of it.

    Parameters
    ----------
    measurement
        What was measured.
    means, deviations
        float64, shape ``(f,)``: its noisy means, and the standard deviations of their noise.
    """

    measurement: Measurement
    means: Float64
    deviations: Float64

    @cached_property
    def unbiased(self) -> Float64:
        """The answers that the means determine."""
        return self.measurement.answers(self.means)

    @cached_property
    def spread(self) -> Float64:
        """Their standard deviations."""
        return self.measurement.deviations(self.deviations)

    def intervals(self, workload: Workload) -> Intervals:
        """Return intervals of the true answers of the queries that were measured."""
        measured = self.measurement
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
        return self.measurement.kept(self.means, self.deviations)
