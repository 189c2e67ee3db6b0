"""Chooses how a workload is counted, says why, and refuses what cannot fit.

The choice changes the time only, never a count. The reasons go to the log ``dualquery.explain``
(``--explain``), which is for the operator: times and the storage of private rows are not public.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.counting.passes import CountingPass
from dualquery.queries.counting.rewriting import MOST_LITERALS, Rewriting, different_bits, rewrite
from dualquery.rows.packed import Records
from dualquery.rows.protocol import BLOCK_ROWS, BLOCK_WORDS, BlockRows
from dualquery.runtime.explaining import explain_log
from dualquery.runtime.resources import check_memory, mebibytes

_REWRITING_BLOCKS = 256
"""From this many blocks on, finding the positive conjunctions takes less time than it saves."""

_REWRITING_GAIN = 1.5
"""The rewriting pays if it has this many times fewer conjunctions."""

_TRIAL_QUERIES = 50_000


@dataclass(frozen=True, eq=False)
class ConjunctionCounts:
    """The statistic of how many rows satisfy each conjunction (see `RowSum`).

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``: literal codes ``2 * bit + negated``, each row sorted, at least one
        literal a row, padded on the right with -1.
    """

    literals: NDArray[np.int32]

    def of_literals(self, literals: NDArray[np.int32], /) -> ConjunctionCounts:
        """Return the counts of other conjunctions."""
        return ConjunctionCounts(literals)

    def __call__(self, rows: BlockRows, threads: int, /) -> NDArray[np.int64]:
        """Count in some rows: int64, shape ``(m,)``.

        Raises `BadInputError` if they cannot be read to the end, or the pass needs too much memory.
        """
        blocks = -(-rows.n // BLOCK_ROWS)
        rewriting, reason = None, f"{blocks:,} blocks are counted sooner than queries are rewritten"
        if blocks >= _REWRITING_BLOCKS:
            rewriting, reason = self._rewriting
        counting = self._direct if rewriting is None else CountingPass(rewriting.positive)
        check_memory(
            counting.memory(threads),
            f"counting {len(self.literals):,} queries about {len(counting.attributes):,} bits",
            "take fewer threads, queries or columns",
        )
        if explain_log.isEnabledFor(logging.INFO):
            self._explain(counting, reason, rows, threads)
        counts = counting.run(rows, threads)
        return counts if rewriting is None else rewriting.combine(counts, rows.n)

    @cached_property
    def _direct(self) -> CountingPass:
        return CountingPass(self.literals)

    @cached_property
    def _rewriting(self) -> tuple[Rewriting | None, str]:
        m, way = self.literals.shape
        if way > MOST_LITERALS:
            return None, f"queries of more than {MOST_LITERALS} literals have too many terms"
        supports = different_bits(self.literals)
        if _REWRITING_GAIN * supports > m:
            return None, f"the {m:,} queries are about {supports:,} different sets of bits"
        rewriting = rewrite(self.literals)
        positive = len(rewriting.positive)
        if _REWRITING_GAIN * positive > m:
            return None, f"the {m:,} queries come from {positive:,} positive conjunctions"
        return rewriting, f"the {m:,} queries come from only {positive:,} positive conjunctions"

    def _explain(self, counting: CountingPass, reason: str, rows: BlockRows, threads: int) -> None:
        """Tell the operator the choice and the estimated time before counting starts."""
        direct = counting.literals is self.literals
        blocks = -(-rows.n // BLOCK_ROWS)
        each = _trial(counting)
        estimate = each * len(counting.literals) * blocks / threads
        place = "at hand" if isinstance(rows, Records) else "streamed"
        way = "each query on its own" if direct else "inclusion and exclusion"
        explain_log.info(
            f"{len(self.literals):,} queries about {len(counting.attributes):,} of {rows.bits:,} "
            f"bits; {rows.n:,} rows in {blocks:,} blocks; {place}"
        )
        explain_log.info(
            f"{way}, because {reason}; sparse blocks by intersecting lists of words, the others "
            "packed"
        )
        explain_log.info(
            f"estimate: counting {estimate:.2f} s on {threads} threads ({1e9 * each:.1f} ns a "
            "query and block, tried on random bits), beside reading; "
            f"{mebibytes(counting.memory(threads))} beside the rows"
        )


def _trial(counting: CountingPass) -> float:
    """Return the seconds that a query takes on a dense block of random bits."""
    some = CountingPass(counting.literals[:_TRIAL_QUERIES])
    words = np.random.default_rng(0).integers(
        0, 2**64, (len(some.attributes), BLOCK_WORDS), np.uint64
    )
    counts = np.zeros(len(some.literals), np.int64)
    some.count_words(words, counts)
    start = time.perf_counter()
    some.count_words(words, counts)
    return (time.perf_counter() - start) / len(counts)
