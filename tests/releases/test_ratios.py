"""Intervals of ratios that lie in a range, where noise brings their estimates beyond it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualquery.releases.answer.knowledge import Knowledge

CRITICAL = 1.959964
DEVIATION = 0.01


def interval(numerator: float, denominator: float) -> tuple[float, float]:
    """Return the interval of a share of given rows, both sums with noise of their own."""
    knows: Any = SimpleNamespace(base=SimpleNamespace(known="exact"), basis="noise")
    found: Any = SimpleNamespace(
        # The least and largest numerator are one number, and so are the denominators.
        values=np.array([numerator, numerator, denominator, denominator]),
        covariance=DEVIATION**2 * np.kron(np.eye(2), np.ones((2, 2))),
        critical=lambda level, combination: CRITICAL,
        absent=np.zeros(4),
    )
    limits = Knowledge._ratio(knows, found, (0.0, 1.0), 0.95)
    assert limits.low is not None
    assert limits.high is not None
    return limits.low, limits.high


def test_an_estimate_beyond_the_range_leaves_an_interval_of_some_width() -> None:
    """Three deviations below 0, or above all given rows: the truth need not be the end itself."""
    low, high = interval(-3.0 * DEVIATION, 0.2)
    assert low == 0.0
    # The ratios up to which noise is hardly further off than from 0.
    assert high == pytest.approx((CRITICAL**2 + 9.0) ** 0.5 * 0.05 - 0.15, rel=0.05)
    low, high = interval(0.2 + 3.0 * 2**0.5 * DEVIATION, 0.2)
    assert high == 1.0
    assert 0.8 < low < 0.99


def test_intervals_of_ratios_near_an_end_hold_as_often_as_they_say() -> None:
    """Of 4,000 draws each, at 95%: five standard errors are 1.7%."""
    generator = np.random.default_rng(1)
    for truth in (0.0, 0.02, 0.98, 1.0):
        noise = DEVIATION * generator.standard_normal((4_000, 2))
        ends = [interval(truth * 0.2 + above, 0.2 + below) for above, below in noise.tolist()]
        lows, highs = np.array(ends).T
        assert ((lows <= truth) & (truth <= highs)).mean() > 0.95 - 0.017
        assert (highs - lows).min() > 0.01
