"""Events and their grounds as plain data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dualquery.privacy.events import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedReport,
    SampledQueries,
    ThresholdedCounts,
)
from dualquery.room.ground import Ground

_KINDS: dict[str, type[Event]] = {
    each.__name__: each
    for each in (SampledQueries, GaussianNoise, LaplaceNoise, RandomizedReport, ThresholdedCounts)
}


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain data."""
    return {"kind": type(event).__name__, **asdict(event)}


def event_of(stored: Mapping[str, Any]) -> Event:
    """Return the event that `event_to_dict` wrote.

    Raises
    ------
    ValueError, TypeError, KeyError
        If it is none.
    """
    fields = dict(stored)
    return _KINDS[fields.pop("kind")](**fields)


def ground_of(stored: Mapping[str, Any]) -> Ground:
    """Return the ground of which ``stored`` has the fields.

    Raises
    ------
    TypeError
        If it has others.
    """
    return Ground(**stored)
