"""From sampled queries to the best-response problem that a solver gets. All of it is public."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.disjunctions import Disjunctions
from dualquery.rows.repeats import side_by_side
from dualquery.rules.constraints import constraints_of, groups_of
from dualquery.rules.forbidden import Forbidden
from solvers import BestResponse, TermPool

_PRICE = 0.5  # of a broken rule, in typical changes of the objective by one attribute


def softened(problem: BestResponse, penalties: NDArray[np.int32]) -> BestResponse:
    """Return a problem without its constraints, in which breaking a rule has a price.

    A change of one attribute typically moves the objective by the mean absolute weight times the
    root of an attribute's mean number of literals. A search by such changes passes through records
    that break a rule if the price is not far above that. ``penalties``: `penalties_of` the rules.
    """
    terms = side_by_side(problem.terms, penalties)
    crowding = np.count_nonzero(problem.terms >= 0) / max(problem.attributes, 1)
    price = _PRICE * float(np.abs(problem.weights).mean() if len(problem.weights) else 0.0)
    weights = np.append(problem.weights, np.full(len(penalties), -price * np.sqrt(crowding)))
    return BestResponse.merging(problem.attributes, terms, weights, problem.groups)


class Problems:
    """Poses the problems of samples of the same queries: which record satisfies most of one."""

    def __init__(self, queries: Disjunctions, rules: Forbidden | None = None) -> None:
        self._indptr = queries.indptr
        domain, literals = queries.domain, queries.conjunctions.literals
        constraints = () if rules is None else constraints_of(rules)
        self._pool = TermPool(domain.bits, literals, groups_of(domain), constraints)

    def of(self, drawn: NDArray[np.int64], draws: NDArray[np.integer[Any]]) -> BestResponse:
        """Return the problem of a sample: the drawn queries, int64 ``(s,)``, repeats allowed.

        Whole ``draws``: +w for w draws of a query, -w for w of its complement ``1 - q``.
        """
        # A complement is 1 less all its conjunctions.
        complements = -int(draws[draws < 0].sum(dtype=np.int64))
        if len(self._indptr) - 1 == self._indptr[-1]:  # one conjunction each
            return self._pool.problem(drawn, draws, complements)
        lengths = np.diff(self._indptr)[drawn]
        draw = np.repeat(np.arange(len(drawn)), lengths)
        within = np.arange(len(draw)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self._pool.problem(self._indptr[drawn][draw] + within, draws[draw], complements)
