"""The Fourier mechanism of Barak et al. (PODS 2007), and its fit by multiplicative weights.

Noise goes on the Fourier coefficients of the asked marginals. Their answers agree with each other,
but there may be no table that has them: the paper finds one by a linear program, the MWEM paper
(section 3.2) by multiplicative weights with all coefficients as measurements.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes, cells_of
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.baselines.noise import Noise, price_noise
from dualquery.mechanisms.options import check_choice, check_whole
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.derived_queries import Subqueries, answers_of, asked_sets
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.statistics import OddCounts
from dualquery.runtime.errors import BadInputError
from mwem.cell_records import rows_of_cells, sampled_table

Fit = Literal["auto", "weights", "program", "none"]

MOST_CELLS = 1 << 20
"""Cells of a table that is fitted."""

MOST_ENTRIES = 1 << 22
"""Cells times coefficients of a linear program."""

_MOST_BITS = 64


@dataclass(frozen=True, kw_only=True)
class BarakDetails(Details):
    """What was decided on public facts.

    The sets of bits whose coefficients are measured; how a table is found, never ``auto``; most
    coefficients that move between neighbours; the noise of every coefficient's count, and the
    standard deviation of a coefficient's noise, times the rows.
    """

    sets: Subqueries = field(compare=False)
    fit: Fit
    repetitions: int
    moving_parities: int
    records: int
    noise: Noise
    deviation: float

    def parameters(self) -> Mapping[str, Any]:
        """Return the decisions; the sets by their number."""
        return {
            "fit": self.fit,
            "repetitions": self.repetitions,
            "coefficients": len(self.sets.workload),
            "moving_parities": self.moving_parities,
            "records": self.records,
            "noise": self.noise.kind,
            "scale": self.noise.scale,
        }


@dataclass(frozen=True, kw_only=True)
class Barak(Mechanism[BarakDetails]):
    """Measures every Fourier coefficient that the workload needs, and fits a table to them."""

    name: ClassVar[str] = "barak"
    pure: ClassVar[bool] = True

    fit: Fit = "auto"
    """How a table is found: by multiplicative ``weights``, by the paper's linear ``program``, or
    ``none``: answers straight from the noisy coefficients, cut to [0, 1]. ``auto`` is ``weights``
    where the table is small enough, else ``none``."""

    repetitions: int = 10
    """Passes of multiplicative weights over all coefficients."""

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_choice(self, "fit")
        check_whole(self, "repetitions", "records")

    @property
    def makes_records(self) -> bool:
        """Only a table gives records; ``auto`` may find none."""
        return self.fit != "none"

    def statistics(self, queries: Queries) -> Workload:
        """Hold the counts that the coefficients are made of."""
        return asked_sets(require_conjunctions(queries)).workload

    def plan(self, task: Task, budget: Budget) -> Plan[BarakDetails]:
        """Spend the whole budget on one noisy measurement of all coefficients."""
        sets = asked_sets(task.workload)
        if (fit := choose_fit(self.fit, sets.workload)) == "none" and self.records is not None:
            raise BadInputError("barak makes records only where it fits a table")
        moves = OddCounts().moves(sets.workload, budget.neighbours)
        priced = price_noise(moves, budget)
        noise = priced.noise
        doubled = 2.0 * noise.deviation
        if not budget.neighbours.rows_public:  # twice the count is measured, with noise of its own
            doubled = replace(noise, scale=2.0 * noise.scale).deviation
        return Plan(
            priced.schedule,
            priced.accountant,
            BarakDetails(
                sets=sets,
                fit=fit,
                repetitions=self.repetitions,
                moving_parities=moves.entries,
                records=self.records or task.default_records,
                noise=noise,
                deviation=doubled,
            ),
        )

    def run(
        self, task: Task, plan: Plan[BarakDetails], curator: Curator, session: Session
    ) -> Outcome:
        """Measure the coefficients, fit a table, and answer from its coefficients."""
        chosen, sets = plan.details, plan.details.sets
        noisy = noisy_coefficients(task.n, chosen.noise, curator)
        bits, kind = sets.workload.literals >> 1, chosen.noise.kind  # -1 for padding
        kept = Measurements.of_codes(
            -bits - 1, noisy, chosen.deviation / task.n, kind, present=bits >= 0
        )
        measured = np.clip(noisy, -1.0, 1.0)
        if chosen.fit == "none":
            answers = answers_of(task.workload, sets, measured)
            return Outcome(answers=np.clip(answers, 0.0, 1.0), measurements=kept)
        cells = Cells(sets.workload)
        if chosen.fit == "program":
            shares = cells.nearest(measured)
        else:
            shares = cells.multiply_weights(measured, chosen.repetitions)
        answers = answers_of(task.workload, sets, cells.coefficients(shares))
        domain = task.workload.domain
        generator = np.random.default_rng(session.public_seed)
        table = shares.reshape(axis_sizes(domain))
        return Outcome(
            answers=np.clip(answers, 0.0, 1.0),
            records=sampled_table(table, domain, chosen.records, generator),
            measurements=kept,
        )


def noisy_coefficients(n: int, noise: Noise, curator: Curator) -> NDArray[np.float64]:
    """Return the noisy Fourier coefficients, not cut to [-1, 1]; float64, one a set; charged."""
    return 1.0 - 2.0 * noise.measure(curator, OddCounts()) / n


def choose_fit(fit: Fit, sets: Workload) -> Fit:
    """Return how to find a table, by public facts.

    Raises
    ------
    BadInputError
        If the table that the user asks for is too large.
    """
    cells, bits = cells_of(sets.domain), sets.domain.bits
    small = cells <= MOST_CELLS and bits <= _MOST_BITS
    if fit == "auto":
        return "weights" if small else "none"
    if fit in ("weights", "program") and not small:
        raise BadInputError(
            f"fit={fit} holds every cell: {cells:.6g} cells of {bits} bits, above "
            f"{MOST_CELLS:,} cells or {_MOST_BITS} bits; use fit=none, or mwem"
        )
    if fit == "program" and cells * len(sets) > MOST_ENTRIES:
        raise BadInputError(
            f"fit=program has {cells:.6g} cells times {len(sets):,} coefficients, above "
            f"{MOST_ENTRIES:,}; use fit=weights or fit=none"
        )
    return fit


class Cells:
    """All legal records, and the sets of bits whose parities are fitted.

    Parameters
    ----------
    sets
        Positive conjunctions, over a domain of at most 64 bits.
    """

    def __init__(self, sets: Workload) -> None:
        self._records = _words(rows_of_cells(np.arange(cells_of(sets.domain)), sets.domain))
        members = np.zeros((len(sets), sets.domain.bits), np.uint8)
        row, position = np.nonzero(sets.literals >= 0)
        members[row, sets.literals[row, position] >> 1] = 1
        self._masks = _words(members)

    def coefficients(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Fourier coefficients of a table; float64, one a set."""
        from mwem import fourier_kernels as kernels

        out = np.empty(len(self._masks))
        kernels.coefficients(self._records, self._masks, shares, out)
        return out

    def multiply_weights(self, targets: NDArray[np.float64], passes: int) -> NDArray[np.float64]:
        """Return the uniform table after passes of multiplicative weights; float64, one a cell."""
        from mwem import fourier_kernels as kernels

        shares = np.full(len(self._records), 1.0 / len(self._records))
        kernels.multiply_weights(self._records, self._masks, targets, passes, shares)
        return shares

    def nearest(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a table whose coefficients are nearest in the largest difference; one a cell.

        The linear program of Barak et al., section 4: minimise b over tables whose coefficients are
        all within b of the targets.
        """
        from scipy.optimize import linprog

        odd = np.bitwise_count(self._masks[:, None] & self._records) & 1
        signs = 1.0 - 2.0 * odd
        slack = np.full((len(signs), 1), -1.0)
        found = linprog(
            np.append(np.zeros(len(self._records)), 1.0),
            A_ub=np.block([[signs, slack], [-signs, slack]]),
            b_ub=np.concatenate((targets, -targets)),
            A_eq=np.append(np.ones(len(self._records)), 0.0)[None, :],
            b_eq=[1.0],
            method="highs",
        )
        if found.x is None:
            raise RuntimeError(f"the linear program failed: {found.message}")
        positive = np.maximum(found.x[:-1], 0.0)
        return np.asarray(positive / positive.sum())


def _words(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Pack rows of at most 64 bits into words."""
    words = np.zeros(len(rows), np.uint64)
    for bit, column in enumerate(rows.T):
        words |= column.astype(np.uint64) << np.uint64(bit)
    return words
