"""The benchmarks compare equal answers, and measure what they say."""

import numpy as np
import pytest

from dualquery.runtime.errors import BadInputError
from experiments.benchmarks import run
from experiments.benchmarks.evaluation import ALTERNATIVES, Alternative
from tests.cases import truth

BITS = (np.random.default_rng(1).random((300, 9)) < 0.4).astype(np.uint8)
LITERALS = np.array([[0, 5, 8], [1, 3, 17], [2, 6, 16], [0, 5, 9], [7, 11, 13]], np.int32)


@pytest.mark.parametrize("contender", ALTERNATIVES, ids=lambda c: c.name)
def test_contenders_count_what_we_count(contender: Alternative) -> None:
    if not contender.installed:
        pytest.skip(f"{contender.module} is not installed")
    count = contender.prepare(np.asfortranarray(BITS), LITERALS)
    expected = truth(LITERALS, BITS).sum(axis=1)
    np.testing.assert_array_equal(count(), expected)
    np.testing.assert_array_equal(count(), expected)


def test_an_unknown_part_is_explained() -> None:
    with pytest.raises(BadInputError, match="--part speed: the parts are evaluation, scale"):
        run(["speed"], quick=True)
