"""From sampled queries to the best-response problem that a solver gets. All of it is public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.disjunctions import Disjunctions
from dualquery.rules.constraints import constraints_of
from dualquery.rules.forbidden import Forbidden
from solvers import BestResponse, Groups, LinearConstraint


def groups_of(domain: Domain) -> Groups:
    """Return the exactly-one groups of a domain: one for each column of two or more bits."""
    hot = np.flatnonzero(domain.sizes > 1)
    indptr = np.concatenate(([0], np.cumsum(domain.sizes[hot])))
    members = np.flatnonzero(domain.sizes[domain.column_of_bit] > 1).astype(np.int32)
    return Groups(indptr=indptr, members=members)


def ruled(rules: Forbidden | None) -> Sequence[LinearConstraint]:
    """Return the rules of a schema as linear constraints; None has none."""
    return () if rules is None else constraints_of(rules)


def best_response(
    queries: Disjunctions,
    drawn: NDArray[np.int64],
    draws: NDArray[np.integer[Any]],
    constraints: Sequence[LinearConstraint] = (),
) -> BestResponse:
    """Pose the problem of a sample: which record satisfies most of it.

    Parameters
    ----------
    queries
        All queries of the game.
    drawn
        int64, shape ``(s,)``: the drawn queries.
    draws
        Whole numbers, shape ``(s,)``: +w for w draws of the query, -w for w draws of its
        complement ``1 - q``.
    constraints
        What the rules of the schema ask of a record (`ruled`).
    """
    lengths = np.diff(queries.indptr)[drawn]
    draw = np.repeat(np.arange(len(drawn)), lengths)
    within = np.arange(len(draw)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    terms = queries.conjunctions.literals[queries.indptr[drawn][draw] + within]
    weights = draws[draw].astype(np.float64)
    domain = queries.domain
    problem = BestResponse.merging(domain.bits, terms, weights, groups_of(domain), constraints)
    # A complement is 1 less all its conjunctions.
    complements = -int(draws[draws < 0].sum(dtype=np.int64))
    return replace(problem, constant=problem.constant + complements)
