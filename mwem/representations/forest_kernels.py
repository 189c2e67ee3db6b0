"""Numba kernels of inference on a forest of cliques (see `triangulation.Forest` for its layout)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dualquery.rows.popcount_kernels import popcount
from mwem.representations.dense_kernels import include_any

INSIDE = -1
"""A clique holds the column itself."""
FROM_PARENT = -2
"""What a clique knows of a column comes through its own separator."""
UNKNOWN = -3
"""The column lies in another tree."""


@njit(
    "int64(int32[::1], int64[::1], int64[::1], int32[::1], int64[::1], int64[::1], int32[:, ::1],"
    " int64[::1], int64[:, ::1], float64[::1], int64[::1], int32[::1], float64[::1])",
    nogil=True,
    cache=True,
)
def list_supports(
    clique_of: NDArray[np.int32],
    cell_ptr: NDArray[np.int64],
    start: NDArray[np.int64],
    members: NDArray[np.int32],
    stride: NDArray[np.int64],
    sizes: NDArray[np.int64],
    scopes: NDArray[np.int32],
    table_ptr: NDArray[np.int64],
    table_stride: NDArray[np.int64],
    tables: NDArray[np.float64],
    support_ptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    values: NDArray[np.float64],
) -> np.int64:
    """List the cells of its clique on which each measured query is not 0, and its value there.

    ``support_ptr`` is filled always, the lists only if they have room. Returns their length.
    """
    filled = np.int64(0)
    for j in range(len(clique_of)):
        support_ptr[j] = filled
        clique = clique_of[j]
        for cell in range(cell_ptr[clique + 1] - cell_ptr[clique]):
            place = table_ptr[j]
            for i in range(scopes.shape[1]):
                if scopes[j, i] < 0:
                    break
                for entry in range(start[clique], start[clique + 1]):
                    if members[entry] == scopes[j, i]:
                        value = (cell // stride[entry]) % sizes[members[entry]]
                        place += value * table_stride[j, i]
            if tables[place] != 0.0:
                if len(cells):
                    cells[filled] = cell
                    values[filled] = tables[place]
                filled += 1
    support_ptr[len(clique_of)] = filled
    return filled


@njit(
    "void(int32[:, ::1], uint64[:, ::1], int64[::1], int32[::1])",
    nogil=True,
    cache=True,
)
def find_cliques(
    parts: NDArray[np.int32],
    holders: NDArray[np.uint64],
    cell_ptr: NDArray[np.int64],
    found: NDArray[np.int32],
) -> None:
    """Fill the smallest clique that holds all columns of each part (padded with -1), or -1."""
    for part in range(len(parts)):
        found[part] = -1
        fewest = np.int64(0)
        for word in range(holders.shape[1]):
            common = holders[parts[part, 0], word]
            for i in range(1, parts.shape[1]):
                if parts[part, i] < 0:
                    break
                common &= holders[parts[part, i], word]
            while common != np.uint64(0):
                lowest = np.int64(popcount((common & (~common + np.uint64(1))) - np.uint64(1)))
                common &= common - np.uint64(1)
                clique = word * 64 + lowest
                cells = cell_ptr[clique + 1] - cell_ptr[clique]
                if found[part] < 0 or cells < fewest:
                    found[part] = clique
                    fewest = cells


@njit(
    "void(int32[::1], int64[::1], int32[::1], float64[::1], float64[::1], int64[::1],"
    " float64[::1])",
    nogil=True,
    cache=True,
)
def add_potentials(
    clique_of: NDArray[np.int32],
    support_ptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    values: NDArray[np.float64],
    scales: NDArray[np.float64],
    cell_ptr: NDArray[np.int64],
    logs: NDArray[np.float64],
) -> None:
    """Add ``scale * q`` of every measured query to the log-weights of its clique's cells."""
    for j in range(len(clique_of)):
        base = cell_ptr[clique_of[j]]
        for k in range(support_ptr[j], support_ptr[j + 1]):
            logs[base + cells[k]] += scales[j] * values[k]


