"""Exact solution of the small separate parts of a problem, by enumeration in Gray-code order."""

import numpy as np
from numpy.typing import NDArray

from solvers.problem import BestResponse


def enumerate_parts(problem: BestResponse, work: int) -> tuple[NDArray[np.int8], int]:
    """Return optimal values of the attributes in small parts, -1 for the others, and their count.

    A part is a connected component: attributes linked by terms (canonical, not empty), groups and
    linear constraints. Of those with linear constraints only parts whose coefficients are whole
    numbers are looked at, so that sums carried from record to record are exact; one without a
    feasible record is left alone. Smallest parts come first, up to an estimated ``work`` of
    changed literals.
    """
    n = problem.attributes
    values, rows = np.full(n, -1, np.int8), problem.rows
    label, sizes = _linked(problem), np.ones(n)
    sizes[problem.groups.members] = 0.0
    bits = np.bincount(label, sizes, minlength=n)
    firsts = problem.groups.members[problem.groups.indptr[:-1]]
    np.add.at(bits, label[firsts], np.log2(np.diff(problem.groups.indptr)))
    barred = np.zeros(n, np.bool_)
    barred[label[rows.attributes[rows.coefficients != np.rint(rows.coefficients)]]] = True
    entries = np.bincount(label[rows.attributes], minlength=n)
    literals = np.bincount(label[problem.terms[problem.terms >= 0] >> 1], minlength=n) / np.maximum(
        np.bincount(label, minlength=n), 1
    )
    # At most 2**60 so that the sum stays finite.
    cost = np.exp2(np.minimum(bits, 60.0)) * (literals + entries + 1.0)
    roots = np.flatnonzero((label == np.arange(n)) & ~barred)
    roots = roots[np.argsort(cost[roots], kind="stable")]
    roots = roots[np.cumsum(cost[roots]) <= work]
    if len(roots) == 0:
        return values, 0

    from solvers import local_search_kernels as kernels
    from solvers.local_search import initial_state

    record = np.zeros(n, np.uint8)
    record[firsts] = 1
    state = initial_state(problem, record, 0)
    kernels.initialise(state)
    free = np.setdiff1d(np.arange(n), problem.groups.members)
    units = np.concatenate((free, ~np.arange(len(problem.groups)))).astype(np.int32)
    owner = label[np.concatenate((free, firsts))]
    order = np.argsort(owner, kind="stable")
    units, owner = units[order], owner[order]
    first, last = np.searchsorted(owner, roots), np.searchsorted(owner, roots, side="right")
    # A row that names no attribute belongs to no part.
    named = np.flatnonzero(np.diff(rows.indptr)).astype(np.int32)
    row_owner = label[rows.attributes[rows.indptr[named]]]
    solved = [
        root
        for root, start, end in zip(roots.tolist(), first.tolist(), last.tolist(), strict=True)
        if kernels.enumerate_choices(
            state, units[start:end], named[row_owner == root] if len(named) else named
        )
    ]
    chosen = np.isin(label, solved)
    values[chosen] = state.record[chosen]
    return values, len(solved)


def _linked(problem: BestResponse) -> NDArray[np.int64]:
    """Return the least attribute that terms, groups and rows link each attribute to."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    terms = problem.terms >> 1
    groups = problem.groups
    rows = problem.rows
    first = np.broadcast_to(terms[:, :1], terms.shape)[:, 1:]
    ends = [(first[terms[:, 1:] >= 0], terms[:, 1:][terms[:, 1:] >= 0])]
    for indptr, members in ((groups.indptr, groups.members), (rows.indptr, rows.attributes)):
        sizes = np.diff(indptr)
        ends.append((members[np.repeat(indptr[:-1], sizes)], members))
    one, other = (np.concatenate(each) for each in zip(*ends, strict=True))
    graph = coo_array((np.ones(len(one), np.int8), (one, other)), (problem.attributes,) * 2)
    _, part = connected_components(graph, directed=False)
    least = np.unique(part, return_index=True)[1]
    return np.asarray(least[part], np.int64)
