"""What is derived from conjunctions: cuboids, the queries inside queries, Fourier coefficients.

*Cuboids* are the conjunctions that together make up a marginal, as one question. When one record is
replaced, it leaves one cell of a table and enters another: the counts of a cuboid move by 2 in all
(L1), or sqrt(2) in L2, however many cells there are. When one is added or removed, one of them
moves by 1.

The Fourier coefficient of a table at a set b of bits is the mean of ``chi_b(x) = (-1)^(sum of the
bits in b)``, or ``1 - 2 o_b / n`` with o_b the number of rows with an odd sum. A conjunction of
literals on the bits S with values v_j is ``prod_j (1 + s_j chi_j) / 2``, s_j = -1 for a 1 and +1
for a 0, so its answer is a signed mean of the coefficients of the subsets of S (Barak, Chaudhuri,
Dwork, Kale, McSherry and Talwar, PODS 2007, section 3). Two marginals use the same coefficient for
what they share: answers from any coefficients, noisy ones too, agree with each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes
from dualquery.queries.conjunctions import Workload, conjunctions_of
from dualquery.queries.family import Statistic
from dualquery.rows.repeats import first_occurrences, pad_right
from dualquery.runtime.errors import BadInputError

MOST_LITERALS = 12  # of one query: it has 2 to this power queries inside

_MOST_ENTRIES = 1 << 28  # literals of all queries inside, repeats included (1 GiB)


@dataclass(frozen=True, eq=False)
class Cuboids:
    """The queries of a workload by the columns that they look at.

    Cuboid c has the queries ``members[indptr[c]:indptr[c + 1]]``, increasing; no two of them hold
    on one record.
    """

    indptr: NDArray[np.int64]
    members: NDArray[np.int64]
    whole: NDArray[np.bool_]  # (cuboids,): whether every cell of the marginal is there

    @staticmethod
    def of(queries: Statistic) -> Cuboids:
        """Gather the queries into cuboids, in the order of their first members.

        `BadInputError` if two queries about the same columns could hold on one record: only cells,
        with one value of each column, exclude each other.
        """
        workload = conjunctions_of(queries)
        if workload is None:
            raise BadInputError(
                f"cuboids are made of conjunctions, not of {type(queries).__name__}; ask for whole "
                "marginals"
            )
        domain, literals = workload.domain, workload.literals
        used = literals >= 0
        columns = np.where(used, domain.column_of_bit[literals >> 1], -1).astype(np.int32)
        several = used[:, 1:] & (columns[:, 1:] == columns[:, :-1])
        negated = used & (literals & 1 == 1) & (domain.sizes[columns] > 1)
        repeated = first_occurrences(literals, 2 * domain.bits) != np.arange(len(literals))
        wrong = np.flatnonzero(several.any(axis=1) | negated.any(axis=1) | repeated)
        if len(wrong):
            raise BadInputError(
                f"query {wrong[0]} is no cell of a marginal, or is there twice: cuboids need one "
                "value of each column; ask for whole marginals"
            )
        leaders, cuboid = np.unique(first_occurrences(columns, domain.columns), return_inverse=True)
        counts = np.bincount(cuboid)
        cells = np.where(used, axis_sizes(domain)[columns], 1).astype(np.float64).prod(axis=1)
        return Cuboids(
            indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            members=np.argsort(cuboid, kind="stable").astype(np.int64),
            whole=counts == cells[leaders],
        )

    def __len__(self) -> int:
        return len(self.whole)

    def queries(self, cuboid: int) -> NDArray[np.int64]:
        """Return the queries of one cuboid."""
        return self.members[self.indptr[cuboid] : self.indptr[cuboid + 1]]


@dataclass(frozen=True, eq=False)
class Subqueries:
    """All conjunctions of one or more literals of the same query, each once.

    Bit j of a pattern stands for the j-th literal of the query. Positions without a literal add
    nothing; no literal at all has the place ``len(workload)``.
    """

    workload: Workload  # the different conjunctions
    place: NDArray[np.int64]  # (m, 2^k): where the conjunction of the literals in a pattern is

    @staticmethod
    def of(workload: Workload) -> Subqueries:
        """List the queries inside the queries of a workload; `BadInputError` if too many."""
        way, m = workload.way, len(workload)
        if way > MOST_LITERALS or (m << way) * way > _MOST_ENTRIES:
            raise BadInputError(
                f"{m:,} queries of {way} literals have too many queries inside (2^{way} each); "
                f"at most {MOST_LITERALS} literals and {_MOST_ENTRIES:,} entries in all can be "
                "listed: ask fewer or shorter queries"
            )
        pattern = np.arange(1 << way)
        inside = (pattern[:, None] >> np.arange(way) & 1).astype(bool)
        rows = np.where(inside, workload.literals[:, None, :], np.int32(-1)).reshape(-1, way)
        rows = pad_right(rows)
        first = first_occurrences(rows, 2 * workload.domain.bits)
        new = (first == np.arange(len(rows))) & (rows[:, 0] >= 0)
        number = np.cumsum(new) - 1
        place = np.where(rows[first, 0] >= 0, number[first], new.sum())
        description = {"kind": "subqueries", "of": dict(workload.description)}
        found = Workload(rows[new], workload.domain, description)
        return Subqueries(found, place.reshape(m, 1 << way))


def asked_sets(workload: Workload) -> Subqueries:
    """Return the sets of bits whose coefficients determine the answers, as positive conjunctions.

    Signed queries on the same bits need the same coefficients.
    """
    bits = np.where(workload.literals >= 0, workload.literals & ~np.int32(1), np.int32(-1))
    return Subqueries.of(Workload(bits, workload.domain, workload.description, repeats=True))


def odd_counts(sets: Workload, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return in how many rows each set of bits has an odd sum, from counts of conjunctions.

    With c_g the number of rows in which all bits of g are 1,
    ``o_b = sum over non-empty g in b of (-2)^(|g| - 1) c_g``, in whole numbers.

    ``counts``, int64 ``(len(sets),)``, are the rows in which ``sets`` hold. `ValueError` unless
    these are positive conjunctions, distinct and closed under taking subsets (see `asked_sets`).
    """
    if len(np.unique(sets.literals, axis=0)) != len(sets):
        raise ValueError("parities need distinct conjunctions")
    inside = Subqueries.of(sets)
    positive = bool(((sets.literals < 0) | (sets.literals & 1 == 0)).all())
    if not positive or len(inside.workload) != len(sets):
        raise ValueError("parities need positive conjunctions that hold all their subsets")
    patterns = np.arange(1 << sets.way)
    members = np.bitwise_count(patterns).astype(np.int64)
    factor = np.where(members > 0, (-2) ** np.maximum(members - 1, 0), 0)
    # A pattern with a position that has no literal repeats another one.
    absent = (sets.literals < 0) @ (1 << np.arange(sets.way))
    repeats = (absent[:, None] & patterns) != 0
    # The same conjunctions in another order: their own patterns say which is which.
    whole = np.where(repeats, 0, members).argmax(axis=1)
    own = inside.place[np.arange(len(sets)), whole]
    held = np.zeros(len(sets) + 1, np.int64)
    held[own] = counts
    return np.asarray(np.where(repeats, 0, factor * held[inside.place]).sum(axis=1))


def answers_of(
    workload: Workload, sets: Subqueries, coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the answers that Fourier coefficients determine; float64, shape ``(m,)``.

    ``sets`` are `asked_sets` of the workload; ``coefficients``, float64 ``(len(sets.workload),)``,
    lie in [-1, 1] when exact.
    """
    way = workload.way
    patterns = np.arange(1 << way)
    # asked_sets keeps the order of literals: by bit, as a workload sorts them.
    positive = (workload.literals >= 0) & (workload.literals & 1 == 0)
    ones = np.bitwise_count((positive @ (1 << np.arange(way)))[:, None] & patterns)
    absent = (workload.literals < 0) @ (1 << np.arange(way))
    present = (absent[:, None] & patterns) == 0
    extended = np.append(coefficients, 1.0)[sets.place]
    total = np.where(present, (1.0 - 2.0 * (ones & 1)) * extended, 0.0).sum(axis=1)
    return np.asarray(total / present.sum(axis=1))
