"""Problems of solvers."""

import lzma
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from solvers.formats import read_instance, write_instance
from solvers.formats.clauses import encode
from solvers.formats.lp import lp_text, mps_text
from solvers.formats.opb import pseudo_boolean
from solvers.formats.program import named_program
from solvers.formats.wcnf import wcnf_text
from tests.hostile.mutation import spoil_text
from tests.hostile.parser import Parser, zipped_parser
from tests.solvers.instances import groups_of, problem, row


def _problem_examples(suffix: str) -> list[bytes]:
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
    path = folder / f"problem{ending}"
    path.write_bytes(data)
    instance = read_instance(path)
    problem = instance.problem
    assert np.isfinite(problem.constant)
    record = np.random.default_rng(0).integers(0, 2, problem.attributes).astype(np.uint8)
    for group in range(len(problem.groups)):
        members = problem.groups[group]
        record[members] = 0
        record[members[0]] = 1
    values = instance.values(record)
    assert values.shape == (len(instance.variables),)
    assert np.all(values <= 1)
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


def _problems() -> Iterator[tuple[str, Parser]]:
    """Yield the readers of problems, each plain and packed."""
    for suffix in (".wcnf", ".lp", ".mps", ".opb"):
        examples = partial(_problem_examples, suffix)
        yield suffix[1:], Parser(examples, spoil_text, partial(_read_problem, suffix))
    packed = partial(_read_problem, ".wcnf.xz")
    yield "wcnf.xz", zipped_parser(partial(_problem_examples, ".wcnf"), spoil_text, packed, lzma)


PROBLEMS: dict[str, Parser] = dict(_problems())
