"""How numbers of answers are shown, by ``dualquery answer`` and ``dualquery table``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.cli.commands.answer import shown


@pytest.mark.parametrize(
    ("answer", "low", "high", "text"),
    [
        (0.123456, 0.113456, 0.133456, "0.123 0.113 0.134"),
        (0.0, 0.0, 0.0, "0 0 0"),
        (1 / 3, 1 / 3, 1 / 3, "0.333333 0.333333 0.333334"),
        (-0.0004, -0.09, 0.09, "0.000 -0.090 0.090"),
        (29_884.7, 28_726.3, 30_162.0, "29885 28726 30162"),
        (1e-9, 0.0, 2e-9, "0.0000000010 0.0000000000 0.0000000020"),
        (None, 0.0, 80.0, "- 0 80"),
    ],
)
def test_an_interval_says_how_many_digits_are_shown(answer, low, high, text) -> None:
    number, ends = shown(answer, low, high)
    assert " ".join((number, *ends.split(" to "))) == text


NUMBERS = st.floats(-1e300, 1e300, allow_nan=False)


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted))
def test_what_is_shown_holds_the_interval_and_its_answer(numbers) -> None:
    low, answer, high = numbers
    number, ends = shown(answer, low, high)
    first, last = map(float, ends.split(" to "))
    assert first <= low
    assert high <= last
    assert first <= float(number) <= last
