"""The noise of `matrix`'s unbiased answers beside the least that the matrix mechanism can have.

The SVD bound (`mwem.svd_bound`) holds for every strategy. On whole marginals it is the closed form
of ResidualPlanner (arXiv 2305.08175), which add or remove attains. Here it is computed without a
matrix over all records: the nuclear norm is the trace of a root, estimated by Lanczos quadrature
(Ubaru, Chen and Saad 2017), and queries' inner products are sums over blocks of contrasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from dualquery.data import load_schema
from dualquery.data.cells import axis_sizes
from dualquery.mechanisms.matrix.blocks import in_contrasts
from dualquery.mechanisms.matrix.expansion import Expansion
from dualquery.mechanisms.matrix.measurement import FeatureMeasurement, aim_of
from dualquery.mechanisms.matrix.scales import plan_strategy
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import all_marginals, random_marginals
from dualquery.queries.generate.random import random_conjunctions
from dualquery.rows.repeats import first_occurrences

Float64 = NDArray[np.float64]

_PROBES, _STEPS = 4, 40
"""Random vectors, and steps of Lanczos' method from each: the estimate is good to about 1%."""


def run(console: Console, quick: bool) -> dict[str, Any]:
    """Compare on Adult, and print a table."""
    domain = load_schema("adult").domain
    queries = 2_000 if quick else 100_000
    conjunctions = random_conjunctions(domain, queries)
    workloads = {
        "all 2-way marginals": all_marginals(domain, 2),
        "64 3-way marginals": random_marginals(domain, 4 if quick else 64, 3, 30_162),
        f"{queries:,} 3-way conjunctions": conjunctions,
    }
    table = Table("Adult", "neighbours", "noise", "least", "ratio", title="root mean square noise")
    found = []
    for name, workload in workloads.items():
        least = least_noise(workload)
        for neighbours in RELATIONS:
            own = noise_of(workload, neighbours)
            bound = least * (2**0.5 if neighbours.replaces else 1.0)
            cells = f"{own:.2f}", f"{bound:.2f}", f"{own / bound:.3f}"
            table.add_row(name, neighbours.value, *cells)
            found.append({"workload": name, "neighbours": neighbours.value, "ratio": own / bound})
    console.print(table)
    return {"noise": found}


def noise_of(workload: Workload, neighbours: Neighbours) -> float:
    """Return the root mean square noise of the answers that features give, at sensitivity 1."""
    expansion = Expansion.of(workload).in_blocks()
    strategy = plan_strategy(expansion, neighbours, aim_of(workload, fitted=True))
    measured = FeatureMeasurement(expansion, strategy)
    return measured.sensitivity * measured.mean_deviation


def least_noise(workload: Workload) -> float:
    """Return the least root mean square noise where a record is added or removed, n known apart.

    Where one is replaced it is the root of 2 times as large, a little more on few records.
    """
    inner = InnerProducts.of(workload)
    generator = np.random.default_rng(0)
    m = len(workload)
    roots = [_trace_of_root(inner, generator.choice([-1.0, 1.0], m)) for _ in range(_PROBES)]
    return float(np.mean(roots) / np.sqrt(m))


def _trace_of_root(inner: InnerProducts, start: Float64) -> float:
    """Estimate the trace of the root of the queries' inner products (Lanczos, from one vector)."""
    basis = [start / np.linalg.norm(start)]
    diagonal: list[float] = []
    beside: list[float] = []
    while len(diagonal) < _STEPS:
        vector = inner @ basis[-1]
        diagonal.append(float(vector @ basis[-1]))
        held = np.stack(basis)
        for _ in range(2):
            vector -= held.T @ (held @ vector)
        beside.append(float(np.linalg.norm(vector)))
        if beside[-1] < 1e-10 * max(diagonal):
            break
        basis.append(vector / beside[-1])
    matrix = np.diag(diagonal) + np.diag(beside[: len(diagonal) - 1], 1)
    values, vectors = np.linalg.eigh(matrix, UPLO="U")
    return float(start @ start * (vectors[0] ** 2 @ np.sqrt(np.maximum(values, 0.0))))


@dataclass(frozen=True, eq=False)
class InnerProducts:
    """Means over all records of the products of every two queries, each less its own mean.

    Parameters
    ----------
    terms
        Sparse float64, shape ``(m, cells)``: the queries as sums of contrasts of all cells.
    shapes
        First cell and shape of each block; a binary column has the one contrast that is its sign.
    """

    terms: Any
    shapes: list[tuple[int, tuple[int, ...]]]

    @staticmethod
    def of(workload: Workload) -> InnerProducts:
        """Multiply out the queries, all in contrasts."""
        expansion, domain = Expansion.of(workload), workload.domain
        bits = expansion.features.bits
        owner, rows, factor = in_contrasts(bits, np.ones(len(bits), np.bool_), domain)
        held = rows[:, 0] >= 0
        owner, rows, factor = owner[held], rows[held], factor[held]
        columns = np.where(rows >= 0, domain.column_of_bit[rows], np.int32(-1))
        sizes = np.where(columns >= 0, axis_sizes(domain)[columns], 1)
        sizes = np.where(sizes > 2, sizes, 1)
        within = np.where(sizes > 1, rows - domain.offsets[columns], 0)
        cell = np.zeros(len(rows), np.int64)
        for size, value in zip(sizes.T, within.T, strict=True):
            cell = cell * size + value
        leaders, block = np.unique(first_occurrences(columns, domain.columns), return_inverse=True)
        cells = sizes[leaders].prod(axis=1)
        starts = np.cumsum(cells) - cells
        shapes = [
            (start, tuple(size for size in shape if size > 1))
            for start, shape in zip(starts.tolist(), sizes[leaders].tolist(), strict=True)
        ]
        of_query = csr_array(
            (expansion.coefficient, (expansion.query, expansion.feature)),
            shape=(len(workload), len(bits)),
        )
        of_feature = csr_array(
            (factor, (owner, starts[block.ravel()] + cell)), shape=(len(bits), int(cells.sum()))
        )
        return InnerProducts(csr_array(of_query @ of_feature), shapes)

    def __matmul__(self, vector: Float64) -> Float64:
        """Multiply with a vector over the queries: float64, shape ``(m,)``."""
        cells = self.terms.T @ vector
        for start, shape in self.shapes:
            block = cells[start : start + int(np.prod(shape))].reshape(shape)
            for axis, size in enumerate(shape):
                # The mean of two contrasts' product is n - 1 if they are the same, else -1.
                block -= block.mean(axis=axis, keepdims=True)
                block *= size
        product: Float64 = self.terms @ cells
        return product