@njit(
    "void(int32[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1], float64[::1],"
    " float64[::1], float64[::1], float64[::1])",
    nogil=True,
    cache=True,
)
def calibrate(
    parent: NDArray[np.int32],
    cell_ptr: NDArray[np.int64],
    sep_ptr: NDArray[np.int64],
    block: NDArray[np.int64],
    map_ptr: NDArray[np.int64],
    maps: NDArray[np.int32],
    logs: NDArray[np.float64],
    upward: NDArray[np.float64],
    beliefs: NDArray[np.float64],
    separators: NDArray[np.float64],
) -> None:
    """Turn log-weights into the marginals of cliques and separators; each tree adds up to 1.

    Sums towards the roots are of logarithms; on the way back only conditional probabilities are
    multiplied. So nothing overflows, and nothing that matters underflows. ``logs`` is used up.
    """
    for clique in range(len(parent) - 1, -1, -1):
        base = cell_ptr[clique]
        for s in range(sep_ptr[clique + 1] - sep_ptr[clique]):
            low = base + s * block[clique]
            largest = logs[low]
            for i in range(low, low + block[clique]):
                largest = max(largest, logs[i])
            total = 0.0
            for i in range(low, low + block[clique]):
                beliefs[i] = math.exp(logs[i] - largest)
                total += beliefs[i]
            for i in range(low, low + block[clique]):
                beliefs[i] /= total
            upward[sep_ptr[clique] + s] = largest + math.log(total)
        up = parent[clique]
        if up >= 0:
            for i in range(cell_ptr[up + 1] - cell_ptr[up]):
                logs[cell_ptr[up] + i] += upward[sep_ptr[clique] + maps[map_ptr[clique] + i]]
    for clique in range(len(parent)):
        seps = separators[sep_ptr[clique] : sep_ptr[clique + 1]]
        up = parent[clique]
        if up < 0:
            seps[:] = 1.0
        else:
            seps[:] = 0.0
            for i in range(cell_ptr[up + 1] - cell_ptr[up]):
                seps[maps[map_ptr[clique] + i]] += beliefs[cell_ptr[up] + i]
        for s in range(len(seps)):
            low = cell_ptr[clique] + s * block[clique]
            for i in range(low, low + block[clique]):
                beliefs[i] *= seps[s]


@njit(
    "void(int64, int32[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1],"
    " float64[::1], float64[::1], float64[::1])",
    nogil=True,
    cache=True,
)
def pass_up(
    clique: int,
    parent: NDArray[np.int32],
    cell_ptr: NDArray[np.int64],
    sep_ptr: NDArray[np.int64],
    block: NDArray[np.int64],
    map_ptr: NDArray[np.int64],
    maps: NDArray[np.int32],
    beliefs: NDArray[np.float64],
    separators: NDArray[np.float64],
    ratio: NDArray[np.float64],
) -> None:
    """Bring a clique's parent up to date with it (Hugin propagation)."""
    for s in range(sep_ptr[clique + 1] - sep_ptr[clique]):
        low = cell_ptr[clique] + s * block[clique]
        total = 0.0
        for i in range(low, low + block[clique]):
            total += beliefs[i]
        old = separators[sep_ptr[clique] + s]
        ratio[s] = total / old if old > 0.0 else 0.0
        separators[sep_ptr[clique] + s] = total
    up = parent[clique]
    for i in range(cell_ptr[up + 1] - cell_ptr[up]):
        beliefs[cell_ptr[up] + i] *= ratio[maps[map_ptr[clique] + i]]


@njit(
    "void(int64, int32[::1], int64[::1], int64[::1], int64[::1], int64[::1], int32[::1],"
    " float64[::1], float64[::1], float64[::1])",
    nogil=True,
    cache=True,
)
def pass_down(
    clique: int,
    parent: NDArray[np.int32],
    cell_ptr: NDArray[np.int64],
    sep_ptr: NDArray[np.int64],
    block: NDArray[np.int64],
    map_ptr: NDArray[np.int64],
    maps: NDArray[np.int32],
    beliefs: NDArray[np.float64],
    separators: NDArray[np.float64],
    ratio: NDArray[np.float64],
) -> None:
    """Bring a clique up to date with its parent (Hugin propagation)."""
    seps = sep_ptr[clique + 1] - sep_ptr[clique]
    ratio[:seps] = 0.0
    up = parent[clique]
    for i in range(cell_ptr[up + 1] - cell_ptr[up]):
        ratio[maps[map_ptr[clique] + i]] += beliefs[cell_ptr[up] + i]
    for s in range(seps):
        total = ratio[s]
        old = separators[sep_ptr[clique] + s]
        change = total / old if old > 0.0 else 0.0
        separators[sep_ptr[clique] + s] = total
        low = cell_ptr[clique] + s * block[clique]
        for i in range(low, low + block[clique]):
            beliefs[i] *= change


