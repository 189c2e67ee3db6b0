"""Selection of a small database by the exponential mechanism (Blum, Ligett and Roth 2008).

**Lemma.** The alternatives are all databases of ``size`` legal records, as multisets. The score of
a database y is ``-max_q |q(D) - q(y)|``, in units of 1/size row: ``-max_q |size c_q - n h_q|`` with
c_q and h_q the numbers of records of D and y that satisfy q, a whole number. When one record is
replaced (or added or removed, n being a public number then), c_q moves by at most 1, so a score by
at most ``size`` units, up or down; with log-weights ``epsilon * score / (2 size)`` the log-ratio of
two probabilities moves by at most ``epsilon`` in all: a draw of bounded range ``epsilon``. The draw
is exact, as in `room.draws.exact_draws` (databases that are worse than the best by 48 / epsilon
rows keep the weight e^-24). Where a unit of at most K rows is replaced, added or removed, c_q moves
by at most K, and so the score by K times as much; log-weights are ``epsilon * score / (2 K size)``.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes, cells_of, rows_of_values
from dualquery.privacy.events import RANGE_SLACK, SampledQueries
from dualquery.queries.conjunctions import Workload
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.draws.exact_draws import draw_outcomes
from dualquery.room.ground import Ground
from dualquery.room.ledger import Ledger
from dualquery.room.private_data import PrivateData
from dualquery.room.randomness import Randomness, positive
from dualquery.runtime.array_types import kernel
from dualquery.runtime.errors import BadInputError

MOST_DATABASES, MOST_COMPARISONS = 1 << 22, 1 << 31
"""Above these numbers of databases, or databases times queries, none are enumerated."""


@dataclass(frozen=True, eq=False)
class SmallDatabases:
    """All databases of ``size`` legal records, numbered; `BadInputError` if too many. Public."""

    workload: Workload
    size: int

    def __post_init__(self) -> None:
        largest = largest_size(self.workload)
        if self.size > largest:
            count = count_databases(cells_of(self.workload.domain), self.size)
            raise BadInputError(
                f"smalldb: about 10^{len(str(count)) - 1} databases of {self.size} records, judged "
                f"by {len(self.workload):,} queries, are too many: at most {MOST_DATABASES:,} "
                f"databases and {MOST_COMPARISONS:,} answers are enumerated; size={largest} is the "
                "largest that can be (0: none; use a table of fewer columns or values)"
            )

    def __len__(self) -> int:
        return count_databases(cells_of(self.workload.domain), self.size)

    def records(self, number: int) -> NDArray[np.uint8]:
        """Return a database by its number: uint8, shape ``(size, bits)``."""
        domain = self.workload.domain
        cells = cells_of(domain)
        chosen, least = [], 0
        for left in range(self.size, 0, -1):
            # Databases whose next cell is below v come first: as many as the binomials say.
            whole = count_databases(cells - least, left)
            counted = partial(count_databases, size=left)
            rest = bisect_left(range(cells - least), whole - number, key=counted)
            number -= whole - count_databases(rest, left)
            least = cells - rest
            chosen.append(least)
        values = np.unravel_index(np.array(chosen), tuple(axis_sizes(domain).tolist()))
        return rows_of_values(np.stack(values, axis=1), domain)

    def scores(self, counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        """Return the score of every database, by the queries' counts on n rows. Private."""
        scores = np.empty(len(self), np.int64)
        score_databases(
            _truth(self.workload), np.ascontiguousarray(counts, np.int64), n, self.size, scores
        )
        return scores


def select_database(
    data: PrivateData, size: int, epsilon: float, ledger: Ledger, source: Randomness
) -> NDArray[np.uint8]:
    """Charge for the draw of a database, and draw it: see `Curator.select_database`."""
    epsilon = positive("epsilon", epsilon)
    if size < 1:
        raise ValueError(f"size is {size}; at least 1 record is needed")
    databases = SmallDatabases(data.conjunctions, size)
    counts = data.counts
    moved = data.neighbours.steps
    ground = Ground(
        __name__, "largest error of a database", float(size * moved), proof=f"one count by {moved}"
    )

    def drawn() -> NDArray[np.uint8]:
        scores = kernels.Scores.of(databases.scores(counts, data.public_rows))
        sample = draw_outcomes(scores, 1, epsilon / (2 * size * moved), 1, source)
        return databases.records(int(sample.queries[0]))

    event = SampledQueries(epsilon + RANGE_SLACK, 1)
    return ledger.draw(event, ground, drawn, (size, databases.workload.domain.bits))


def count_databases(cells: int, size: int) -> int:
    """Return the number of multisets of ``size`` out of ``cells`` cells, exactly."""
    return math.comb(cells + size - 1, size)


def largest_size(workload: Workload) -> int:
    """Return the largest size whose databases can be enumerated, 0 if none; public."""
    most = min(MOST_DATABASES, MOST_COMPARISONS // len(workload))
    cells = cells_of(workload.domain)
    size = 0
    # A universe of one cell has one database of every size: no use beyond a few.
    while size < MOST_DATABASES.bit_length() and count_databases(cells, size + 1) <= most:
        size += 1
    return size


def _truth(workload: Workload) -> NDArray[np.uint8]:
    """Return the value of every query on every legal record: uint8, shape ``(cells, m)``."""
    domain = workload.domain
    shape = tuple(axis_sizes(domain).tolist())
    values = np.unravel_index(np.arange(math.prod(shape)), shape)
    rows = rows_of_values(np.stack(values, axis=1), domain)
    truth = np.ones((len(rows), len(workload)), np.uint8)
    for codes in workload.literals.T:
        holds = rows[:, codes >> 1] ^ (codes & 1).astype(np.uint8)
        truth &= np.where(codes >= 0, holds, np.uint8(1))
    return truth


@kernel("void(uint8[:, ::1], int64[::1], int64, int64, int64[::1])")
def score_databases(
    truth: NDArray[np.uint8],
    counts: NDArray[np.int64],
    n: int,
    size: int,
    scores: NDArray[np.int64],
) -> None:
    """Fill in ``-max_q |size * counts[q] - n * hits[q]|`` for all databases, in their order.

    ``truth[x, q]`` is the value of query q on cell x. A database is a non-decreasing sequence of
    cells, and databases are in lexicographic order, so that most differ from the one before in
    their last cell only.
    """
    cells, queries = truth.shape
    chosen = np.zeros(size, np.int64)
    hits = np.zeros((size + 1, queries), np.int64)
    changed = 0
    for number in range(len(scores)):
        for place in range(changed, size):
            for query in range(queries):
                hits[place + 1, query] = hits[place, query] + np.int64(truth[chosen[place], query])
        worst = np.int64(0)
        for query in range(queries):
            worst = max(worst, abs(size * counts[query] - n * hits[size, query]))
        scores[number] = -worst
        changed = size - 1
        while changed > 0 and chosen[changed] == cells - 1:
            changed -= 1
        chosen[changed:] = chosen[changed] + 1
