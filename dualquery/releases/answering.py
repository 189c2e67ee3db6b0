"""Answers of any conjunction from a finished release: post-processing, free of charge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload, conjunctions_of
from dualquery.queries.family import Queries
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.intervals import Intervals


class Answered(Protocol):
    """What an answer is taken from: a `dualquery.releases.folder.Release`."""

    @property
    def schema(self) -> Schema:
        """Columns and bits."""
        ...

    @property
    def workload(self) -> Queries:
        """The queries that have a released answer."""
        ...

    @property
    def answers(self) -> NDArray[np.float64]:
        """Their answers, float64, shape ``(m,)``."""
        ...

    @property
    def intervals(self) -> Intervals | None:
        """Where their true answers lie, if that is known."""
        ...

    @property
    def records(self) -> NDArray[np.uint8] | None:
        """Synthetic records, uint8 ``(r, bits)``; they answer every other query."""
        ...


def answer_queries(release: Answered, queries: Sequence[str]) -> list[dict[str, Any]]:
    """Answer conjunctions given as text.

    Parameters
    ----------
    release
        A release.
    queries
        Conjunctions over the release's schema, such as ``age=30-35 & sex!=Female``.

    Returns
    -------
    list of dict
        ``query`` as given; ``answered``, the same in canonical form, where a value has become its
        bucket or category; ``answer`` (share of the rows, in [0, 1]); ``source``: ``released``
        when the query is in the workload, else ``synthetic``; ``interval``: a pair that covers the
        true answer with probability ``level``, and ``basis``, a sentence that says why; all three
        None if the answer was not measured.

    Raises
    ------
    BadInputError
        If a query cannot be read, or is not in the workload of a release without records.
    """
    from dualquery.queries.text import parse_query, print_queries

    workload = conjunctions_of(release.workload)
    found = []
    for text in queries:
        literals = np.sort(parse_query(text, release.schema))
        line = {"query": text, "answered": print_queries(literals[None, :], release.schema)[0]}
        at = None if workload is None else workload.find(literals)
        if at is not None:
            answer, source = float(release.answers[at]), "released"
        elif release.records is not None:
            single = Workload(literals[None, :], release.schema.domain)
            answer, source = float(single.answers_on(release.records)[0]), "synthetic"
        else:
            raise BadInputError(
                f"{text!r} is not in the workload, and this release has no synthetic records"
            )
        found.append(line | {"answer": answer, "source": source} | _interval(release.intervals, at))
    return found


def _interval(known: Intervals | None, query: int | None) -> dict[str, Any]:
    """Return the interval of a query of the workload (None: of another), with its basis."""
    interval = None if known is None or query is None else known.of(query)
    if known is None or interval is None:
        return {"interval": None, "level": None, "basis": None}
    return {"interval": interval, "level": known.level, "basis": known.basis}