@njit(
    "void(int32[::1], int32[::1], int32[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int32[::1], float64[::1], float64[::1], int32[::1], int64[::1], int32[::1], float64[::1],"
    " float64[::1], int64, int64, float64[::1])",
    nogil=True,
    cache=True,
)
def repeat(
    parent: NDArray[np.int32],
    depth: NDArray[np.int32],
    root: NDArray[np.int32],
    cell_ptr: NDArray[np.int64],
    sep_ptr: NDArray[np.int64],
    block: NDArray[np.int64],
    map_ptr: NDArray[np.int64],
    maps: NDArray[np.int32],
    beliefs: NDArray[np.float64],
    separators: NDArray[np.float64],
    clique_of: NDArray[np.int32],
    support_ptr: NDArray[np.int64],
    cells: NDArray[np.int32],
    values: NDArray[np.float64],
    targets: NDArray[np.float64],
    first: int,
    passes: int,
    scales: NDArray[np.float64],
) -> None:
    """Multiply weights on cliques: passes over the measurements from ``first`` on.

    ``beliefs`` are calibrated at the start and used up. Each tree has a focus, the only clique that
    is up to date: an update changes the focus, and the focus moves to the next query's clique along
    the path between them, passing messages as it goes. ``scales`` collects the exponents.
    """
    focus = root.copy()  # of each root; the entries of other cliques are not used
    total = np.ones(len(parent))
    ratio = np.empty(max(1, np.max(sep_ptr[1:] - sep_ptr[:-1])))
    path = np.empty(len(parent), np.int32)
    for _ in range(passes):
        for j in range(first, len(targets)):
            tree = root[clique_of[j]]
            here = focus[tree]
            goal = clique_of[j]
            steps = 0
            while here != goal:
                if depth[here] >= depth[goal]:
                    pass_up(
                        here, parent, cell_ptr, sep_ptr, block, map_ptr, maps, beliefs,
                        separators, ratio,
                    )  # fmt: skip
                    here = parent[here]
                else:
                    path[steps] = goal
                    steps += 1
                    goal = parent[goal]
            for step in range(steps - 1, -1, -1):
                pass_down(
                    path[step], parent, cell_ptr, sep_ptr, block, map_ptr, maps, beliefs,
                    separators, ratio,
                )  # fmt: skip
            goal = clique_of[j]
            focus[tree] = goal
            base = cell_ptr[goal]
            answer = 0.0
            for k in range(support_ptr[j], support_ptr[j + 1]):
                answer += values[k] * beliefs[base + cells[k]]
            exponent = (targets[j] - answer / total[tree]) / 2.0
            scales[j] += exponent
            factor = math.exp(exponent)
            change = 0.0
            for k in range(support_ptr[j], support_ptr[j + 1]):
                i = base + cells[k]
                old = beliefs[i]
                beliefs[i] *= factor if values[k] == 1.0 else math.exp(exponent * values[k])
                change += beliefs[i] - old
            total[tree] += change
            if not 1e-100 < total[tree] < 1e100:
                beliefs[base : cell_ptr[goal + 1]] /= total[tree]
                total[tree] = 1.0


@njit("void(int64[::1], int64[::1], int32[::1], int64[::1], float64[::1])", nogil=True, cache=True)
def include_any_in_cliques(
    cell_ptr: NDArray[np.int64],
    start: NDArray[np.int64],
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    tables: NDArray[np.float64],
) -> None:
    """Turn the table of every clique into its inclusive marginals, in place."""
    for clique in range(len(cell_ptr) - 1):
        include_any(
            tables[cell_ptr[clique] : cell_ptr[clique + 1]],
            sizes[members[start[clique] : start[clique + 1]]],
        )


