"""Problems of solvers, and what other solvers answer."""

from __future__ import annotations

import gzip
import io
import itertools
import lzma
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tests.hostile.mutation import TEXT, spoil_words
from tests.hostile.parser import Parser, texts, zipped_parser


def _problem_examples(suffix: str) -> list[bytes]:
    from solvers.formats.clauses import encode
    from solvers.formats.lp import lp_text
    from solvers.formats.mps import mps_text
    from solvers.formats.opb import pseudo_boolean
    from solvers.formats.program import named_program
    from solvers.formats.wcnf import wcnf_text
    from tests.solvers.instances import groups_of, problem, row

    own = problem(
        5,
        {(0, 1): 2.0, (1, ~2, 3): -1.0, (4,): 1.5},
        groups_of([0, 2]),
        (row([1, 3, 4], [1.0, 2.0, 3.0], 1.0, 4.0),),
    )
    if suffix == ".wcnf":
        return [
            wcnf_text(encode(own)).encode(),
            wcnf_text(encode(own), header=True).encode(),
            b"p wcnf 4 5 10\n10 1 2 0\n10 -1 -2 0\n3 3 -4 0\n2 -3 0\n1 4 0\n",
            b"h 1 2 3 0\nh -1 -2 0\nh -1 -3 0\nh -2 -3 0\nh -4 1 0\nh -4 2 0\n5 4 0\n2 -4 -3 0\n",
        ]
    if suffix == ".lp":
        return [
            lp_text(named_program(own)).encode(),
            b"min\n obj: 2 x - 3 y + z\nst\n a: x + y <= 1\n b: x + y + z = 1\n c: z - x >= 0\n"
            b"bounds\n 0 <= z <= 1\nbinary\n x y\ngeneral\n z\nend\n",
        ]
    if suffix == ".opb":
        return [
            pseudo_boolean(own).text().encode(),
            b"* #variable= 4 #constraint= 3\nmin: +3 x1 -2 ~x2 +4 x1 ~x3 ;\n"
            b"+1 x1 +2 ~x2 >= 2 ;\n+1 x2 +1 x3 +1 x4 = 1 ;\n-1 x1 -1 x4 >= -1 ;\n",
        ]
    return [
        mps_text(named_program(own)).encode(),
        b"NAME t\nROWS\n N o\n L r\n G s\n E t\nCOLUMNS\n M1 'MARKER' 'INTORG'\n x o 1 r 1\n"
        b" x s 2\n"
        b" y o -2 r 1\n y t 1\n M2 'MARKER' 'INTEND'\nRHS\n RHS r 1 s 0\nRANGES\n R r 1\n"
        b"BOUNDS\n BV B x\n UP B y 1\nENDATA\n",
    ]


def _read_problem(ending: str, data: bytes, folder: Path) -> None:
    from solvers.formats import read_instance, write_instance
    from solvers.formats.files import read_clauses

    path = folder / f"problem{ending}"
    path.write_bytes(data)
    instance = read_instance(path)
    problem = instance.problem
    assert np.isfinite(problem.constant)
    chance = np.random.default_rng(0)
    record = chance.integers(0, 2, problem.attributes).astype(np.uint8)
    for group in range(len(problem.groups)):
        members = problem.groups[group]
        record[members] = 0
        record[members[0]] = 1
    values = instance.values(record)
    assert values.shape == (len(instance.variables),)
    assert np.all(values <= 1)
    if ending.startswith(".wcnf"):
        read_clauses(path)
    if problem.attributes > 2000 or len(problem.terms) > 2000:
        return
    assert np.isfinite(problem.value(record))
    again = folder / "again.lp"
    write_instance(again, problem)
    returned = read_instance(again).problem
    if returned.attributes == problem.attributes:
        difference = abs(returned.value(record) - problem.value(record))
        assert difference <= 1e-6 * (1 + np.abs(problem.weights).sum() + abs(problem.constant))
        assert returned.feasible(record) == problem.feasible(record)


def _read_answer(data: bytes, folder: Path) -> None:
    from solvers.backends.commanded import _AnswerLog
    from solvers.limits import SearchLimits

    del folder
    log = _AnswerLog(6, SearchLimits(0.0, 1.0, 1, 0))
    for line in io.TextIOWrapper(io.BytesIO(data), "utf-8", errors="replace"):
        for start in range(0, len(line), 200):
            log.take(line[start : start + 200])
    record = log.record(4)
    if record is not None:
        assert record.shape == (4,)
        assert np.all(record <= 1)


