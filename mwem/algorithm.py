"""Figure 1 of the MWEM paper (Hardt, Ligett and McSherry, NIPS 2012), on any representation.

Each iteration selects a query that the distribution serves badly (by the exponential mechanism or
report noisy max), measures it (noise), and multiplies the distribution by an exponential of the
query, so that its answer moves towards the measurement. Only the selection and the measurement are
private; both happen in the curator's room. Its variations (section 2.3.2) are options: passes over
all measurements so far (``repetitions``), the last distribution or the average (``average``), and a
start that was measured (`mwem.start`).
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError
from mwem.options import MwemOptions
from mwem.output import Output
from mwem.questions import Questions
from mwem.representations import Representation
from mwem.spending import Spending

DRAWS = 2  # private draws of an iteration: a selection and a measurement


def multiply_weights(
    curator: Curator,
    asked: Questions,
    queries: Products,
    distribution: Representation,
    options: MwemOptions,
    spending: Spending,
    output: Output,
    progress: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """Run all iterations; return the trace, one JSON-able line an iteration, all of it public.

    ``queries`` are the room's: the workload's, and what the start counted. The distribution is A_0,
    updated in place; ``output`` gets A_0, A_1, ..., A_T and their answers; ``progress`` is called
    after every iteration.
    """
    trace: list[dict[str, Any]] = []
    measured_already = np.zeros(len(asked), dtype=np.bool_)
    answers = queries.scale * distribution.answers()
    for number in range(1, spending.iterations + 1):
        if curator.cut_short(DRAWS):
            break
        curator.log_errors(answers, f"before iteration {number}")
        candidates = ~measured_already & asked.admitted(distribution)
        if trace and not candidates.any():
            break  # what was measured so far is paid for, and released
        require_candidates(candidates, number, options)

        question = asked.select(curator, spending, answers, candidates)
        if curator.cut_short():
            break
        output.before_update(answers, distribution)
        measured, noisy = asked.measure(curator, spending, question, output.n)
        started = time.perf_counter()
        multiply(distribution, queries, measured, noisy, options.repetitions)
        seconds = time.perf_counter() - started

        trace.append(
            {
                "round": number,
                **asked.describe(measured, answers[measured], noisy),
                **distribution.describe(),
                "seconds": seconds,
            }
        )
        measured_already[question] = True
        answers = queries.scale * distribution.answers()
        progress(number, spending.iterations)
    curator.log_errors(answers, f"after iteration {spending.iterations}")
    output.after_last(answers, distribution)
    return trace


def multiply(
    distribution: Representation,
    queries: Products,
    measured: NDArray[np.int64],
    noisy: NDArray[np.float64],
    passes: int,
) -> None:
    """Update a distribution by new measurements, then by all so far in the passes that are left."""
    pairs = zip(measured.tolist(), noisy.tolist(), strict=True)
    targets = [clip_to_range(answer, queries, query) for query, answer in pairs]
    distribution.update(measured, np.array(targets))
    distribution.repeat(passes - 1)


def require_candidates(candidates: NDArray[np.bool_], number: int, options: MwemOptions) -> None:
    """Stop when there is nothing left to select.

    Raises
    ------
    BadInputError
        If there are no candidates.
    """
    if not candidates.any():
        raise BadInputError(
            f"iteration {number}: no query is left whose measurement fits memory_gib = "
            f"{options.memory_gib:g}; use fewer iterations or a larger memory_gib"
        )


def clip_to_range(noisy: float, queries: Products, query: int) -> float:
    """Bring a noisy answer to the values that the query's product can take (post-processing).

    With it an exponent is at most half the query's range, so weights stay far from overflow
    whatever the noise.
    """
    table = queries.table(query)
    return float(np.clip(noisy / queries.scale[query], table.min(), table.max()))
