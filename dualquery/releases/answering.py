"""Answers of any conjunction from a finished release: post-processing, free of charge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.estimates.intervals import Intervals
    from dualquery.releases.folder import Release


def answer_queries(release: Release | str | Path, queries: Sequence[str]) -> list[dict[str, Any]]:
    """Answer conjunctions given as text.

    Parameters
    ----------
    release
        A release or its folder.
    queries
        Conjunctions over the release's schema, such as ``age=30-35 & sex!=Female``.

    Returns
    -------
    list of dict
        ``query`` as given; ``answered``, the same in canonical form, where a value has become its
        bucket or category; ``answer`` (share of the rows, in [0, 1]); ``source``: ``released``
        when the query is in the workload, else ``synthetic``; ``interval``: a pair that covers the
        true answer with the chance ``level``, on the ``basis`` of which a sentence tells; all None
        if it was not measured.

    Raises
    ------
    BadInputError
        If a query cannot be read, or is not in the workload of a release without records.
    """
    from dualquery.queries.conjunctions import Workload
    from dualquery.queries.text import parse_query, print_queries
    from dualquery.releases.folder import Release, load_release

    loaded = release if isinstance(release, Release) else load_release(release)
    known = loaded.intervals
    found = []
    for text in queries:
        literals = np.sort(parse_query(text, loaded.schema))
        line = {"query": text, "answered": print_queries(literals[None, :], loaded.schema)[0]}
        wanted = np.full(max(loaded.workload.way, len(literals)), -1, dtype=np.int32)
        wanted[: len(literals)] = literals
        at = np.zeros(0, dtype=np.int64)
        if isinstance(loaded.workload, Workload) and len(wanted) == loaded.workload.way:
            at = np.flatnonzero((loaded.workload.literals == wanted).all(axis=1))
        if len(at):
            answer = {"answer": float(loaded.answers[at[0]]), "source": "released"}
            found.append({**line, **answer, **_interval(known, int(at[0]))})
        elif loaded.records is not None:
            single = Workload(literals[None, :], loaded.schema.domain)
            share = float(single.answers_on(loaded.records)[0])
            answer = {"answer": share, "source": "synthetic"}
            found.append({**line, **answer, **_interval(None, 0)})
        else:
            raise BadInputError(
                f"{text!r} is not in the workload, and this release has no synthetic records"
            )
    return found


def _interval(known: Intervals | None, query: int) -> dict[str, Any]:
    """Return the interval of a query of the workload, and what it rests on."""
    interval = None if known is None else known.of(query)
    if known is None or interval is None:
        return {"interval": None, "level": None, "basis": None}
    return {"interval": interval, "level": known.level, "basis": known.basis}
