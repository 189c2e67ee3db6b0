"""Compiled loops of inference on a forest of cliques."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types, uint64, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import Array, kernel
from mwem.answer_kernels import TABLE_POOL, TablePool
from mwem.representations.dense_kernels import include_any
from mwem.representations.triangulation_kernels import lowest

INSIDE = -1
"""A clique holds the column itself."""
FROM_PARENT = -2
"""What a clique knows of a column comes through its own separator."""
UNKNOWN = -3
"""The column lies in another tree."""


class Forest(NamedTuple):
    """Maximal cliques of a triangulated graph as ``c`` nodes of rooted trees.

    Cliques are numbered so that a parent comes before its children. A clique's columns begin with
    those that it shares with its parent (its *separator*), so that a separator's cell is a
    contiguous block of the clique's table. Tables of all cliques are stored one after another, and
    so are those of all separators.
    """

    columns: NDArray[np.int32]
    """(v,): the columns of the domain that some clique holds. Below, a column is its place here."""
    sizes: NDArray[np.int64]  # (v,): their numbers of values
    parent: NDArray[np.int32]  # (c,): -1 for a root
    depth: NDArray[np.int32]  # (c,): distance from the root
    root: NDArray[np.int32]  # (c,): root of the clique's tree
    start: NDArray[np.int64]
    """(c + 1,): where each clique's entries of ``members``, ``holder`` and ``stride`` begin."""
    members: NDArray[np.int32]  # the columns of each clique
    holder: NDArray[np.int32]  # the clique of each entry of ``members``
    stride: NDArray[np.int64]  # the stride of each entry of ``members`` in its clique's table
    block: NDArray[np.int64]  # (c,): cells of a clique for one cell of its separator
    cell_ptr: NDArray[np.int64]  # (c + 1,): where the table of each clique begins
    sep_ptr: NDArray[np.int64]  # (c + 1,): where the table of each separator begins
    map_ptr: NDArray[np.int64]  # (c + 1,): where each clique's entries of ``maps`` begin
    maps: NDArray[np.int32]
    """For each clique but the roots, the separator's cell of every cell of its parent."""
    top: NDArray[np.int64]
    """(v,): each column's entry of ``members`` in the clique nearest to the root."""
    holders: NDArray[np.uint64]  # (v, words): the set of cliques that hold each column, as bits


class Beliefs(NamedTuple):
    """Marginals of the cliques and of the separators of a forest, one after another."""

    cliques: NDArray[np.float64]
    separators: NDArray[np.float64]

    def copy(self) -> Beliefs:
        """Return the same marginals in arrays of their own."""
        return Beliefs(self.cliques.copy(), self.separators.copy())


class Supports(NamedTuple):
    """Where measured queries are not 0: query j has a clique, and a list of the clique's cells."""

    clique: NDArray[np.int32]  # (t,): the clique of each query
    start: NDArray[np.int64]  # (t + 1,): where each query's cells begin
    cells: NDArray[np.int32]
    values: NDArray[np.float64]  # the query's value on each of its cells


_int32s, _int64s, _float64s = int32[::1], int64[::1], float64[::1]
_FOREST = types.NamedTuple(
    (
        _int32s, _int64s, _int32s, _int32s, _int32s, _int64s, _int32s, _int32s, _int64s, _int64s,
        _int64s, _int64s, _int64s, _int32s, _int64s, uint64[:, ::1],
    ),
    Forest,
)  # fmt: skip
_BELIEFS = types.NamedUniTuple(_float64s, 2, Beliefs)
_SUPPORTS = types.NamedTuple((_int32s, _int64s, _int32s, _float64s), Supports)


