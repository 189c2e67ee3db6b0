"""MWEM beside plain NumPy on an explicit histogram, and on as many attributes as the paper's.

The table of 27 binary attributes is the MWEM paper's own, and not in the package: ``--data
mcsherry-adult:PATH`` names it, or its runs are skipped. A time is that of the fastest of three
equal runs of ``dualquery.releases.making.run``; it includes evaluating the queries, but neither
reading the table nor planning.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dualquery.data.domain import Domain
from dualquery.data.schema.items import ItemSchema
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import all_marginals
from dualquery.queries.generate.random import random_conjunctions
from dualquery.queries.parities import Parities
from dualquery.releases.making import run as run_mechanism
from dualquery.rows.dataset import Dataset, load
from dualquery.rows.generated.biased import Biased
from dualquery.rows.packed import Records, RecordsBuilder
from experiments.benchmarks.stored_records import stored_records
from experiments.benchmarks.timing import fastest
from experiments.processes import measure

EPSILON = 1.0
REPETITIONS = 10
_RUNS = 3
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_MEMORY = 1 << 33


def run(console: Console, quick: bool, adult: str | None = None) -> dict[str, Any]:
    """Measure the ratio to NumPy and the runs, and print two tables.

    Parameters
    ----------
    console
        For the tables.
    quick
        Short runs.
    adult
        The file of 27 binary attributes; None skips its runs.
    """
    with one_blas_thread():
        ratio = measure(parities, 12 if quick else 20, 1_000 if quick else 50_000).value
    table = Table("MWEM on an explicit histogram", "seconds", title=ratio.pop("title"))
    table.add_row("NumPy: a sign row a query, one exp a cell an update", f"{ratio['numpy_s']:.3f}")
    table.add_row("Histogram", f"{ratio['histogram_s']:.3f}")
    table.add_row("ratio", f"{ratio['ratio']:.1f}")
    console.print(table)

    lines, skipped = [], []
    one_run(Case("warm-up", random_table(4, 50), all_marginals(Domain.binary(4), 2), 2))
    cases = attribute_cases(quick)
    if adult is not None:
        cases = adult_cases(adult, quick) + cases
    else:
        skipped.append("the runs on 27 and 77 attributes need --data mcsherry-adult:PATH")
    for case in cases:
        lines.append(one_run(case))
    table = Table(
        "table", "queries", "T", "seconds", "max error", "mean error", title="MWEM, epsilon 1"
    )
    for line in lines:
        table.add_row(
            line["name"],
            f"{line['queries']:,}",
            str(line["iterations"]),
            f"{line['seconds']:.2f}",
            f"{line['max_error']:.4f}",
            f"{line['mean_error']:.5f}",
        )
    console.print(table)
    triples = measure(chain, 100 if quick else 1_000)
    links = {"attributes": triples.value["attributes"], "seconds": triples.value["seconds"]}
    console.print(
        f"chain of {links['attributes']:,} attributes, each consecutive triple measured once, in "
        f"random order: {links['seconds']:.2f} s, peak {triples.peak_mib or float('nan'):,.0f} MiB"
    )
    for reason in skipped:
        console.print(f"skipped: {reason}")
    return {
        "parities": ratio,
        "runs": lines,
        "chain": {**links, "peak_mib": triples.peak_mib},
        "skipped": skipped,
    }


@dataclass(frozen=True, eq=False)
class Case:
    """One run."""

    name: str
    data: Dataset[Records]
    workload: Workload
    iterations: int = 10


def one_run(case: Case) -> dict[str, Any]:
    """Run MWEM with a seed; return its time and, the data being public, its errors."""
    from mwem import Mwem

    mechanism = Mwem(iterations=case.iterations, repetitions=REPETITIONS)
    task = Task(case.workload, case.data.n)
    plan = mechanism.plan(task, Budget(EPSILON, 0.0))
    seconds, outcome = fastest(
        lambda: run_mechanism(case.data, task, mechanism, plan, seed=1, threads=2), _RUNS
    )
    errors = np.abs(outcome.answers - case.workload.counts(case.data.records, 2) / case.data.n)
    return {
        "name": case.name,
        "queries": len(case.workload),
        "iterations": case.iterations,
        "representation": plan.parameters["representation"],
        "seconds": seconds,
        "max_error": float(errors.max()),
        "mean_error": float(errors.mean()),
    }


def adult_cases(path: str, quick: bool) -> list[Case]:
    """Return runs on the paper's table, and with 50 independent attributes beside its own."""
    adult = load(f"bitstring:{path}")
    marginals = all_marginals(adult.schema.domain, 3)
    cases = [
        Case("27 attributes, all 3-way marginals", adult, marginals, iterations)
        for iterations in ((10,) if quick else (10, 20, 30, 40, 50))
    ]
    wide = with_coins(adult.records, 50)
    domain = wide.schema.domain
    original = all_marginals(domain, 3, columns=range(27))
    cases.append(Case("77 attributes, the same marginals", wide, original))
    if not quick:
        cases.append(Case("77 attributes, all 3-way marginals", wide, all_marginals(domain, 3)))
    return cases


def attribute_cases(quick: bool) -> list[Case]:
    """Return runs on many independent attributes."""
    rows = 1_000 if quick else 10_000
    thousand = random_table(100 if quick else 1_000, rows)
    domain = thousand.schema.domain
    queries = 1_000 if quick else 100_000
    bits = domain.bits
    cases = [
        Case(f"{bits:,} attributes, all 2-way marginals", thousand, all_marginals(domain, 2)),
        Case(f"{bits:,} attributes, 3-way", thousand, random_conjunctions(domain, queries, 3)),
    ]
    if not quick:
        many = random_table(10_000, rows)
        workload = random_conjunctions(many.schema.domain, queries, 3)
        cases.append(Case("10,000 attributes, 3-way", many, workload))
    return cases


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
        tree.update(query, target)
    answers = tree.answers()
    seconds = time.perf_counter() - began
    return {"attributes": attributes, "seconds": seconds, "mean_answer": float(answers.mean())}


def random_table(bits: int, rows: int) -> Dataset[Records]:
    """Return independent biased bits."""
    schema = ItemSchema.numbered(bits, "bits")
    return Dataset(stored_records(Biased(rows, bits, seed=1)), schema, "generated")


def with_coins(records: Records, bits: int) -> Dataset[Records]:
    """Return records with fair coins beside their own bits."""
    generator = np.random.default_rng(1)
    rows = records.dense_rows(0, records.n)
    coins = generator.integers(0, 2, (records.n, bits), dtype=np.uint8)
    builder = RecordsBuilder(records.bits + bits)
    builder.append_dense(np.hstack((rows, coins)))
    schema = ItemSchema.numbered(records.bits + bits, "bits")
    return Dataset(builder.build(), schema, "27 attributes and coins")


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
    truth = queries.counts(random_table(bits, rows).records, 1) / rows
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
        distribution.update(query, truth[query] + off)
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
