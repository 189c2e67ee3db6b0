"""Solvers of a third party that misbehave: each by the text after the colon of its name."""

import math
import os
import signal
import time
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np

from solvers import BestResponse, InfeasibleProblemError, Solution, Status, get_solver


class Faulty:
    """Answers as local search does, but for its fault, which may need a file to be seen once."""

    name = "faulty"
    capabilities = frozenset()
    points = EntryPoints([EntryPoint("faulty", "tests.solvers.faulty:Faulty", "dualquery.solvers")])

    def __init__(self, argument: str = "") -> None:
        self.fault, _, self.once = argument.partition("@")
        if self.fault == "unloadable":
            raise ImportError("no licence")

    def solve(self, problem: BestResponse, **options) -> Solution:
        if self.once:
            if Path(self.once).exists():
                self.fault = ""
            Path(self.once).touch()
        if self.fault == "none":
            return None
        if self.fault == "unsatisfiable":
            raise InfeasibleProblemError("no record satisfies the constraints 0 and 1")
        if self.fault == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif self.fault == "exit":
            os.closerange(1, 256)  # its pipe may end before a process does
            time.sleep(0.1)
            os._exit(3)
        elif self.fault == "raise":
            raise RuntimeError("broken")
        elif self.fault == "hang":
            time.sleep(3600)
        elif self.fault == "print":
            print("noise on standard output " * 1000, flush=True)
            os.write(1, b"\x08\x00\x00\x00\x00\x00\x00\x00")
        honest = get_solver("local-search").solve(problem, **options)
        return replace(honest, **lies(self.fault, honest, problem))


def lies(fault: str, honest: Solution, problem: BestResponse) -> dict[str, object]:
    ones = np.ones(problem.attributes, np.uint8)
    return {
        "objective": {"objective": honest.objective + 1000.0},
        "low bound": {"bound": honest.objective - 5.0},
        "nan bound": {"bound": math.nan},
        "nan objective": {"objective": math.nan},
        "text bound": {"bound": "large"},
        "infeasible": {"record": ones, "status": Status.OPTIMAL},
        "short": {"record": ones[:-1]},
        "matrix": {"record": np.zeros((2, problem.attributes), np.uint8)},
        "halves": {"record": np.full(problem.attributes, 0.5)},
        "nothing": {"record": None},
        "texts": {"record": ones.astype(str)},
        "seconds": {"seconds": math.inf, "incumbent_seconds": "soon"},
        "status": {"status": "excellent"},
    }.get(fault, {})
