"""The error to expect, told before a budget is spent: predicted errors times factors of runs.

The factors are those of the gate's cells (``python -m experiments gate`` compares them with every
run), and of public tables. After a first look at columns the error depends on how full these are,
which no public fact says: then the range is wide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dualquery.estimates.expected import Estimate, ExpectedError, noise_error
from dualquery.mechanisms.adaptive.planner import FirstStage, Stages, is_wide
from dualquery.mechanisms.protocol import Task
from dualquery.queries.conjunctions import Workload

Range = tuple[float, float, float]

FACTORS: Mapping[str, tuple[Range, Range]] = {
    "everything": ((1.0, 2.8, 6.0), (0.12, 0.5, 0.96)),
    "pairs": ((0.45, 1.2, 3.6), (0.4, 1.3, 3.6)),
    "columns": ((0.0, 2.8, 6.0), (0.0, 0.5, 0.96)),
    "positive": ((0.3, 3.0, 12.0), (0.0001, 0.002, 0.3)),
    "wide": ((0.3, 3.0, 12.0), (0.03, 0.3, 1.2)),
}
"""Max and mean error over their units: low, about and high. Units are mean standard deviations of
unbiased answers; after a look at pairs the smaller of multiples of the predicted error and of that;
of wide tables the standard deviation of a column's share after the first stage."""

_OF_PREDICTED, _OF_UNBIASED = (6.0, 0.6), (2.0, 0.2)
"""These multiples, of the max and of the mean error."""


def expected_error(task: Task, planned: Stages) -> ExpectedError | None:
    """Return the error to expect of a plan; None where no model of it is known."""
    fitting, kind = planned.fitting, planned.first.value
    if fitting is not None and fitting.components == 0:
        return noise_error("gaussian", planned.deviation, len(task.queries), 1.0)
    units = (planned.unbiased, planned.unbiased)
    basis = "from the noise of the answers and the share of it that fits have left"
    if planned.first is FirstStage.PAIRS:
        most, mean = (
            min(of_predicted * planned.deviation, of_unbiased * planned.unbiased)
            for of_predicted, of_unbiased in zip(_OF_PREDICTED, _OF_UNBIASED, strict=True)
        )
        units = most, mean
        basis = (
            "from the noise of the columns' shares, how far columns usually are from independent, "
            "and what fits leave"
        )
    elif planned.first is FirstStage.COLUMNS:
        if task.frequent is not None or is_wide(task.workload):
            return _of_wide(task, planned.deviation)
        if not planned.unbiased:
            return None
        basis += ", or less where columns are nearly empty"
    of_most, of_mean = FACTORS[kind]
    return ExpectedError(_times(of_most, units[0]), _times(of_mean, units[1]), basis)


def _times(factors: Range, unit: float) -> Estimate:
    """Return low, about and high in some unit, at most 1."""
    return Estimate(*(min(factor * unit, 1.0) for factor in factors))


def _of_wide(task: Task, deviation: float) -> ExpectedError:
    """Return it for thousands of columns, or frequent ones of them.

    The mean error is one of positive queries, and one in units of `_of_empty_columns`.
    """
    (most, positive), (_, wide) = FACTORS["positive"], FACTORS["wide"]
    unit = 0.0 if task.frequent is not None else _of_empty_columns(task.workload)
    low, about, high = (one + unit * other for one, other in zip(positive, wide, strict=True))
    return ExpectedError(
        _times(most, deviation),
        _times((low, about, high), deviation),
        "the deviation of the columns' shares, times what was left of it on seven tables",
    )


def _of_empty_columns(workload: Workload) -> float:
    """Return the answers' mean error if columns are nearly empty and their shares off by 1 each.

    A query with one positive literal is off by that column's error, one with none by those of all
    its columns, one with more by nothing.
    """
    present = workload.literals >= 0
    positive = (present & (workload.literals & 1 == 0)).sum(axis=1)
    off = np.where(positive == 0, np.sqrt(present.sum(axis=1)), positive == 1)
    return float(math.sqrt(2.0 / math.pi) * off.mean())
