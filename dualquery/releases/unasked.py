"""Columns of which a release knows nothing: records have made-up values in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dualquery.estimates.measurements import factors_of
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.runtime.figures import some

if TYPE_CHECKING:
    from dualquery.releases.folder import Release


def unasked(release: Release) -> list[str]:
    """Return the columns that nothing was asked about, measured or bought, in their order.

    None of a family of queries that does not say which columns it is about.
    """
    schema, domain = release.schema, release.schema.domain
    asked = conjunctions_of(release.workload)
    if asked is None:
        return []
    known = np.zeros(domain.columns, bool)
    known[domain.column_of_bit[asked.literals[asked.literals >= 0] >> 1]] = True
    if release.measurements is not None:
        known[domain.column_of_bit[factors_of(release.measurements.factors, domain).bits]] = True
    bought = {each.column for each in release.means}
    names = schema.column_names
    return [names[place] for place in np.flatnonzero(~known).tolist() if names[place] not in bought]


def unasked_note(release: Release) -> str | None:
    """Return a sentence on them; None where there are none, or no records."""
    names = unasked(release)
    if not names or release.records is None:
        return None
    return f"No query asks about {some(names)}: what the records have there is made up."
