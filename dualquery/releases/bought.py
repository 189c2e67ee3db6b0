"""How numbers lie in buckets by what was released: bought means, and the shares of buckets.

All of it is post-processing of what was released, and costs no privacy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.data.schema.within import SLOPED
from dualquery.estimates.intervals import Intervals
from dualquery.estimates.means import BoughtMean, combined
from dualquery.questions.asked import Asked, ask
from dualquery.questions.forms import LinearForm
from dualquery.questions.syntax import MEAN, Question
from dualquery.releases.knowledge import Knowledge, Known
from dualquery.releases.slopes import with_slopes
from dualquery.releases.tilts import Tilt
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema

Float64 = NDArray[np.float64]


def likely_mean(knowledge: Knowledge, bought: BoughtMean) -> float:
    """Return a bought mean, combined with the mean that measured buckets give where they do."""
    question = Question(MEAN, column=bought.column)
    asked = ask(question, knowledge.release.schema)
    assert isinstance(asked, Asked)
    found = knowledge.estimates([asked.numerator.likely])
    mean = bought.mean
    if asked.denominator is None and not isinstance(found, str) and found.spanned[0]:
        deviation = float(np.sqrt(found.covariance[0, 0]))
        mean = combined(bought, float(found.values[0]), deviation)
    interval = bought.interval(knowledge.base)
    return float(np.clip(mean, interval.lower[0], interval.upper[0]))


def means_of(release: Known) -> list[tuple[str, float, Intervals]]:
    """Return each column whose mean was bought, its `likely_mean`, and its one interval."""
    knowledge = Knowledge(release)
    return [
        (bought.column, likely_mean(knowledge, bought), bought.interval(knowledge.base))
        for bought in release.means
    ]


def following(release: Known, *, records: bool) -> Schema:
    """Return the schema by which numbers lie in buckets: as shares tell and bought means demand.

    Sloped buckets get their slopes (`dualquery.releases.slopes`). Where a mean was bought, the
    schema's own word on how numbers lie in a bucket is tilted (`dualquery.releases.tilts`) until
    the release has it: with the buckets' shares of its ``records``, or else with those that its
    answers go by, as far as these are known.
    """
    schema = release.schema
    if not isinstance(schema, TableSchema):
        return schema
    knowledge = Knowledge(release)
    columns = sloped_columns(knowledge, schema)
    own = release.records
    for bought in release.means if own is not None else ():
        place, _ = schema.column(bought.column)
        column = columns[place]
        assert isinstance(column, Numeric)
        shares = None if records else _shares(knowledge, place, column)
        if shares is None:
            assert own is not None
            shares = shares_of_records(own, schema, bought)
        columns[place] = Tilt.of(column).to(shares, likely_mean(knowledge, bought))
    return replace(schema, columns=tuple(columns))


def sloped_columns(knowledge: Knowledge, schema: TableSchema) -> list[Column]:
    """Return the columns of a schema; sloped buckets have the slopes that a release tells."""
    columns = list(schema.columns)
    for place, column in enumerate(schema.columns):
        if isinstance(column, Numeric) and SLOPED in column.rules:
            shares = _shares(knowledge, place, column)
            columns[place] = column if shares is None else with_slopes(column, shares)
    return columns


def shares_of_records(
    records: NDArray[np.uint8], schema: TableSchema, bought: BoughtMean
) -> Float64:
    """Return the shares of the buckets of a column whose mean was bought, in some records."""
    place, column = schema.column(bought.column)
    assert isinstance(column, Numeric)
    first = int(schema.domain.offsets[place])
    found: Float64 = records[:, first : first + column.buckets].mean(axis=0, dtype=np.float64)
    return found


def _shares(knowledge: Knowledge, place: int, column: Numeric) -> Float64 | None:
    """Return the share of each bucket; None where nothing tells."""
    domain = knowledge.release.schema.domain
    forms = [LinearForm(domain, ({place: each},)) for each in np.eye(column.bits)]
    try:
        return np.array([knowledge.mean(form) for form in forms[: column.buckets]])
    except BadInputError:
        return None
