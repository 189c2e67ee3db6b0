"""What answers rest on, or why one has no interval: below the answers, tied to each by a mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Footnotes:
    """The remarks on some answers; where these differ, each has a number that marks its answers.

    Parameters
    ----------
    answers
        As of `dualquery.releases.answering.answer_queries`: ``low`` and ``basis`` are looked at.
    """

    def __init__(self, answers: Iterable[Mapping[str, Any]]) -> None:
        self._numbers: dict[str, int] = {}
        for answer in answers:
            self._numbers.setdefault(_remark(answer), len(self._numbers) + 1)

    def mark(self, answer: Mapping[str, Any]) -> str:
        """Return the mark of an answer, such as ``[2]``; empty if there is one remark for all."""
        return f"[{self._numbers[_remark(answer)]}]" if len(self._numbers) > 1 else ""

    @property
    def lines(self) -> list[str]:
        """The remarks, each behind its mark."""
        if len(self._numbers) == 1:
            return list(self._numbers)
        return [f"[{number}] {remark}" for remark, number in self._numbers.items()]


def _remark(answer: Mapping[str, Any]) -> str:
    return f"{'no interval' if answer['low'] is None else 'interval'}: {answer['basis']}"
