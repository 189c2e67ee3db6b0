"""The error to expect, told before a budget is spent: predicted errors times two factors.

The factors are those of the gate's cells: ``python -m experiments.gate FOLDER`` finds them anew.
"""

from __future__ import annotations

import math

from dualquery.estimates.expected import Estimate, ExpectedError, noise_error
from dualquery.mechanisms.adaptive.planner import Stages
from dualquery.mechanisms.protocol import Task

MAX, MEAN = 2.7, 0.3
"""The max error over the geometric mean of the predicted error and that of unbiased answers, and
the mean error over the predicted one; in the middle of ranges whose ends have the ratio 8."""

_WIDTH = math.sqrt(8.0)

_BASIS = "from the noise, and from how far columns usually are from independent"
_LOST = (
    "; WARNING: at this number of rows and epsilon noise is likely to hide most links between "
    "columns, so answers and records will show them weaker than they are, or not at all"
)


def expected_error(task: Task, planned: Stages) -> ExpectedError:
    """Return the error to expect of a plan."""
    predicted = planned.predicted
    if planned.fitting.components == 0:
        return noise_error("gaussian", predicted.unbiased, len(task.queries), 1.0)
    most = _around(MAX * math.sqrt(predicted.least * predicted.unbiased))
    lost = _LOST if predicted.loses_interactions else ""
    return ExpectedError(most, _around(MEAN * predicted.least), _BASIS + lost)


def _around(error: float) -> Estimate:
    """Return an error and its range, at most 1."""
    return Estimate(*(min(error * end, 1.0) for end in (1.0 / _WIDTH, 1.0, _WIDTH)))
