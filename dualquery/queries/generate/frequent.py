"""Queries about the items that turn out to be frequent: a rule that noisy shares turn into queries.

The rule and the most items it can choose are public. Which items it chooses is decided by noisy
shares, so the queries are an output of the release that asks them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import Columns, all_marginals, chosen_columns
from dualquery.runtime.errors import BadInputError

KIND = "conjunctions of frequent items"
MOST = 100  # items that ``share>=`` takes at most, if the rule does not say

_RULE = re.compile(r"(?:top:(\d+)|share>=([0-9.eE-]+)(?:,top:(\d+))?)")


@dataclass(frozen=True)
class Frequent:
    """Which items are frequent."""

    most: int  # the most items, >= 1: those of the largest noisy shares
    share: float | None = None  # the least noisy share, above 0 and at most 1

    @staticmethod
    def parse(text: str) -> Frequent:
        """Read ``top:N``, ``share>=X`` or ``share>=X,top:N``; `BadInputError` for all else."""
        match = _RULE.fullmatch(text.replace(" ", ""))
        try:
            if match is None:
                raise ValueError
            alone, share, most = match.groups()
            rule = Frequent(int(alone or most or MOST), None if share is None else float(share))
        except ValueError:
            raise BadInputError(
                f"--query-items is {text!r}; give top:N, the N most frequent items, or share>=X, "
                f"items in a share of X of the rows or more, {MOST} at most (share>=X,top:N for "
                "another number)"
            ) from None
        if rule.most < 1 or (rule.share is not None and not 0.0 < rule.share <= 1.0):
            raise BadInputError(
                f"--query-items is {text!r}; a number of items is at least 1, a share above 0 and "
                "at most 1"
            )
        return rule

    def __str__(self) -> str:
        return (
            f"top:{self.most}" if self.share is None else f"share>={self.share:g},top:{self.most}"
        )


@dataclass(frozen=True, eq=False)
class FrequentItems:
    """All conjunctions of some of the frequent items, to be known after a first look."""

    rule: Frequent  # which items these are
    domain: Domain  # the bits of the schema
    items: NDArray[np.int64]  # increasing: the columns to choose from, each of one bit
    way: int  # items of a query

    @staticmethod
    def of(rule: str, domain: Domain, way: int, columns: Columns | None) -> FrequentItems:
        """Return the queries that a rule asks for about some columns; all of them for None.

        `BadInputError` if it may choose fewer items than a query has, or columns are no items.
        """
        items = chosen_columns(domain, columns, way)
        parsed = Frequent.parse(rule)
        if (domain.sizes[items] > 1).any():
            raise BadInputError(
                "--query-items chooses among items, columns of one bit, but the column at position "
                f"{items[domain.sizes[items] > 1][0]} has several values: name the others with "
                "--query-columns"
            )
        if parsed.most < way:
            raise BadInputError(
                f"--query-items {rule} gives {parsed.most} items, but queries have {way}: ask for "
                f"{way} or more, or for a smaller --way"
            )
        return FrequentItems(parsed, domain, items, way)

    @property
    def bits(self) -> NDArray[np.int32]:
        """The bits of the items: int32, increasing."""
        return self.domain.offsets[self.items].astype(np.int32)

    @property
    def stand_in(self) -> Workload:
        """As many queries as there can be, about the first items: to plan with."""
        return self.workload(self.items[: self.rule.most])

    def choose(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the columns of the frequent items by noisy shares, increasing; `way` or more."""
        number = min(self.rule.most, len(self.items))
        if self.rule.share is not None:
            number = min(number, max(self.way, int((shares >= self.rule.share).sum())))
        return np.sort(self.items[np.argsort(-shares, kind="stable")[:number]])

    def workload(self, items: NDArray[np.int64]) -> Workload:
        """Return all conjunctions of some of the items, none of them negated."""
        every = all_marginals(self.domain, self.way, signed=False, columns=items)
        described: Mapping[str, Any] = {
            "kind": KIND,
            "rule": str(self.rule),
            "way": self.way,
            "chosen_from": len(self.items),
            "columns": items.tolist(),
        }
        return Workload(every.literals, self.domain, described)
