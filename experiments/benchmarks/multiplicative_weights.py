"""MWEM beside plain NumPy on an explicit histogram, and a long chain on a junction tree."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.parities import Parities
from dualquery.rows.generated.biased import Biased
from experiments.benchmarks.evaluation import stored_records
from experiments.harness.processes import measure

REPETITIONS = 10
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_MEMORY = 1 << 33


def run(console: Console, quick: bool) -> dict[str, Any]:
    """Measure the ratio to NumPy and the chain, and print what came of them."""
    with one_blas_thread():
        ratio = measure(parities, 12 if quick else 20, 1_000 if quick else 50_000).value
    table = Table("MWEM on an explicit histogram", "seconds", title=ratio.pop("title"))
    table.add_row("NumPy: a sign row a query, one exp a cell an update", f"{ratio['numpy_s']:.3f}")
    table.add_row("Histogram", f"{ratio['histogram_s']:.3f}")
    table.add_row("ratio", f"{ratio['ratio']:.1f}")
    console.print(table)
    triples = measure(chain, 100 if quick else 1_000)
    links = {"attributes": triples.value["attributes"], "seconds": triples.value["seconds"]}
    console.print(
        f"chain of {links['attributes']:,} attributes, each consecutive triple measured once, in "
        f"random order: {links['seconds']:.2f} s, peak {triples.peak_mib or float('nan'):,.0f} MiB"
    )
    return {"parities": ratio, "chain": {**links, "peak_mib": triples.peak_mib}}


def chain(attributes: int) -> dict[str, Any]:
    """Enter a measurement of every three consecutive attributes, in random order."""
    from mwem.representations import JunctionTree

    first = 2 * np.arange(attributes - 2, dtype=np.int32)
    literals = np.stack((first, first + 2, first + 4), axis=1)
    queries = Workload(literals, Domain.binary(attributes)).products()
    tree = JunctionTree(queries, 1 << 30)
    generator = np.random.default_rng(1)
    order, targets = generator.permutation(len(first)), generator.uniform(0, 0.4, len(first))
    began = time.perf_counter()
    for query, target in zip(order.tolist(), targets.tolist(), strict=True):
        tree.update(np.array([query]), np.array([target]))
    answers = tree.answers()
    seconds = time.perf_counter() - began
    return {"attributes": attributes, "seconds": seconds, "mean_answer": float(answers.mean())}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let processes that start in the meantime use one thread in linear algebra.

    Products of one row are too short for more: on a busy machine threads that wait for each other
    made NumPy ten times slower, which says nothing about it.
    """
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(_BLAS_THREADS, "1"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def parities(bits: int, rows: int, iterations: int = 10) -> dict[str, Any]:
    """Time the same run twice: `Histogram`, and NumPy with all sign rows in memory.

    Both run on one thread and get the same noise, so both select the same queries and end with the
    same distribution.
    """
    from mwem.representations import Histogram

    queries = Parities(bits, 3)
    truth = queries.counts(stored_records(Biased(rows, bits, seed=1)), 1) / rows
    generator = np.random.default_rng(1)
    gumbel = generator.gumbel(size=(iterations, len(truth))) / rows
    noise = generator.laplace(scale=1.0 / rows, size=iterations)

    products = queries.products()
    small = Parities(4, 3).products()
    few = (truth[: len(small)], gumbel[:1, : len(small)], noise[:1])
    _with_histogram(Histogram(small, _MEMORY), *few)  # kernels are loaded
    began = time.perf_counter()
    ours = _with_histogram(Histogram(products, _MEMORY), truth, gumbel, noise)
    histogram_s = time.perf_counter() - began

    signs = sign_rows(queries)
    began = time.perf_counter()
    theirs = _with_numpy(signs, truth, gumbel, noise)
    numpy_s = time.perf_counter() - began
    if np.abs(ours - theirs).max() > 1e-9:
        raise RuntimeError("the two runs end with different answers")
    return {
        "title": f"{bits} attributes, {len(truth):,} parities of up to 3, T = {iterations}, "
        f"{REPETITIONS} repetitions",
        "bits": bits,
        "queries": len(truth),
        "histogram_s": histogram_s,
        "numpy_s": numpy_s,
        "ratio": numpy_s / histogram_s,
    }


def _with_histogram(
    distribution: Any,
    truth: NDArray[np.float64],
    gumbel: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> NDArray[np.float64]:
    answers: NDArray[np.float64] = distribution.answers()
    for more, off in zip(gumbel, noise, strict=True):
        query = int(np.argmax(np.abs(truth - answers) + more))
        distribution.update(np.array([query]), truth[[query]] + off)
        distribution.repeat(REPETITIONS - 1)
        answers = distribution.answers()
    return answers


def _with_numpy(
    signs: NDArray[np.int8],
    truth: NDArray[np.float64],
    gumbel: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> NDArray[np.float64]:
    shares = np.full(signs.shape[1], 1.0 / signs.shape[1])
    answers = np.array([row @ shares for row in signs])
    measured: list[tuple[int, float]] = []
    for more, off in zip(gumbel, noise, strict=True):
        query = int(np.argmax(np.abs(truth - answers) + more))
        measured.append((query, truth[query] + off))
        for earlier, target in measured[-1:] + measured * (REPETITIONS - 1):
            row = signs[earlier]
            shares *= np.exp(row * ((target - row @ shares) / 2.0))
            shares /= shares.sum()
        answers = np.array([row @ shares for row in signs])
    return answers


def sign_rows(queries: Parities) -> NDArray[np.int8]:
    """Return every parity on every cell: int8, shape ``(m, 2^d)``; the first bit is the highest."""
    bits = queries.domain.bits
    cells = np.arange(1 << bits)
    rows = np.empty((len(queries), len(cells)), np.int8)
    for row, members in zip(rows, queries.sets, strict=True):
        mask = int(sum(1 << (bits - 1 - int(bit)) for bit in members if bit >= 0))
        row[:] = 1 - 2 * (np.bitwise_count(cells & mask).astype(np.int8) & 1)
    return rows
