"""What error to expect of a mechanism, before any budget is spent. Public facts only.

Two kinds of answer, each with its basis in words: noise on every answer follows a formula, and
DualQuery a scale with constants measured on other data. For every other mechanism there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualquery.mechanism import Mechanism, Plan, Task
    from dualquery.queries.family import Queries

_EULER = 0.5772156649015329


@dataclass(frozen=True)
class Estimate:
    """An error with the range in which it is expected; ``low <= about <= high``, in [0, 1] times
    the range of the queries.
    """

    low: float
    about: float
    high: float

    def text(self) -> str:
        """Return for example ``0.030 (0.018 to 0.050)``."""
        return f"{self.about:.2g} ({self.low:.2g} to {self.high:.2g})"


@dataclass(frozen=True)
class ExpectedError:
    """What to expect of the released answers.

    Parameters
    ----------
    max_error, mean_error
        Over the queries of the workload.
    basis
        What the estimates rest on, one sentence.
    """

    max_error: Estimate
    mean_error: Estimate
    basis: str

    def text(self) -> str:
        """Return one line for a person."""
        return (
            f"expected max error {self.max_error.text()}, mean {self.mean_error.text()}; "
            f"{self.basis}"
        )


def expected_error(
    queries: Queries,
    n: int,
    *,
    mechanism: str | None = None,
    options: Mapping[str, Any] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    neighbours: str = "replace-one",
    accountant: str = "auto",
) -> ExpectedError | None:
    """Say what error to expect of a release. Looks at no data and spends nothing.

    Parameters
    ----------
    queries
        The workload: a `Workload`, or another family of queries.
    n
        Number of rows of the table, public (or what stands in for it); >= 2.
    mechanism, options, epsilon, delta, neighbours, accountant
        As for `dualquery.release`.

    Returns
    -------
    None for a mechanism without a model of its error.

    Raises
    ------
    BadInputError
        If an option or the budget cannot be.
    """
    from dualquery.budget_request import BudgetRequest
    from dualquery.mechanism import Task
    from dualquery.privacy.events import Neighbours
    from dualquery.privacy.row_count import COUNT_SHARE, RowCount
    from dualquery.registry import configure

    configured = configure(mechanism, options or {})
    wanted = BudgetRequest(
        epsilon=epsilon, delta=delta, accountant=accountant, neighbours=neighbours
    )
    relation = Neighbours.parse(neighbours)
    bought = COUNT_SHARE * epsilon if relation is Neighbours.ADD_REMOVE else 0.0
    budget, _ = wanted.resolve(configured, RowCount(n, relation, bought))
    task = Task(queries, n)
    return planned_error(configured, task, configured.plan(task, budget))


def planned_error(mechanism: Mechanism, task: Task, plan: Plan) -> ExpectedError | None:
    """Return what a mechanism's ``expected_error(task, plan)`` says, None if it has no such."""
    model = getattr(mechanism, "expected_error", None)
    return None if model is None else model(task, plan)


def noise_error(noise: str, scale: float, queries: int, spread: float) -> ExpectedError:
    """Return the error of independent noise on every answer.

    Parameters
    ----------
    noise
        ``gaussian`` or ``discrete laplace``.
    scale
        Of the noise, in units of answers.
    queries
        Number m of answers.
    spread
        Difference of the largest and the smallest possible answer: answers are clipped.
    """
    if noise == "gaussian":
        # The Gumbel mean of the largest of m magnitudes, in standard deviations.
        from scipy.special import ndtri

        largest = -float(ndtri(min(math.exp(-_EULER) / (2 * queries), 0.25)))
        mean = math.sqrt(2.0 / math.pi)
    else:
        largest, mean = math.log(queries) + _EULER, 1.0
    most = min(scale * largest, spread)
    average = min(scale * mean, spread)
    # Clipping halves the error of answers at the end of their range, and never adds any.
    return ExpectedError(
        Estimate(0.6 * most, most, min(1.3 * most, spread)),
        Estimate(0.25 * average, 0.75 * average, min(1.1 * average, spread)),
        "by the formula of independent noise; clipping takes up to half of it",
    )
