"""Any MaxSAT solver that reads WCNF and prints by the rules of the MaxSAT Evaluations."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from solvers.backends.commanded import Commanded, Encoding
from solvers.kernel_solver import KernelSolver
from solvers.problem import BestResponse


class MaxSat(Commanded):
    """An external MaxSAT solver.

    Parameters
    ----------
    argument
        The command. ``{wcnf}`` in it stands for a file in the format of 2022, ``{old}`` for one
        with the older header; with neither, the former's name is added at the end. For example
        ``maxsat:uwrmaxsat -m`` or ``maxsat:clasp {old}``.

    Raises
    ------
    UnknownSolverError, SolverUnavailableError
        See :class:`Commanded`.
    """

    name = "maxsat"
    module = "solvers"
    distribution = "dualquery"
    marks: ClassVar[Mapping[str, str]] = {"{wcnf}": "new.wcnf", "{old}": "old.wcnf"}
    example = "'maxsat:uwrmaxsat -m' or 'maxsat:clasp {old}'"

    def encode(self, kernel: BestResponse) -> Encoding:
        """Return a kernel as weighted clauses."""
        from solvers.formats.clauses import encode
        from solvers.formats.wcnf import wcnf_text

        clauses = encode(kernel)
        texts = {
            file: partial(wcnf_text, clauses, header=mark == "{old}")
            for mark, file in self.marks.items()
        }
        return Encoding(texts, clauses.variables, clauses.best, clauses.scale, clauses.error)


class MaxSatRc2(MaxSat):
    """RC2 of the package python-sat, in a process of its own; takes no argument."""

    name = "maxsat-rc2"
    module = "pysat"
    distribution = "python-sat"

    def __init__(self, argument: str = "") -> None:
        KernelSolver.__init__(self, argument)
        self._take([sys.executable, "-m", "pysat.examples.rc2", "-vv", "{wcnf}"])
