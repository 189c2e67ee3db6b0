"""Independent columns with noisy 1-way marginals: the first thing a sober analyst would try."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.baselines.noise import NoisyCounts, plan_noisy_counts
from dualquery.mechanisms.options import check_whole
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator


@dataclass(frozen=True)
class NoisyColumns(Details):
    """A noisy measurement of the count of every bit, and how many records to draw."""

    bits: NoisyCounts
    records: int

    def parameters(self) -> Mapping[str, Any]:
        """Return the number of records, and the description of the measurement."""
        return {"records": self.records, **self.bits.parameters()}


@dataclass(frozen=True, kw_only=True)
class Independent(Mechanism[NoisyColumns]):
    """Measures every bit once, with noise, and multiplies the columns' shares."""

    name: ClassVar[str] = "independent"
    pure: ClassVar[bool] = False

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_whole(self, "records")

    def statistics(self, queries: Queries) -> Workload:
        """Hold the count of every bit."""
        return one_way(queries.domain)

    def plan(self, task: Task, budget: Budget) -> Plan[NoisyColumns]:
        """Spend the whole budget on one noisy measurement of all bits."""
        bits = plan_noisy_counts(self.statistics(task.workload), budget)
        records = self.records or task.default_records
        return Plan(bits.schedule, bits.accountant, NoisyColumns(bits.details, records))

    def run(
        self, task: Task, plan: Plan[NoisyColumns], curator: Curator, session: Session
    ) -> Outcome:
        """Measure, make every column a distribution, and multiply."""
        domain, noise = task.workload.domain, plan.details.bits.noise
        shares = noise.measure(curator) / task.n
        model = ProductMixture.single(domain, to_distributions(domain, shares))
        asked, deviation = one_way(domain).literals, noise.deviation / task.n
        measured = Measurements.of_codes(asked, shares, deviation, noise.kind)
        return Outcome(
            model.answers(task.workload),
            model.sample(plan.details.records, np.random.default_rng(session.public_seed)),
            measurements=measured,
            model=model,
        )


def one_way(domain: Domain) -> Workload:
    """Return the workload of all single bits."""
    literals = np.arange(domain.bits, dtype=np.int32)[:, None] * np.int32(2)
    return Workload(literals, domain, {"kind": "one-way"})


def uniform_probabilities(domain: Domain) -> NDArray[np.float64]:
    """Return the chance of each bit if all values of a column are equally frequent."""
    return np.where(domain.sizes == 1, 0.5, 1.0 / domain.sizes)[domain.column_of_bit]


def to_distributions(domain: Domain, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest point, column by column, in [0, 1] or among one-hot distributions.

    In Euclidean distance (Duchi et al. 2008, simplex).
    """
    result = np.clip(shares, 0.0, 1.0)
    for column in np.flatnonzero(domain.sizes > 1):
        group = slice(int(domain.offsets[column]), int(domain.offsets[column + 1]))
        falling = np.sort(shares[group])[::-1]
        excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(falling) + 1)
        cut = excess[np.flatnonzero(falling > excess)[-1]]
        values = np.maximum(shares[group] - cut, 0.0)
        result[group] = values / math.fsum(values)
    return result
