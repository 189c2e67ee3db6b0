"""The error to expect of `staged`, told before it runs, from public facts."""

from __future__ import annotations

import math

import numpy as np

from dualquery.estimates.expected import Estimate, ExpectedError
from dualquery.mechanisms.matrix.fitting import MAX_ERROR, MEAN_ERROR
from dualquery.mechanisms.protocol import Task
from dualquery.queries.conjunctions import Workload

_WIDE_MAX = (0.3, 3.0, 12.0)
_POSITIVE_MEAN, _WIDE_MEAN = (0.0001, 0.002, 0.3), (0.03, 0.3, 1.2)
"""Errors in standard deviations of a column's share after the first stage: least, middle and
largest of runs on npm-deps, kosarak, BMS-WebView-2, facebook-pages, msweb, groceries and
netflix-like, widened a little. The mean error is the sum of one of positive queries, and of one in
units of `_of_empty_columns`. Other tables and queries may lie outside."""


def error_of_wide(task: Task, deviation: float) -> ExpectedError:
    """Return it for thousands of columns, or frequent ones of them.

    Parameters
    ----------
    task
        The queries.
    deviation
        Standard deviation of a column's share after the first stage.
    """
    unit = 0.0 if task.frequent is not None else _of_empty_columns(task.workload)
    mean = (
        positive + unit * factor
        for positive, factor in zip(_POSITIVE_MEAN, _WIDE_MEAN, strict=True)
    )
    return ExpectedError(
        Estimate(*(min(factor * deviation, 1.0) for factor in _WIDE_MAX)),
        Estimate(*(min(factor * deviation, 1.0) for factor in mean)),
        "the deviation of the columns' shares, times what was left of it on seven tables",
    )


def error_of_all(deviation: float) -> ExpectedError:
    """Return what is left of the noise of everything, or less: the other way must promise less.

    ``deviation`` is the mean standard deviation of the answers, were all of it measured.
    """
    most, mean = (
        Estimate(*(min(factor * deviation, 1.0) for factor in (0.0, *left[1:])))
        for left in (MAX_ERROR, MEAN_ERROR)
    )
    return ExpectedError(
        most,
        mean,
        "from the noise of all that is asked and the share of it that fits leave; the range is "
        "that of runs on public and generated tables, or less where columns are nearly empty",
    )


def _of_empty_columns(workload: Workload) -> float:
    """Return the answers' mean error if columns are nearly empty and their shares off by 1 each.

    (As standard deviations.) A query with one positive literal is off by that column's error, one
    with none by those of all its columns, one with more by nothing.
    """
    present = workload.literals >= 0
    positive = (present & (workload.literals & 1 == 0)).sum(axis=1)
    off = np.where(positive == 0, np.sqrt(present.sum(axis=1)), positive == 1)
    return float(math.sqrt(2.0 / math.pi) * off.mean())
