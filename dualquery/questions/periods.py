"""Periods in questions: ``2024`` and ``2024-03`` are all of their days, as a column has them.

A range of dates begins with the first place of a period, and ends with the last: ``day>=2024`` is
from its first day on, ``day>2024`` behind its last. It may begin or end where all dates do: if a
table's are of 2024 only, ``day<2025`` is all of them.
"""

from __future__ import annotations

from dualquery.data.schema.dates import Dates
from dualquery.data.schema.named_bits import find_bit
from dualquery.runtime.errors import BadInputError


def places_within(column: Dates, text: str) -> tuple[int, int] | None:
    """Return the first and the last place of a period, if the column has any of it; else None."""
    places = column.places_of_text(text)
    if places is None or places[0] >= column.buckets or places[1] < 0:
        return None
    return places


def place_of_end(column: Dates, text: str, relation: str) -> int:
    """Return the place that a date or period is compared by.

    Raises
    ------
    BadInputError
        If the text is none, or one that the column cannot have.
    """
    places = column.places_of_text(text)
    behind = relation in ("<=", ">")
    if places is not None:
        # Where all places begin or end is a place to compare by, though it lies beside them.
        end = places[behind]
        beside = -1 if behind else column.buckets
        if column.outside == "clip" or end == beside or places_within(column, text):
            return end
    find_bit(column, text)  # refuses all but labels of what is no date
    raise BadInputError(f"column {column.name!r} is compared with {text!r}, which is no date")


def end_of_period(column: Dates, text: str, relation: str) -> str:
    """Return the label of the place that a date or period is compared by.

    One beyond all places stays as it is written.
    """
    place = place_of_end(column, text, relation)
    return column.labels[place] if 0 <= place < column.buckets else text