_NETWORK = b"""Initial lower and upper bounds: [0, 20] 100.000%
New solution: 7 (0 backtracks, 3 nodes, depth 4, 0.000 seconds)
 0 2 1 0
Optimality gap: [3, 7] 57.14 % (2 backtracks, 6 nodes)
New solution: 5 (1 backtracks, 5 nodes, depth 4, 0.001 seconds)
 1 1 0 0
Optimum: 5 in 1 backtracks and 5 nodes
"""


def _read_search(data: bytes, folder: Path) -> None:
    """Read what toulbar2 prints about a network of four variables."""
    from solvers.backends.toulbar2 import _SearchLog
    from solvers.formats.wcsp import cost_network
    from solvers.limits import SearchLimits
    from tests.solvers.instances import groups_of, problem

    del folder
    own = problem(6, {(0, 1): 2.0, (1, ~2, 3): -1.0, (5,): 1.5}, groups_of([0, 2, 4]))
    network = cost_network(own)
    assert len(network.sizes) == 4
    log = _SearchLog(network, SearchLimits(0.0, 1.0, 1, 0))
    for line in io.TextIOWrapper(io.BytesIO(data), "utf-8", errors="replace"):
        log.take(line)
    assert np.isfinite(network.best + (network.error - log.least) / network.scale)
    if log.record is not None:
        assert log.record.shape == (6,)
        assert log.record[[0, 2, 4]].sum() <= 1
        assert 0 <= log.cost < 10**18


def _read_constraint(data: bytes, folder: Path) -> None:
    """Make a linear constraint of bytes; its clauses must say the same of every record."""
    from solvers.constraints import LinearConstraint
    from solvers.formats.decision_diagram import linear_clauses

    del folder
    numbers = []
    for word in data.decode("latin-1").split():
        try:
            numbers.append(float(word))
        except ValueError:
            continue
    coefficients = np.array(numbers[2:8])
    width = len(coefficients)
    lower, upper = numbers[:2] if len(numbers) >= 2 else (-np.inf, np.inf)
    constraint = LinearConstraint(np.arange(width, dtype=np.int32), coefficients, lower, upper)
    fresh = itertools.count(width + 1)
    clauses = linear_clauses(constraint, list(range(1, width + 1)), lambda: next(fresh))
    for record in itertools.product((0, 1), repeat=width):
        true = {n + 1 if bit else -n - 1 for n, bit in enumerate(record)}
        holds = constraint.holds(np.array(record, np.uint8))
        if abs(constraint.activity(np.array(record, np.uint8))) < 1e15:
            assert _satisfiable(clauses, true) == holds


def _satisfiable(clauses: list[list[int]], true: set[int]) -> bool:
    """Return whether clauses can hold: by unit propagation, then by trying both values."""
    true = set(true)
    while True:
        left = [[x for x in c if -x not in true] for c in clauses if true.isdisjoint(c)]
        if not all(left):
            return False
        units = {c[0] for c in left if len(c) == 1}
        if not units:
            break
        true |= units
        if any(-unit in true for unit in units):
            return False
    if not left:
        return True
    choice = left[0][0]
    return _satisfiable(left, true | {choice}) or _satisfiable(left, true | {-choice})


def _problems() -> Iterator[tuple[str, Parser]]:
    """Yield the readers of problems, each plain, gzipped and as xz."""
    for suffix in (".wcnf", ".lp", ".mps", ".opb"):
        examples = partial(_problem_examples, suffix)
        yield suffix[1:], Parser(examples, TEXT, partial(_read_problem, suffix))
        for ending, packing in ((".gz", gzip), (".xz", lzma)):
            read = partial(_read_problem, suffix + ending)
            yield f"{suffix[1:]}{ending}", zipped_parser(examples, TEXT, read, packing)


PROBLEMS: dict[str, Parser] = {
    **dict(_problems()),
    "maxsat answer": Parser(
        texts("c hi\no 5\nv 1 -2 3 -4 5 6 0\ns OPTIMUM FOUND\n", "o 3\nv 010101\ns SATISFIABLE\n"),
        TEXT,
        _read_answer,
    ),
    "toulbar2 output": Parser(lambda: [_NETWORK], TEXT, _read_search),
    "linear constraint": Parser(
        texts("-1 3 1 2 -1 1 1 1", "0.5 inf 1 0.25 -3", "-inf 2 1 1 1 1"),
        spoil_words,
        _read_constraint,
    ),
}
