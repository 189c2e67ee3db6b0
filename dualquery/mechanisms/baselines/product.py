"""Answers of a product distribution: independent columns with given probabilities of their bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload


def product_answers(workload: Workload, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of every conjunction when columns are independent.

    Literals on one column are taken together: a one-hot column takes a single value, so two
    different values of it exclude each other and negated values add up.

    Parameters
    ----------
    workload
        m conjunctions.
    probabilities
        float64, shape ``(d,)``, in [0, 1]: chance that each bit is 1; the bits of a one-hot column
        add up to 1.

    Returns
    -------
    float64 array, shape ``(m,)``, in [0, 1].
    """
    literals = workload.literals
    bits = literals >> 1
    present = literals >= 0
    negated = (literals & 1).astype(bool) & present
    positive = present & ~negated
    columns = np.where(present, workload.domain.column_of_bit[bits], -1)
    chance = np.where(present, probabilities[bits], 0.0)

    answers = np.ones(len(literals))
    for i in range(literals.shape[1]):
        first = present[:, i].copy()  # this literal is the first one on its column
        wanted = np.full(len(literals), -1, dtype=np.int64)
        excluded = np.zeros(len(literals))
        impossible = np.zeros(len(literals), dtype=bool)
        for j in range(literals.shape[1]):
            same = present[:, i] & (columns[:, j] == columns[:, i])
            first &= ~same if j < i else True
            wants = same & positive[:, j]
            impossible |= wants & (wanted >= 0) & (wanted != bits[:, j])
            wanted = np.where(wants, bits[:, j], wanted)
            excluded += np.where(same & negated[:, j], chance[:, j], 0.0)
        for j in range(literals.shape[1]):
            same = present[:, i] & (columns[:, j] == columns[:, i])
            impossible |= same & negated[:, j] & (wanted == bits[:, j])
        value = np.where(wanted >= 0, probabilities[wanted], 1.0 - excluded)
        answers *= np.where(first, np.where(impossible, 0.0, value), 1.0)
    return np.clip(answers, 0.0, 1.0)


def uniform_probabilities(domain: Domain) -> NDArray[np.float64]:
    """Return the chance of each bit under the uniform distribution over legal records."""
    return np.where(domain.sizes == 1, 0.5, 1.0 / domain.sizes)[domain.column_of_bit]
