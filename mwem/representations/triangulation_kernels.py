"""Numba kernels of graphs as bit sets: elimination orders, and the cliques that they make.

Row u of a graph is a set of nodes as 64-bit words: node x is bit ``x % 64`` of word ``x // 64``.
"""

import numpy as np

from dualquery.runtime.array_types import Array, kernel, popcount

MIN_FILL = 0
"""Eliminate the node whose neighbours lack the fewest edges among them."""
MIN_WEIGHT = 1
"""Eliminate the node whose clique has the fewest cells."""


@kernel("boolean(uint64[::1], int64)")
def has(words: Array, node: int) -> np.bool_:
    """Return whether a set holds a node."""
    held: np.bool_ = (words[node >> 6] >> np.uint64(node & 63)) & np.uint64(1) != np.uint64(0)
    return held


@kernel("int64(uint64)")
def lowest(word: np.uint64) -> np.int64:
    """Return the position of the lowest 1 of a word that is not 0."""
    return np.int64(popcount((word & (~word + np.uint64(1))) - np.uint64(1)))


@kernel("int64(uint64[::1], int32[::1])")
def list_nodes(words: Array, nodes: Array) -> int:
    """List the nodes of a set, increasing, at the start of ``nodes``; return how many."""
    count = 0
    for place in range(len(words)):
        word = words[place]
        while word != np.uint64(0):
            nodes[count] = 64 * place + lowest(word)
            count += 1
            word &= word - np.uint64(1)
    return count


@kernel("int64(uint64[::1])")
def size_of(words: Array) -> np.int64:
    """Return the number of nodes of a set."""
    count = np.uint64(0)
    for word in words:
        count += popcount(word)
    return np.int64(count)


@kernel("void(uint64[:, ::1], int32[:, ::1])")
def connect(graph: Array, scopes: Array) -> None:
    """Join all nodes of each scope (a row padded with -1), in place."""
    for scope in range(len(scopes)):
        for a in scopes[scope]:
            for b in scopes[scope]:
                if a >= 0 and b >= 0 and a != b:
                    graph[a, b >> 6] |= np.uint64(1) << np.uint64(b & 63)


@kernel("float64(uint64[:, ::1], float64[::1], int64, int64, int32[::1])")
def _score(graph: Array, log_size: Array, rule: int, node: int, near: Array) -> float:
    """Return how bad it is to eliminate a node now; ``near`` is room for a list of nodes."""
    weight = log_size[node]
    missing = np.int64(0)
    neighbours = graph[node]
    for place in range(list_nodes(neighbours, near)):
        other = near[place]
        weight += log_size[other]
        if rule == MIN_FILL:
            for word in range(graph.shape[1]):
                missing += np.int64(popcount(neighbours[word] & ~graph[other, word]))
            missing -= 1  # a node is no neighbour of itself
    score: float = weight if rule == MIN_WEIGHT else missing / 2 + weight / 1024
    return score


@kernel("float64(uint64[:, ::1], float64[::1], float64[::1], int64, int32[::1], uint64[:, ::1])")
def eliminate(
    graph: Array, log_size: Array, jitter: Array, rule: int, order: Array, cliques: Array
) -> float:
    """Eliminate all nodes greedily; ``graph`` is used up.

    Fills the order and, for each step, the node with its neighbours at that time; returns the
    number of cells of all these sets. ``log_size`` is to the base 2; ``jitter`` is added to the
    scores.
    """
    nodes = len(graph)
    alive = np.ones(nodes, np.bool_)
    score = np.empty(nodes)
    dirty = np.zeros(graph.shape[1], np.uint64)
    near = np.empty(nodes, np.int32)
    room = np.empty(nodes, np.int32)
    for node in range(nodes):
        score[node] = _score(graph, log_size, rule, node, room) + jitter[node]
    cost = 0.0
    for step in range(nodes):
        best = -1
        for node in range(nodes):
            if alive[node] and (best < 0 or score[node] < score[best]):
                best = node
        alive[best] = False
        order[step] = best
        neighbours = graph[best].copy()
        cliques[step] = neighbours
        cliques[step, best >> 6] |= np.uint64(1) << np.uint64(best & 63)
        dirty[:] = neighbours
        weight = log_size[best]
        for place in range(list_nodes(neighbours, near)):
            other = near[place]
            weight += log_size[other]
            for word in range(graph.shape[1]):
                graph[other, word] |= neighbours[word]
            graph[other, other >> 6] &= ~(np.uint64(1) << np.uint64(other & 63))
            graph[other, best >> 6] &= ~(np.uint64(1) << np.uint64(best & 63))
            if rule == MIN_FILL:
                for word in range(graph.shape[1]):
                    dirty[word] |= graph[other, word]
        for place in range(list_nodes(dirty, near)):
            other = near[place]
            if alive[other]:
                score[other] = _score(graph, log_size, rule, other, room) + jitter[other]
        cost += 2.0**weight
    return cost


@kernel("void(int32[::1], uint64[:, ::1], int32[::1], int32[::1], int32[::1])")
def join(order: Array, cliques: Array, keeper: Array, above: Array, last: Array) -> None:
    """Make a forest of the maximal cliques of an elimination.

    Fills, by step, the step whose clique holds this one's (``keeper``: itself if maximal), and for
    the maximal ones their parent (``above``, -1 for a root) and the last step that they keep.
    """
    steps = len(order)
    position = np.empty(steps, np.int32)
    for step in range(steps):
        position[order[step]] = step
        keeper[step] = step
        above[step] = -1
    parent = np.full(steps, -1, np.int32)
    near = np.empty(steps, np.int32)
    for step in range(steps):
        for place in range(list_nodes(cliques[step], near)):
            later = position[near[place]]
            if later > step and (parent[step] < 0 or later < parent[step]):
                parent[step] = later
        up = parent[step]
        # The rest of this clique lies in the parent's: if as large, it is the parent's clique.
        if up >= 0 and keeper[up] == up and size_of(cliques[step]) - 1 == size_of(cliques[up]):
            keeper[up] = step
    for step in range(steps):
        if keeper[step] != step:
            keeper[step] = keeper[keeper[step]]
    for step in range(steps):
        last[keeper[step]] = step
        up = parent[step]
        if up >= 0 and keeper[up] != keeper[step]:
            above[keeper[step]] = keeper[up]


@kernel(
    "void(uint64[:, ::1], int32[::1], int64[::1], int64[::1], int32[::1], int64[::1], int64[::1])"
)
def lay_out(
    cliques: Array,
    parent: Array,
    sizes: Array,
    start: Array,
    members: Array,
    stride: Array,
    block: Array,
) -> None:
    """List the columns of each clique, those shared with its parent first, with C-order strides.

    ``block`` gets the number of cells for one value of the shared columns.
    """
    at = 0
    near = np.empty(len(sizes), np.int32)
    for clique in range(len(cliques)):
        start[clique] = at
        shared = at
        count = list_nodes(cliques[clique], near)
        for turn in range(2):
            for node in near[:count]:
                common = parent[clique] >= 0 and has(cliques[parent[clique]], node)
                if common == (turn == 0):
                    members[at] = node
                    at += 1
            if turn == 0:
                shared = at
        step = np.int64(1)
        for place in range(at - 1, start[clique] - 1, -1):
            stride[place] = step
            step *= sizes[members[place]]
            if place == shared:
                block[clique] = step
        if shared == at:
            block[clique] = 1
    start[len(cliques)] = at
