"""Values for attributes that no sampled query mentions (Section 6, "Setting free attributes")."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery.best_response import groups_of
from dualquery.mechanisms.dualquery.options import FreePolicy

FREE_POLICIES: tuple[str, ...] = get_args(FreePolicy)


def fill_unmentioned(
    domain: Domain,
    mentioned: NDArray[np.bool_],
    policy: FreePolicy,
    generator: np.random.Generator,
    previous: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """Return a legal record that says what free attributes are.

    A free binary attribute is 0 (``zeros``), a coin flip (``coins``) or what it was in the previous
    record (``hint``). A one-hot column has no zero: under either of the first two it takes one
    of its values that no query mentions, at random, or any value when all are mentioned.

    Parameters
    ----------
    domain
        The columns.
    mentioned
        bool, shape ``(d,)``: bits that a sampled query mentions.
    policy
        One of ``zeros``, ``coins``, ``hint``.
    generator
        Public randomness: the sample is public, so nothing private depends on it.
    previous
        uint8, shape ``(d,)``: the record of the round before, if any.

    Returns
    -------
    uint8 array, shape ``(d,)``.
    """
    if policy == "hint" and previous is not None:
        return previous
    record = np.zeros(domain.bits, dtype=np.uint8)
    if policy == "coins":
        binary = domain.offsets[:-1][domain.sizes == 1]
        record[binary] = generator.integers(0, 2, size=len(binary), dtype=np.uint8)
    groups = groups_of(domain)
    if len(groups):
        # Each group in random order, mentioned bits after all others: its first bit is chosen.
        group = np.repeat(np.arange(len(groups)), np.diff(groups.indptr))
        keys = generator.random(len(groups.members))
        order = np.lexsort((keys, mentioned[groups.members], group))
        record[groups.members[order[groups.indptr[:-1]]]] = 1
    return record
