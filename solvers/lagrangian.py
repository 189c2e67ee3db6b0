"""The Lagrangian dual: the disaggregated relaxation's bound without a linear program.

With literals ``l`` (0 or 1, or between), a conjunction is worth at most

- ``w min l = min { sum of y_i l_i : y >= 0, sum of y_i = w }`` for a weight ``w > 0``,
- ``-v max(0, sum of l - (k - 1)) = min { z (k - 1 - sum of l) : 0 <= z <= v }`` for ``w = -v < 0``,

and a linear constraint ``lower <= c x <= upper`` adds ``0 = min over mu of mu (s - c x)`` for some
``s`` between its sides. *Any* multipliers ``y, z, mu`` leave a linear function of the record, whose
maximum bounds the optimum; the least bound is that of the linear program. The primal-dual hybrid
gradient method with diagonal steps looks for it (Pock and Chambolle, ICCV 2011, equations 4 and 10,
alpha = 1). Begun at an optimal record it mostly certifies that in some ten iterations; else its
relaxed record, rounded, is where to search from.
"""

import numpy as np
from numpy.typing import NDArray

from solvers.formulation import without_single_literals
from solvers.problem import BestResponse
from solvers.relaxation import attainable, next_value

_MARGIN = 1e-9
"""What rounding in sums of multipliers may hide, as a share of the sum of absolute weights."""

_STEP_RATIO = 0.6
"""Step of the relaxed record over that of the multipliers, for weights of mean 1: the best of
0.05 to 1.2 on rounds of games on Adult and KDD99, where anything from 0.2 on does."""

_WORK = 8e-9  # seconds of a typical machine an iteration takes a literal


class LagrangianDual:
    """The dual of a kernel of canonical, non-empty terms, begun at a legal record."""

    def __init__(self, kernel: BestResponse, record: NDArray[np.uint8]) -> None:
        from solvers import lagrangian_kernels as kernels

        self._kernel = kernel
        single, constant, several = without_single_literals(kernel)
        terms, weights = kernel.terms[several], kernel.weights[several]
        widths = (terms >= 0).sum(axis=1)
        rows = kernel.rows
        free = np.ones(kernel.attributes, np.uint8)
        free[kernel.groups.members] = 0
        positive = weights > 0
        shares = np.where(terms >= 0, np.maximum(weights, 0.0)[:, None] / widths[:, None], 0.0)
        shares[~positive, :1] = -0.5 * weights[~positive, None]  # there may be no term at all

        scale = (float(np.abs(weights).mean()) if len(weights) else 0.0) or 1.0
        touching = np.bincount(terms[terms >= 0] >> 1, minlength=kernel.attributes)
        touching = touching + np.bincount(
            rows.attributes, np.abs(rows.coefficients), minlength=kernel.attributes
        )
        row_sizes = rows.totals
        self._literals = int(widths.sum()) + len(rows.attributes) + kernel.attributes
        self._state = kernels.DualState(
            terms=terms,
            weights=weights,
            single=single,
            free=free,
            group_starts=kernel.groups.indptr,
            group_members=kernel.groups.members,
            row_starts=rows.indptr,
            row_attributes=rows.attributes,
            coefficients=rows.coefficients,
            lower=rows.lower - rows.slack,
            upper=rows.upper + rows.slack,
            reach=_STEP_RATIO / (scale * np.where(touching > 0.0, touching, 1.0)),
            term_step=scale / _STEP_RATIO / np.where(positive, 1, widths),
            row_step=scale / _STEP_RATIO / np.where(row_sizes > 0.0, row_sizes, 1.0),
            shares=shares,
            prices=np.zeros(len(rows)),
            point=record.astype(np.float64),
            ahead=np.zeros(kernel.attributes),
            pull=np.zeros(kernel.attributes),
            best_pull=np.zeros(kernel.attributes),
            values=np.array([np.inf, constant, 0.0]),
        )
        kernels.gather(self._state)
        self.iterations = 0
        """Iterations made."""

    @property
    def bound(self) -> float:
        """Least upper bound found on the optimum, raised by what rounding may hide.

        Rounded down to a value that the objective can take; ``inf`` before the first iteration.
        """
        return float(attainable(self._kernel, self._state.values[0], _MARGIN))

    @property
    def seconds_per_iteration(self) -> float:
        """Estimate, for a typical machine."""
        return _WORK * self._literals

    def descend(self, iterations: int, goal: float) -> None:
        """Iterate until the bound is at most the goal, or for a number of iterations."""
        from solvers import lagrangian_kernels as kernels

        rounding = _MARGIN * float(np.abs(self._kernel.weights).sum())
        target = next_value(self._kernel, goal) - 2.0 * rounding
        self.iterations += kernels.descend(self._state, iterations, target)

    def rounded(self, rng: np.random.Generator | None = None) -> NDArray[np.uint8]:
        """Return a record, legal for the groups, from the relaxed one.

        The nearest one (of each group its largest member), or with a generator a random one:
        independent draws, each attribute and member with its relaxed value as probability
        (randomised rounding, Raghavan and Thompson, Combinatorica 7, 1987).
        """
        point, groups = self._state.point, self._kernel.groups
        thresholds = np.full(len(point), 0.5) if rng is None else rng.random(len(point))
        record = (point > thresholds).astype(np.uint8)
        record[groups.members] = 0
        for group in range(len(groups)):
            members = groups[group]
            masses = point[members]
            if rng is None:
                choice = int(masses.argmax())
            else:
                total = masses.cumsum()
                choice = int((total > rng.random() * total[-1]).argmax())
            record[members[choice]] = 1
        return record

    def bounds(self) -> NDArray[np.float64]:
        """Return upper bounds on the records in which each attribute is 0, and 1.

        Shape ``(2, attributes)``, rounded as :attr:`bound` is: the bound less what the Lagrangian
        that gave it loses when the attribute is set against its pull.
        """
        pull = self._state.best_pull
        loss = np.stack((np.maximum(pull, 0.0), np.maximum(-pull, 0.0)))
        groups = self._kernel.groups
        for group in range(len(groups)):
            members = groups[group]
            pulls = pull[members]
            best = int(pulls.argmax())
            loss[1, members] = pulls[best] - pulls
            loss[0, members] = 0.0
            others = np.delete(pulls, best)
            loss[0, members[best]] = pulls[best] - others.max() if len(others) else np.inf
        return attainable(self._kernel, self._state.values[0] - loss, _MARGIN)
