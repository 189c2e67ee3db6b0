"""Randomized response: every record reports each of its values truly or at random (Warner 1965).

**Lemma.** A column with v values is reported through a channel: a record says each value that it
does not have with probability ``steps / 2^64``, and its own with the rest. Two records'
probabilities of the same report differ by at most the factor ``(2^64 - (v - 1) steps) / steps``, so
replacing a record costs a pure epsilon of its logarithm for each reported column. One uniform word
is one report, and the probabilities are exact. Nobody but a record needs to know its true values.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes, column_values, rows_of_values
from dualquery.privacy.events import RandomizedReport
from dualquery.queries.conjunctions import Workload
from dualquery.room.ground import Ground
from dualquery.room.ledger import Ledger
from dualquery.room.private_data import PrivateData
from dualquery.room.randomness import Randomness, positive
from dualquery.rows.packed import RecordsBuilder
from dualquery.rows.row_sums import BLOCK_ROWS, BlockRows, LocalRowSum
from dualquery.runtime.errors import BadInputError

WORDS = 2**64
"""Number of different words."""

_MARGIN = 1.0 + 2.0**-48
"""More than all rounding errors in `steps_of` together, as a factor."""


def steps_of(epsilon: float, values: int) -> int:
    """Return for how many words a record reports a given value that it does not have.

    ``epsilon`` > 0 is the cost of one report, ``values`` v >= 2. At least ``2^64 / (exp(epsilon) +
    v - 1)``, so that the report costs no more; at least 1. `BadInputError` if the words left over
    by equal shares, which tell the truth, cost more.
    """
    share = _MARGIN / (math.exp(min(epsilon, 50.0)) + values - 1)
    steps = min(math.ceil(share * WORDS), WORDS // values)
    if WORDS - values * steps > steps * math.expm1(min(epsilon, 50.0)):
        raise BadInputError(
            f"epsilon {epsilon:g} is too small for a report of {values:,} values; use a larger one"
        )
    return steps


def asked_columns(workload: Workload) -> NDArray[np.int64]:
    """Return the columns that some query looks at, increasing: int64. Only these are reported."""
    used = workload.literals[workload.literals >= 0] >> 1
    return np.unique(workload.domain.column_of_bit[used]).astype(np.int64)


def count_reports(
    data: PrivateData, epsilon: float, ledger: Ledger, source: Randomness
) -> NDArray[np.int64]:
    """Charge for a report of every asked column, and count the reports that satisfy each query.

    `BadInputError` if the number of rows is private: there is one report a row.
    """
    epsilon = positive("epsilon", epsilon)
    if not data.rows_public:
        raise BadInputError("randomized response gives away the number of reports")
    queries = data.conjunctions
    ground = Ground(__name__, "one column of every record", 1.0, proof="one report a record")
    counted = RandomizedCounts(queries, epsilon, source)
    event = RandomizedReport(epsilon)
    times = len(asked_columns(queries))
    return ledger.draw(event, ground, lambda: data.total(counted), (len(queries),), times)


class RandomizedCounts(LocalRowSum):
    """The statistic of how many rows' reports satisfy each query; ``epsilon`` is for one column."""

    def __init__(self, workload: Workload, epsilon: float, randomness: Randomness) -> None:
        self._workload = workload
        self._columns = asked_columns(workload)
        self._epsilon = epsilon
        self._randomness = randomness

    def __call__(self, rows: BlockRows, threads: int, /) -> NDArray[np.int64]:
        """Randomize and count: int64, shape ``(m,)``."""
        domain = self._workload.domain
        counts = np.zeros(len(self._workload), np.int64)
        left = rows.n
        for block in rows.stream():
            dense = np.zeros((min(left, BLOCK_ROWS), rows.bits), np.uint8)
            block.unpack(0, dense)
            reports = RecordsBuilder(domain.bits)
            true = dense[:, : domain.bits]
            said = randomize(true, domain, self._columns, self._epsilon, self._randomness)
            reports.append_dense(said)
            counts += self._workload.counts(reports.build(), threads)
            left -= len(dense)
        return counts


def randomize(
    rows: NDArray[np.uint8],
    domain: Domain,
    columns: NDArray[np.int64],
    epsilon: float,
    randomness: Randomness,
) -> NDArray[np.uint8]:
    """Return what legal records report: legal records, uint8 ``(r, bits)`` as the rows.

    Columns that are not reported come out as their first value. A report takes one word.
    """
    true = column_values(rows, domain)
    sizes = axis_sizes(domain)
    reported = np.zeros_like(true)
    for column in columns:
        values = int(sizes[column])
        words = randomness.words(len(rows))
        said = words // np.uint64(steps_of(epsilon, values))
        other = said < np.uint64(values)
        reported[:, column] = np.where(other, said, true[:, column].astype(np.uint64))
    return rows_of_values(reported, domain)
