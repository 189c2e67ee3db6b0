"""From the scopes of measured queries to a forest of cliques (a junction tree a component)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mwem.representations import triangulation_kernels as kernels
from mwem.representations.forest_kernels import Forest, map_separators

_EFFORT = 40_000
"""Orders are tried, with random ties, while their number times nodes^2 stays below this."""

_FORCED = 1e12  # steps between jitters that leave the greedy rule no choice
_LONGEST = 64  # more columns than any scope has: they add as many sets of at most the scope's cells


@dataclass(frozen=True, eq=False)
class Elimination:
    """An elimination order of some columns and what it costs.

    Parameters
    ----------
    columns
        int32, shape ``(v,)``: the columns that scopes use, increasing; nodes are positions in it.
    sizes
        int64, shape ``(v,)``: their numbers of values.
    order, cliques
        int32 ``(v,)``, uint64 ``(v, words)``: see `triangulation_kernels.eliminate`.
    cells
        Cells of the cliques of all steps: an upper bound on those of the maximal cliques.
    """

    columns: NDArray[np.int32]
    sizes: NDArray[np.int64]
    order: NDArray[np.int32]
    cliques: NDArray[np.uint64]
    cells: float


def eliminate(
    scopes: NDArray[np.int32],
    sizes: NDArray[np.int64],
    previous: Elimination | None = None,
    effort: int = _EFFORT,
) -> Elimination:
    """Find an elimination order with few cells: the best of two greedy rules, with random ties.

    Each scope, a row of columns padded with -1, must lie in one clique. The previous order, with
    the last scope's columns put at its end, is tried as well: each of its sets grows by that scope
    at most, so the cells are at most `grown_cells`. ``effort`` bounds the number of orders tried
    with random ties. Deterministic: the result depends on the arguments only.
    """
    columns = np.unique(scopes[scopes >= 0]).astype(np.int32)
    nodes = len(columns)
    local = np.where(scopes >= 0, np.searchsorted(columns, scopes), -1).astype(np.int32)
    graph = np.zeros((nodes, -(-nodes // 64)), dtype=np.uint64)
    kernels.connect(graph, local)
    log_size = np.log2(sizes[columns])
    generator = np.random.default_rng(0)
    jitters = [np.zeros(nodes), np.zeros(nodes)]
    if previous is not None:
        rank = np.full(nodes, len(previous.order))
        rank[np.searchsorted(columns, previous.columns[previous.order])] = np.arange(
            len(previous.order)
        )
        rank[local[-1][local[-1] >= 0]] = len(previous.order)
        jitters.append(_FORCED * rank)
    jitters += [generator.random(nodes) for _ in range(min(62, effort // nodes**2))]
    best: Elimination | None = None
    for attempt, jitter in enumerate(jitters):
        order = np.empty(nodes, dtype=np.int32)
        cliques = np.empty_like(graph)
        rule = kernels.MIN_FILL if attempt % 2 == 0 else kernels.MIN_WEIGHT
        cells = kernels.eliminate(graph.copy(), log_size, jitter, rule, order, cliques)
        if best is None or cells < best.cells:
            best = Elimination(columns, sizes[columns], order, cliques, cells)
    assert best is not None
    return best


def components(scopes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the sets of columns that scopes link, one a row, padded with -1."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    columns = np.unique(scopes[scopes >= 0])
    place = np.searchsorted(columns, scopes)
    used = scopes >= 0
    ends = np.broadcast_to(place[:, :1], scopes.shape)[used], place[used]
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), (len(columns),) * 2)
    count, part = connected_components(graph, directed=False)
    rows = np.full((count, int(np.bincount(part).max(initial=1))), -1, np.int32)
    order = np.argsort(part, kind="stable")
    rows[np.arange(rows.shape[1]) < np.bincount(part, minlength=count)[:, None]] = columns[order]
    return rows


def grown_cells(previous: Elimination | None, scope_cells: NDArray[np.float64]) -> NDArray[Any]:
    """Return upper bounds on the cells that `eliminate` finds with one scope more, by its cells."""
    before = 0.0 if previous is None else previous.cells
    return (before + _LONGEST) * scope_cells


def forest(elimination: Elimination) -> Forest:
    """Lay out the maximal cliques of an elimination."""
    steps = len(elimination.order)
    keeper, above, last = (np.empty(steps, dtype=np.int32) for _ in range(3))
    kernels.join(elimination.order, elimination.cliques, keeper, above, last)
    kept = np.unique(keeper)
    # A parent's last step comes after its child's, so this order puts parents first.
    kept = kept[np.argsort(-last[kept])]
    number = np.full(steps + 1, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept))
    parent = number[above[kept]]
    cliques = np.ascontiguousarray(elimination.cliques[kept])
    sizes = elimination.sizes
    entries = int(kernels.size_of(cliques.ravel()))
    start = np.empty(len(kept) + 1, dtype=np.int64)
    members = np.empty(entries, dtype=np.int32)
    stride = np.empty(entries, dtype=np.int64)
    block = np.empty(len(kept), dtype=np.int64)
    kernels.lay_out(cliques, parent, sizes, start, members, stride, block)
    holder = np.repeat(np.arange(len(kept), dtype=np.int32), np.diff(start))
    holders = np.zeros((len(sizes), -(-len(kept) // 64)), dtype=np.uint64)
    bit = np.uint64(1) << (holder % 64).astype(np.uint64)
    np.bitwise_or.at(holders, (members, holder // 64), bit)
    depth = np.zeros(len(kept), dtype=np.int32)
    root = np.arange(len(kept), dtype=np.int32)
    for clique, up in enumerate(parent.tolist()):
        if up >= 0:
            depth[clique], root[clique] = depth[up] + 1, root[up]
    cells = stride[start[:-1]] * sizes[members[start[:-1]]]
    map_ptr = _pointers(np.where(parent >= 0, cells[parent], 0))
    result = Forest(
        columns=elimination.columns,
        sizes=sizes,
        parent=parent,
        depth=depth,
        root=root,
        start=start,
        members=members,
        holder=holder,
        stride=stride,
        block=block,
        cell_ptr=_pointers(cells),
        sep_ptr=_pointers(cells // block),
        map_ptr=map_ptr,
        maps=np.empty(map_ptr[-1], dtype=np.int32),
        top=np.unique(members, return_index=True)[1].astype(np.int64),
        holders=holders,
    )
    map_separators(result)
    return result


def _pointers(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