@kernel(void(_FOREST))
def map_separators(forest: Forest) -> None:
    """Fill ``maps`` from the other arrays of the forest."""
    start, members, stride = forest.start, forest.members, forest.stride
    for clique in range(len(forest.parent)):
        up = forest.parent[clique]
        if up < 0:
            continue
        cells = forest.cell_ptr[up + 1] - forest.cell_ptr[up]
        mapped = forest.maps[forest.map_ptr[clique] : forest.map_ptr[clique] + cells]
        mapped[:] = 0
        for place in range(start[clique], start[clique + 1]):
            if stride[place] < forest.block[clique]:
                break
            weight = stride[place] // forest.block[clique]
            for other in range(start[up], start[up + 1]):
                if members[other] == members[place]:
                    size = forest.sizes[members[place]]
                    inner = stride[other]
                    for outer in range(0, cells, inner * size):
                        for value in range(1, size):
                            for i in range(outer + value * inner, outer + (value + 1) * inner):
                                mapped[i] += np.int32(value * weight)


@kernel(int64(_FOREST, int32[:, ::1], TABLE_POOL, _SUPPORTS))
def list_supports(forest: Forest, scopes: Array, tables: TablePool, supports: Supports) -> np.int64:
    """List the cells of its clique on which each measured query is not 0, and its value there.

    ``supports.start`` is filled always, the lists only if they have room. Returns their length.
    """
    cells, values = supports.cells, supports.values
    filled = np.int64(0)
    for j in range(len(supports.clique)):
        supports.start[j] = filled
        clique = supports.clique[j]
        for cell in range(forest.cell_ptr[clique + 1] - forest.cell_ptr[clique]):
            place = tables.offset[j]
            for i in range(scopes.shape[1]):
                if scopes[j, i] < 0:
                    break
                for entry in range(forest.start[clique], forest.start[clique + 1]):
                    if forest.members[entry] == scopes[j, i]:
                        value = (cell // forest.stride[entry]) % forest.sizes[scopes[j, i]]
                        place += value * tables.stride[j, i]
            if tables.pool[place] != 0.0:
                if len(cells):
                    cells[filled] = cell
                    values[filled] = tables.pool[place]
                filled += 1
    supports.start[len(supports.clique)] = filled
    return filled


@kernel(void(_FOREST, int32[:, ::1], _int32s))
def find_cliques(forest: Forest, parts: Array, found: Array) -> None:
    """Fill the smallest clique that holds all columns of each part (padded with -1), or -1."""
    holders, cell_ptr = forest.holders, forest.cell_ptr
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
                clique = word * 64 + lowest(common)
                common &= common - np.uint64(1)
                cells = cell_ptr[clique + 1] - cell_ptr[clique]
                if found[part] < 0 or cells < fewest:
                    found[part] = clique
                    fewest = cells


@kernel(void(_FOREST, _SUPPORTS, _float64s, _float64s))
def add_potentials(forest: Forest, supports: Supports, scales: Array, logs: Array) -> None:
    """Add ``scale * q`` of every measured query to the log-weights of its clique's cells."""
    for j in range(len(supports.clique)):
        base = forest.cell_ptr[supports.clique[j]]
        for k in range(supports.start[j], supports.start[j + 1]):
            logs[base + supports.cells[k]] += scales[j] * supports.values[k]


@kernel(void(_FOREST, _float64s, _BELIEFS))
def calibrate(forest: Forest, logs: Array, beliefs: Beliefs) -> None:
    """Turn log-weights into the marginals of cliques and separators; each tree adds up to 1.

    Sums towards the roots are of logarithms; on the way back only conditional probabilities are
    multiplied. So nothing overflows, and nothing that matters underflows. ``logs`` is used up.
    """
    parent, block, maps, map_ptr = forest.parent, forest.block, forest.maps, forest.map_ptr
    cell_ptr, sep_ptr = forest.cell_ptr, forest.sep_ptr
    cells = beliefs.cliques
    upward = np.empty(len(beliefs.separators))
    for clique in range(len(parent) - 1, -1, -1):
        base = cell_ptr[clique]
        for s in range(sep_ptr[clique + 1] - sep_ptr[clique]):
            low = base + s * block[clique]
            largest = logs[low]
            for i in range(low, low + block[clique]):
                largest = max(largest, logs[i])
            total = 0.0
            for i in range(low, low + block[clique]):
                cells[i] = math.exp(logs[i] - largest)
                total += cells[i]
            for i in range(low, low + block[clique]):
                cells[i] /= total
            upward[sep_ptr[clique] + s] = largest + math.log(total)
        up = parent[clique]
        if up >= 0:
            for i in range(cell_ptr[up + 1] - cell_ptr[up]):
                logs[cell_ptr[up] + i] += upward[sep_ptr[clique] + maps[map_ptr[clique] + i]]
    for clique in range(len(parent)):
        seps = beliefs.separators[sep_ptr[clique] : sep_ptr[clique + 1]]
        up = parent[clique]
        if up < 0:
            seps[:] = 1.0
        else:
            seps[:] = 0.0
            for i in range(cell_ptr[up + 1] - cell_ptr[up]):
                seps[maps[map_ptr[clique] + i]] += cells[cell_ptr[up] + i]
        for s in range(len(seps)):
            low = cell_ptr[clique] + s * block[clique]
            for i in range(low, low + block[clique]):
                cells[i] *= seps[s]


@kernel(void(_FOREST, int64, _BELIEFS, _float64s))
def pass_up(forest: Forest, clique: int, beliefs: Beliefs, ratio: Array) -> None:
    """Bring a clique's parent up to date with it (Hugin propagation).

    ``ratio`` is room for as many numbers as the largest separator has cells.
    """
    cells, separators = beliefs.cliques, beliefs.separators
    first, block = forest.sep_ptr[clique], forest.block[clique]
    for s in range(forest.sep_ptr[clique + 1] - first):
        low = forest.cell_ptr[clique] + s * block
        total = 0.0
        for i in range(low, low + block):
            total += cells[i]
        old = separators[first + s]
        ratio[s] = total / old if old > 0.0 else 0.0
        separators[first + s] = total
    up = forest.parent[clique]
    base, shared = forest.cell_ptr[up], forest.map_ptr[clique]
    for i in range(forest.cell_ptr[up + 1] - base):
        cells[base + i] *= ratio[forest.maps[shared + i]]


@kernel(void(_FOREST, int64, _BELIEFS, _float64s))
def pass_down(forest: Forest, clique: int, beliefs: Beliefs, ratio: Array) -> None:
    """Bring a clique up to date with its parent (Hugin propagation); ``ratio`` as `pass_up`'s."""
    cells, separators = beliefs.cliques, beliefs.separators
    first, block = forest.sep_ptr[clique], forest.block[clique]
    seps = forest.sep_ptr[clique + 1] - first
    ratio[:seps] = 0.0
    up = forest.parent[clique]
    base, shared = forest.cell_ptr[up], forest.map_ptr[clique]
    for i in range(forest.cell_ptr[up + 1] - base):
        ratio[forest.maps[shared + i]] += cells[base + i]
    for s in range(seps):
        total = ratio[s]
        old = separators[first + s]
        change = total / old if old > 0.0 else 0.0
        separators[first + s] = total
        low = forest.cell_ptr[clique] + s * block
        for i in range(low, low + block):
            cells[i] *= change


@kernel(int64(_FOREST))
def _largest_separator(forest: Forest) -> np.int64:
    largest: np.int64 = np.max(forest.sep_ptr[1:] - forest.sep_ptr[:-1])
    return largest


@kernel(void(_FOREST, _BELIEFS, _SUPPORTS, _float64s, int64, int64, _float64s))
def repeat(
    forest: Forest,
    beliefs: Beliefs,
    supports: Supports,
    targets: Array,
    first: int,
    passes: int,
    scales: Array,
) -> None:
    """Multiply weights on cliques: passes over the measurements from ``first`` on.

    ``beliefs`` are calibrated at the start and used up. Each tree has a focus, the only clique that
    is up to date: an update changes the focus, and the focus moves to the next query's clique along
    the path between them, passing messages as it goes. ``scales`` collects the exponents.
    """
    parent, depth, root, cell_ptr = forest.parent, forest.depth, forest.root, forest.cell_ptr
    weights, start, cells, values = beliefs.cliques, supports.start, supports.cells, supports.values
    focus = root.copy()  # of each root; the entries of other cliques are not used
    total = np.ones(len(parent))
    ratio = np.empty(_largest_separator(forest))
    path = np.empty(len(parent), np.int32)
    for _ in range(passes):
        for j in range(first, len(targets)):
            goal = supports.clique[j]
            tree = root[goal]
            here = focus[tree]
            steps = 0
            while here != goal:
                if depth[here] >= depth[goal]:
                    pass_up(forest, here, beliefs, ratio)
                    here = parent[here]
                else:
                    path[steps] = goal
                    steps += 1
                    goal = parent[goal]
            for step in range(steps - 1, -1, -1):
                pass_down(forest, path[step], beliefs, ratio)
            goal = supports.clique[j]
            focus[tree] = goal
            base = cell_ptr[goal]
            answer = 0.0
            for k in range(start[j], start[j + 1]):
                answer += values[k] * weights[base + cells[k]]
            exponent = (targets[j] - answer / total[tree]) / 2.0
            scales[j] += exponent
            factor = math.exp(exponent)
            change = 0.0
            for k in range(start[j], start[j + 1]):
                i = base + cells[k]
                old = weights[i]
                weights[i] *= factor if values[k] == 1.0 else math.exp(exponent * values[k])
                change += weights[i] - old
            total[tree] += change
            if not 0.5 < total[tree] < 2.0:  # changes keep the rounding errors of a larger total
                weights[base : cell_ptr[goal + 1]] /= weights[base : cell_ptr[goal + 1]].sum()
                total[tree] = 1.0


@kernel(void(_FOREST, _float64s))
def include_any_in_cliques(forest: Forest, tables: Array) -> None:
    """Turn the table of every clique into its inclusive marginals, in place."""
    for clique in range(len(forest.parent)):
        include_any(
            tables[forest.cell_ptr[clique] : forest.cell_ptr[clique + 1]],
            forest.sizes[forest.members[forest.start[clique] : forest.start[clique + 1]]],
        )


@kernel(void(_FOREST, int64, int64, _BELIEFS))
def restrict(forest: Forest, column: int, value: int, beliefs: Beliefs) -> None:
    """Multiply a tree's marginals by the indicator of one value of a column, in place."""
    entry = forest.top[column]
    clique = np.int64(forest.holder[entry])
    base = forest.cell_ptr[clique]
    for i in range(forest.cell_ptr[clique + 1] - base):
        if (i // forest.stride[entry]) % forest.sizes[column] != value:
            beliefs.cliques[base + i] = 0.0
    ratio = np.empty(_largest_separator(forest))
    while forest.parent[clique] >= 0:
        pass_up(forest, clique, beliefs, ratio)
        clique = np.int64(forest.parent[clique])
    for other in range(clique + 1, len(forest.parent)):
        if forest.root[other] == clique:
            pass_down(forest, other, beliefs, ratio)


@kernel(void(_FOREST, _BELIEFS, int64, _int32s, float64[:, ::1]))
def spread_column(
    forest: Forest, beliefs: Beliefs, column: int, source: Array, known: Array
) -> None:
    """Tell every clique of a tree what its cells say about a column elsewhere in the tree.

    ``known[v - 1, s]`` becomes the probability of value v given cell s of a separator, for the one
    direction that leads away from the column. ``source`` of a clique says where its own knowledge
    comes from: `INSIDE`, `FROM_PARENT`, a child's number, or `UNKNOWN`.
    """
    parent, root, start = forest.parent, forest.root, forest.start
    cell_ptr, sep_ptr, block = forest.cell_ptr, forest.sep_ptr, forest.block
    map_ptr, maps = forest.map_ptr, forest.maps
    cells, separators = beliefs.cliques, beliefs.separators
    size = forest.sizes[column]
    source[:] = UNKNOWN
    clique = np.int64(forest.holder[forest.top[column]])
    tree = root[clique]
    inner = np.zeros(len(parent), np.int64)
    for other in range(tree, len(parent)):
        if root[other] == tree:
            source[other] = FROM_PARENT
            for entry in range(start[other], start[other + 1]):
                if forest.members[entry] == column:
                    source[other] = INSIDE
                    inner[other] = forest.stride[entry]
    while parent[clique] >= 0:
        source[parent[clique]] = clique
        low = sep_ptr[clique]
        for v in range(1, size):
            for s in range(sep_ptr[clique + 1] - low):
                total = 0.0
                for r in range(block[clique]):
                    i = s * block[clique] + r
                    belief = cells[cell_ptr[clique] + i]
                    if source[clique] == INSIDE:
                        if (i // inner[clique]) % size == v:
                            total += belief
                    else:
                        below = source[clique]
                        at = sep_ptr[below] + maps[map_ptr[below] + i]
                        total += belief * known[v - 1, at]
                old = separators[low + s]
                known[v - 1, low + s] = total / old if old > 0.0 else 0.0
        clique = np.int64(parent[clique])
    for other in range(tree + 1, len(parent)):
        if root[other] != tree or source[other] != FROM_PARENT:
            continue
        up = parent[other]
        low = sep_ptr[other]
        for v in range(1, size):
            row = known[v - 1]
            for s in range(low, sep_ptr[other + 1]):
                row[s] = 0.0
            for i in range(cell_ptr[up + 1] - cell_ptr[up]):
                share = cells[cell_ptr[up] + i]
                if source[up] == INSIDE:
                    if (i // inner[up]) % size != v:
                        continue
                elif source[up] == FROM_PARENT:
                    share *= row[sep_ptr[up] + i // block[up]]
                else:
                    share *= row[sep_ptr[source[up]] + maps[map_ptr[source[up]] + i]]
                row[low + maps[map_ptr[other] + i]] += share
            for s in range(low, sep_ptr[other + 1]):
                row[s] = row[s] / separators[s] if separators[s] > 0.0 else 0.0


@kernel(void(_FOREST, int64, int64, int64, float64[:, ::1], float64[:, ::1]))
def expand(
    forest: Forest, clique: int, column: int, source: int, known: Array, rows: Array
) -> None:
    """Fill ``rows[v - 1]`` with the chance of a column's value v given each cell of a clique.

    ``source`` of the clique and ``known`` are those of `spread_column`.
    """
    size, inner = forest.sizes[column], np.int64(1)
    for entry in range(forest.start[clique], forest.start[clique + 1]):
        if forest.members[entry] == column:
            inner = forest.stride[entry]
    for i in range(forest.cell_ptr[clique + 1] - forest.cell_ptr[clique]):
        for v in range(1, size):
            if source == INSIDE:
                rows[v - 1, i] = 1.0 if (i // inner) % size == v else 0.0
            elif source == FROM_PARENT:
                cell = i // forest.block[clique]
                rows[v - 1, i] = known[v - 1, forest.sep_ptr[clique] + cell]
            else:
                cell = forest.maps[forest.map_ptr[source] + i]
                rows[v - 1, i] = known[v - 1, forest.sep_ptr[source] + cell]


@kernel(
    void(
        _float64s, float64[:, ::1], _int64s, int32[:, ::1], _int64s, types.boolean[::1], TABLE_POOL
    ),
    fastmath={"reassoc", "contract"},
)  # fmt: skip
def hub_tables(
    belief: Array,
    rows: Array,
    row_of: Array,
    parts: Array,
    sizes: Array,
    counts_any: Array,
    tables: TablePool,
) -> None:
    """Fill the inclusive marginals of parts of two or three columns independent given one clique.

    Entries with index 0 on a column are filled only where ``counts_any`` says that a query reads
    them. Sums may be reordered: the order is fixed by the code, not by the threads.
    """
    pool, offset, stride = tables.pool, tables.offset, tables.stride
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