@njit(
    "void(int64, int64, int64, int32[::1], int32[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int32[::1], float64[::1], float64[::1], float64[::1])",
    nogil=True,
    cache=True,
)
def restrict(
    top: int,
    stride: int,
    size_and_value: int,
    parent: NDArray[np.int32],
    root: NDArray[np.int32],
    cell_ptr: NDArray[np.int64],
    sep_ptr: NDArray[np.int64],
    block: NDArray[np.int64],
    map_ptr: NDArray[np.int64],
    maps: NDArray[np.int32],
    beliefs: NDArray[np.float64],
    separators: NDArray[np.float64],
    ratio: NDArray[np.float64],
) -> None:
    """Multiply a tree's marginals by the indicator of one value of a column, in place.

    ``top`` is a clique that holds the column, ``size_and_value`` is ``size * 2^32 + value``.
    """
    size = size_and_value >> 32
    value = size_and_value & 0xFFFFFFFF
    for i in range(cell_ptr[top + 1] - cell_ptr[top]):
        if (i // stride) % size != value:
            beliefs[cell_ptr[top] + i] = 0.0
    clique = top
    while parent[clique] >= 0:
        pass_up(clique, parent, cell_ptr, sep_ptr, block, map_ptr, maps, beliefs, separators, ratio)
        clique = parent[clique]
    for other in range(clique + 1, len(parent)):
        if root[other] == clique:
            pass_down(
                other, parent, cell_ptr, sep_ptr, block, map_ptr, maps, beliefs, separators, ratio
            )


@njit(
    "void(int64, int64, int64, int32[::1], int32[::1], int64[::1], int32[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int32[::1], float64[::1], float64[::1],"
    " int32[::1], float64[:, ::1])",
    nogil=True,
    cache=True,
)
def spread_column(
    column: int,
    size: int,
    top: int,
    parent: NDArray[np.int32],
    root: NDArray[np.int32],
    start: NDArray[np.int64],
    members: NDArray[np.int32],
    stride: NDArray[np.int64],
    cell_ptr: NDArray[np.int64],
    sep_ptr: NDArray[np.int64],
    block: NDArray[np.int64],
    map_ptr: NDArray[np.int64],
    maps: NDArray[np.int32],
    beliefs: NDArray[np.float64],
    separators: NDArray[np.float64],
    source: NDArray[np.int32],
    known: NDArray[np.float64],
) -> None:
    """Tell every clique of a tree what its cells say about a column elsewhere in the tree.

    ``known[v - 1, s]`` becomes the probability of value v given cell s of a separator, for the one
    direction that leads away from the column. ``source`` of a clique says where its own knowledge
    comes from: `INSIDE`, `FROM_PARENT`, a child's number, or `UNKNOWN`.
    """
    source[:] = UNKNOWN
    tree = root[top]
    inner = np.zeros(len(parent), np.int64)
    for clique in range(tree, len(parent)):
        if root[clique] == tree:
            source[clique] = FROM_PARENT
            for entry in range(start[clique], start[clique + 1]):
                if members[entry] == column:
                    source[clique] = INSIDE
                    inner[clique] = stride[entry]
    clique = top
    while parent[clique] >= 0:
        source[parent[clique]] = clique
        low = sep_ptr[clique]
        for v in range(1, size):
            for s in range(sep_ptr[clique + 1] - low):
                total = 0.0
                for r in range(block[clique]):
                    i = s * block[clique] + r
                    belief = beliefs[cell_ptr[clique] + i]
                    if source[clique] == INSIDE:
                        if (i // inner[clique]) % size == v:
                            total += belief
                    else:
                        below = source[clique]
                        at = sep_ptr[below] + maps[map_ptr[below] + i]
                        total += belief * known[v - 1, at]
                old = separators[low + s]
                known[v - 1, low + s] = total / old if old > 0.0 else 0.0
        clique = parent[clique]
    for clique in range(tree + 1, len(parent)):
        if root[clique] != tree or source[clique] != FROM_PARENT:
            continue
        up = parent[clique]
        low = sep_ptr[clique]
        for v in range(1, size):
            row = known[v - 1]
            for s in range(low, sep_ptr[clique + 1]):
                row[s] = 0.0
            for i in range(cell_ptr[up + 1] - cell_ptr[up]):
                share = beliefs[cell_ptr[up] + i]
                if source[up] == INSIDE:
                    if (i // inner[up]) % size != v:
                        continue
                elif source[up] == FROM_PARENT:
                    share *= row[sep_ptr[up] + i // block[up]]
                else:
                    share *= row[sep_ptr[source[up]] + maps[map_ptr[source[up]] + i]]
                row[low + maps[map_ptr[clique] + i]] += share
            for s in range(low, sep_ptr[clique + 1]):
                row[s] = row[s] / separators[s] if separators[s] > 0.0 else 0.0


@njit(
    "void(int64, int64, int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int32[::1],"
    " float64[:, ::1], float64[:, ::1])",
    nogil=True,
    cache=True,
)
def expand(
    hub: int,
    source: int,
    inner: int,
    size: int,
    cell_ptr: NDArray[np.int64],
    sep_ptr: NDArray[np.int64],
    block: NDArray[np.int64],
    map_ptr: NDArray[np.int64],
    maps: NDArray[np.int32],
    known: NDArray[np.float64],
    rows: NDArray[np.float64],
) -> None:
    """Fill ``rows[v - 1]`` with the chance of a column's value v given each cell of a clique."""
    for i in range(cell_ptr[hub + 1] - cell_ptr[hub]):
        for v in range(1, size):
            if source == INSIDE:
                rows[v - 1, i] = 1.0 if (i // inner) % size == v else 0.0
            elif source == FROM_PARENT:
                rows[v - 1, i] = known[v - 1, sep_ptr[hub] + i // block[hub]]
            else:
                rows[v - 1, i] = known[v - 1, sep_ptr[source] + maps[map_ptr[source] + i]]


@njit(
    "void(float64[::1], float64[:, ::1], int64[::1], int32[:, ::1], int64[::1], boolean[::1],"
    " int64[::1], int64[:, ::1], float64[::1])",
    nogil=True,
    cache=True,
    fastmath={"reassoc", "contract"},
)
def hub_tables(
    belief: NDArray[np.float64],
    rows: NDArray[np.float64],
    row_of: NDArray[np.int64],
    parts: NDArray[np.int32],
    sizes: NDArray[np.int64],
    counts_any: NDArray[np.bool_],
    offset: NDArray[np.int64],
    stride: NDArray[np.int64],
    pool: NDArray[np.float64],
) -> None:
    """Fill the inclusive marginals of parts of two or three columns independent given one clique.

    Entries with index 0 on a column are filled only where ``counts_any`` says that a query reads
    them. Sums may be reordered: the order is fixed by the code, not by the threads.
    """
    one = np.empty(len(belief))
    two = np.empty(len(belief))
    last_a, last_i, last_b, last_j = -1, -1, -1, -1
    for part in range(len(parts)):
        a, b = parts[part, 0], parts[part, 1]
        c = np.int32(-1)
        if parts.shape[1] > 2:
            c = parts[part, 2]
        for i in range(0 if counts_any[a] else 1, sizes[a]):
            if a != last_a or i != last_i:
                for cell in range(len(belief)):
                    one[cell] = belief[cell]
                    if i > 0:
                        one[cell] *= rows[row_of[a] + i - 1, cell]
                last_a, last_i, last_b = a, i, -1
            for j in range(0 if counts_any[b] else 1, sizes[b]):
                if b != last_b or j != last_j:
                    for cell in range(len(belief)):
                        two[cell] = one[cell]
                        if j > 0:
                            two[cell] *= rows[row_of[b] + j - 1, cell]
                    last_b, last_j = b, j
                place = offset[part] + i * stride[part, 0] + j * stride[part, 1]
                if c < 0 or counts_any[c]:
                    total = 0.0
                    for cell in range(len(belief)):
                        total += two[cell]
                    pool[place] = total
                if c >= 0:
                    for k in range(1, sizes[c]):
                        row = rows[row_of[c] + k - 1]
                        total = 0.0
                        for cell in range(len(belief)):
                            total += two[cell] * row[cell]
                        pool[place + k * stride[part, 2]] = total
