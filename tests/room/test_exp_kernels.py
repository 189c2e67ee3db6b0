"""The exponential of the private draws against 40 decimal digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dualquery.room.draws.exp_kernels import exponential

BOUND = Decimal(2) ** -51


def relative_error(x: float) -> Decimal:
    with localcontext() as context:
        context.prec = 40
        exact = Decimal(x).exp()
        return abs(Decimal(exponential(x)) - exact) / exact


@settings(max_examples=2_000, deadline=None)
@given(st.floats(-700.0, 0.0))
@example(0.0)
@example(-5e-324)
@example(-700.0)
def test_any_number(x: float) -> None:
    assert relative_error(x) < BOUND


def test_arguments_where_the_whole_number_changes() -> None:
    halves = -(np.arange(70) + 0.5) * np.log(2.0)
    for step in (-1.0, 0.0, 1.0):
        for x in halves + step * np.spacing(halves):
            assert relative_error(float(x)) < BOUND


def test_weights_within_the_clamp() -> None:
    for x in -24.0 * np.random.default_rng(1).random(3_000):
        assert relative_error(float(x)) < BOUND


def test_the_largest_weight_is_one() -> None:
    assert exponential(0.0) == exponential(-0.0) == 1.0
    assert max(exponential(-x) for x in np.geomspace(1e-300, 1.0, 5_000)) <= 1.0
