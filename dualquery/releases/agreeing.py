"""Records that agree with the means that were bought.

A bought mean and the noisy shares of a column's buckets measure the same thing, and `likely_mean`
is what they say together. Where the records' buckets have another mean, their shares change, by
least squares: of all shares that bring the mean about, the nearest ones are taken, a distance being
counted in what the bucket's share is uncertain by. Only what the noise of the shares does not
explain (beyond their mean's 95% interval) is left to how numbers lie within the buckets
(`dualquery.releases.tilts`), and what no numbers within the buckets can explain comes back to the
shares.

All of it is post-processing of what was released, and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.estimates.half_widths import LEVEL
from dualquery.questions.forms import LinearForm
from dualquery.releases.bought import likely_mean, shares_of_records, sloped_columns
from dualquery.releases.exchange import with_shares
from dualquery.releases.knowledge import Knowledge, Known
from dualquery.releases.tilts import Tilt

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.means import BoughtMean

Float64 = NDArray[np.float64]
Records = NDArray[np.uint8]

_ROUNDS = 2
"""Times that every column is looked at: records that are exchanged for one mean move the others, by
a part of a hundred or so."""


def agreeing_records(release: Known, generator: np.random.Generator) -> Records | None:
    """Return a release's records, if it has any, such that they agree with the means it bought.

    ``generator`` chooses which records are exchanged; public.
    """
    schema, records = release.schema, release.records
    if records is None or not release.means or not isinstance(schema, TableSchema):
        return records
    knowledge = Knowledge(release)
    columns = sloped_columns(knowledge, schema)
    tilts = []
    for bought in release.means:
        place, _ = schema.column(bought.column)
        column = columns[place]
        assert isinstance(column, Numeric)
        tilts.append((bought, place, Tilt.of(column)))
    for _ in range(_ROUNDS):
        for bought, place, tilt in tilts:
            own = shares_of_records(records, schema, bought)
            wanted = _likely_shares(knowledge, place, tilt, own, bought)
            records = with_shares(records, schema.domain, place, wanted, generator)
    return records


def following_records(
    records: Records,
    own: Records | None,
    schema: Schema,
    means: Sequence[BoughtMean],
    generator: np.random.Generator,
) -> Records:
    """Return new records of a release, with the shares of its own ones where a mean was bought.

    Parameters
    ----------
    records, own
        uint8, shape ``(r, bits)`` each: the new ones, and the release's.
    schema, means
        The release's.
    generator
        Chooses which records are exchanged; public.
    """
    if own is None or not isinstance(schema, TableSchema):
        return records
    for bought in means:
        place, _ = schema.column(bought.column)
        shares = shares_of_records(own, schema, bought)
        records = with_shares(records, schema.domain, place, shares, generator)
    return records


def nearest_shares(own: Float64, variances: Float64, means: Float64, mean: float) -> Float64:
    """Return the shares nearest to some that have a mean: float64, shape ``(buckets,)``, >= 0.

    They minimise the sum of the squares of their changes, each over its variance (generalised least
    squares with two constraints, by Lagrange's multipliers); what would be below 0 is 0.

    Parameters
    ----------
    own
        float64, shape ``(buckets,)``: the shares, >= 0.
    variances
        float64, shape ``(buckets,)``, >= 0: shares of variance 0 do not change.
    means
        float64, shape ``(buckets,)``: of the buckets.
    mean
        The mean to have; where it is beyond all that may change, they go as far as they can.
    """
    free, found = variances > 0, own
    while np.ptp(means[free]) > 0 if free.any() else False:
        weights = variances[free]
        centre = weights @ means[free] / weights.sum()
        levers = weights * (means[free] - centre)
        fixed = np.where(variances > 0, 0.0, own)
        total = own.sum() - fixed.sum() - own[free].sum()
        rest = mean - fixed @ means - own[free] @ means[free] - total * centre
        changed = own[free] + weights * total / weights.sum()
        changed += levers * rest / (levers @ (means[free] - centre))
        found = fixed
        found[free] = np.maximum(changed, 0.0)
        if (changed >= 0).all():
            break
        free[free] = changed > 0
    whole: Float64 = found * (own.sum() / found.sum())
    return whole


def _likely_shares(
    knowledge: Knowledge, place: int, tilt: Tilt, own: Float64, bought: BoughtMean
) -> Float64:
    """Return the shares that the records' buckets should have.

    A share is uncertain by its noise, and, as it is above 0, by no more than itself.
    """
    means, mean = tilt.means(), likely_mean(knowledge, bought)
    domain, within = knowledge.release.schema.domain, float(own @ means)
    noise = np.full(len(own), np.inf)
    found = knowledge.estimates(
        [LinearForm(domain, ({place: each},)) for each in (means, *np.eye(len(own)))]
    )
    if not isinstance(found, str) and found.spanned.all():
        deviations = np.sqrt(np.diag(found.covariance))
        off = found.critical(LEVEL) * deviations[0]
        within = float(np.clip(mean, found.values[0] - off, found.values[0] + off))
        noise = deviations[1:]
    # What no numbers within the buckets make up for is left to the shares.
    within = float(
        np.clip(within, mean - own @ (tilt.largest - means), mean - own @ (tilt.least - means))
    )
    with np.errstate(divide="ignore"):
        variances = 1.0 / (noise**-2.0 + own**-2.0)
    return nearest_shares(own, variances, means, within)
