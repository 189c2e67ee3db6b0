"""Any pseudo-Boolean solver that reads OPB and prints by the rules of its Competitions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import ClassVar

from solvers.backends.commanded import Commanded, Encoding
from solvers.kernel_solver import KernelSolver
from solvers.problem import BestResponse


class PseudoBoolean(Commanded):
    """An external pseudo-Boolean solver.

    Parameters
    ----------
    argument
        The command. ``{opb}`` in it stands for the file; without, its name is added at the end. For
        example ``pb:roundingsat --print-sol=1`` or ``pb:minisat+``.

    Raises
    ------
    UnknownSolverError, SolverUnavailableError
        See :class:`Commanded`.
    """

    name = "pb"
    module = "solvers"
    distribution = "dualquery"
    marks: ClassVar[Mapping[str, str]] = {"{opb}": "problem.opb"}
    example = "'pb:roundingsat --print-sol=1' or 'pb:minisat+'"
    bits = 52
    """Size of the sum of all weights."""

    def encode(self, kernel: BestResponse) -> Encoding:
        """Return a kernel as linear constraints over 0-1 variables in whole numbers."""
        from solvers.formats.opb import pseudo_boolean

        program = pseudo_boolean(kernel, self.bits)
        texts = dict.fromkeys(self.marks.values(), program.text)
        best, least = program.constant, -sum(weight for weight, _ in program.wishes if weight > 0)
        return Encoding(texts, program.variables, best, program.scale, program.error, least)


class Clasp(PseudoBoolean):
    """Clasp, of the package clingo, in a process of its own; takes no argument."""

    name = "clasp"
    module = "clingo"
    distribution = "clingo"
    bits = 30  # its weights have 32

    def __init__(self, argument: str = "") -> None:
        KernelSolver.__init__(self, argument)
        self._take([sys.executable, "-m", "clingo", "--mode=clasp", "{opb}"])
