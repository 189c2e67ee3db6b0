"""Random records for studies of scale."""

from __future__ import annotations

import numpy as np

from dualquery.data.records import Records, RecordsBuilder
from dualquery.errors import BadInputError

_BLOCK_CELLS = 1 << 24


def biased(n: int, d: int, seed: int) -> Records:
    """Return records of independent bits, each bit with a bias of its own.

    Bit ``i`` is 1 with probability ``p_i``, itself uniform on [0, 1] (DualQuery, section 6).

    Parameters
    ----------
    n
        Number of records, at least 1.
    d
        Number of bits, at least 1.
    seed
        Of NumPy's generator: the same seed gives the same records. The data are not private.

    Returns
    -------
    Records of about ``n * d / 8`` bytes; no more than a block of rows is held beside them.

    Raises
    ------
    BadInputError
        If ``n`` or ``d`` is less than 1.
    """
    if n < 1 or d < 1:
        raise BadInputError(f"generator: n and d must be at least 1, found n = {n} and d = {d}")
    rng = np.random.default_rng(seed)
    biases = rng.random(d)
    builder = RecordsBuilder(d)
    step = max(1, _BLOCK_CELLS // d)
    for start in range(0, n, step):
        rows = min(step, n - start)
        builder.append_dense((rng.random((rows, d)) < biases).astype(np.uint8))
    return builder.build()
