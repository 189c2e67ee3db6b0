"""The error to expect, told before a budget is spent: predicted errors times two factors.

The factors are those of the gate's cells: ``python -m experiments.gate FOLDER`` prints them anew.
"""

from __future__ import annotations

import math

from dualquery.estimates.expected import Estimate, ExpectedError, noise_error
from dualquery.mechanisms.adaptive.planner import Stages
from dualquery.mechanisms.protocol import Task

MAX, MEAN = 2.6, 0.69
"""Max and mean error in their units (`units`), and the factor to either end of their ranges, whose
ends have the ratio 8."""

_WIDTH = math.sqrt(8.0)

_BASIS = "from the noise, and from how far columns usually are from independent"
_LOST = (
    "; WARNING: at this number of rows and epsilon noise is likely to hide most links between "
    "columns, so answers and records will show them weaker than they are, or not at all"
)


def units(planned: Stages) -> tuple[float, float]:
    """Return the units of the max and of the mean error: geometric means of predicted errors.

    That of the answers, and that of unbiased ones, which the largest error is like where noise is
    large, or that of independent columns, which the mean one is.
    """
    predicted = planned.predicted
    return (
        math.sqrt(predicted.least * predicted.unbiased),
        math.sqrt(predicted.least * predicted.columns),
    )


def expected_error(task: Task, planned: Stages) -> ExpectedError:
    """Return the error to expect of a plan."""
    if planned.fitting.components == 0:
        return noise_error("gaussian", planned.predicted.unbiased, len(task.queries), 1.0)
    most, mean = (
        Estimate(*(min(factor * unit * end, 1.0) for end in (1.0 / _WIDTH, 1.0, _WIDTH)))
        for factor, unit in zip((MAX, MEAN), units(planned), strict=True)
    )
    return ExpectedError(most, mean, _BASIS + _LOST * planned.predicted.columns_alone)
