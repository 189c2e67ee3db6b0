"""Solvers that are commands: a file goes in, and lines ``o``, ``s`` and ``v`` come out.

These are the rules of the MaxSAT Evaluations and of the Pseudo-Boolean Competitions. Nothing that a
command prints is trusted: its record is checked, and its optimum counts only if it exits with 0,
10, 20 or 30 and states the record's cost. What is wrong is logged once and replaced as anywhere.
"""

from __future__ import annotations

import logging
import math
import os
import shlex
import shutil
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from solvers.backends.external import run_command
from solvers.errors import SolverUnavailableError, UnknownSolverError
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability

_log = logging.getLogger(__name__)

_LEAST_SECONDS = 0.01
_LEAST_SECONDS_PER_TERM = 25e-6

_NORMAL_EXITS = (0, 10, 20, 30)
"""Of SAT and MaxSAT solvers: 10 satisfiable, 20 unsatisfiable, 30 optimum found."""

_LAST_WORDS = 0.1
"""Share of the time that a command gets, once it is asked to stop, to print its incumbent."""
_LONGEST_LAST_WORDS = 0.3  # the same in seconds, at most
_LONGEST_SECONDS = 1e6  # without a time limit: threads cannot wait for ever


@dataclass(frozen=True)
class Encoding:
    """A problem as a command sees it.

    ``texts`` maps file names to what writes their content, where the command's words ``{SUFFIX}``
    name them. The first of the variables are the attributes. A record of cost ``c`` has the
    objective ``best - c / scale``, up to ``error / scale``.
    """

    texts: Mapping[str, Callable[[], str]]
    variables: int
    best: float
    scale: float
    error: float


class Commanded(KernelSolver):
    """A command that reads a problem from a file.

    Parameters
    ----------
    argument
        The command. A word with ``{MARK}`` stands for a file, the marks being those of
        :attr:`marks`; with none, the first one's is added at the end.

    Raises
    ------
    UnknownSolverError
        If the command is empty or its quotes do not close.
    SolverUnavailableError
        If there is no such command.
    """

    capabilities = KernelSolver.capabilities | {Capability.EXACT}
    marks: ClassVar[Mapping[str, str]]  # mark -> name of the file that it stands for
    example: ClassVar[str]  # what the message about an empty command shows

    def __init__(self, argument: str = "") -> None:
        try:
            command = shlex.split(argument, posix=os.name == "posix")
        except ValueError as error:
            raise UnknownSolverError(f"{self.name}:{argument}: {error}") from None
        if not command:
            first = next(iter(self.marks)).strip("{}").upper()
            raise UnknownSolverError(
                f"{self.name} needs a command that reads {first}: {self.name}:COMMAND, for example "
                f"{self.example}"
            )
        program = shutil.which(command[0])
        if program is None:
            raise SolverUnavailableError(
                f"{self.name}:{argument}: there is no command {command[0]!r} on the path"
            )
        # Commands run in a folder of their own.
        command[0] = str(Path(program).absolute())
        self._take(command)

    def _take(self, command: list[str]) -> None:
        if not any(mark in word for word in command for mark in self.marks):
            command.append(next(iter(self.marks)))
        self.command = command
        self._warned: set[str] = set()

    @abstractmethod
    def encode(self, kernel: BestResponse) -> Encoding:
        """Return a kernel as the command's files; they are written only if it names them."""

    def least_seconds(self, kernel: BestResponse) -> float:
        """Estimate the time to write the file and start the command."""
        size = len(kernel.terms) + len(kernel.rows.attributes)
        return _LEAST_SECONDS + _LEAST_SECONDS_PER_TERM * size

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Write the file, run the command, and judge what it prints."""
        encoding = self.encode(kernel)
        log = _AnswerLog(encoding.variables, limits)
        with tempfile.TemporaryDirectory(prefix="dualquery-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            command = [self._written(word, encoding, folder) for word in self.command]
            if limits.remaining() == 0.0:
                return SearchResult(Ending.STOPPED)
            last_words = min(_LAST_WORDS * limits.remaining(), _LONGEST_LAST_WORDS)
            deadline = min(limits.deadline, time.perf_counter() + _LONGEST_SECONDS)
            try:
                status, complaint = run_command(
                    command,
                    folder,
                    log.take,
                    stop=deadline - last_words,
                    deadline=deadline,
                    longest_line=16 * encoding.variables + 100,
                )
            except OSError as error:
                self._warn(f"cannot be started: {error.strerror}")
                return SearchResult(Ending.FAILED)
        record = log.record(kernel.attributes)
        ending = self._ending(log, status, complaint, record is not None)
        if record is None:
            return SearchResult(ending)
        if not kernel.feasible(record):
            self._warn(f"printed an infeasible solution: {kernel.violations(record)[0]}")
            return SearchResult(Ending.FAILED)
        bound = math.inf
        if ending is Ending.PROVEN:
            bound = self._bound(kernel.value(record), log.cost, encoding)
        return SearchResult(Ending.STOPPED, record, bound, log.found)

    def _written(self, word: str, encoding: Encoding, folder: Path) -> str:
        for mark, file in self.marks.items():
            if mark in word:
                (folder / file).write_text(encoding.texts[file](), encoding="ascii")
                word = word.replace(mark, str(folder / file))
        return word

    def _bound(self, value: float, cost: int | None, encoding: Encoding) -> float:
        """Return the bound that a claim of an optimum is, if its cost is that of the record."""
        claimed = math.inf if cost is None else encoding.best - cost / encoding.scale
        tolerance = (encoding.error + 0.5) / encoding.scale + 1e-9 * abs(value)
        if abs(claimed - value) <= tolerance:
            return claimed + encoding.error / encoding.scale
        self._warn(
            f"claims an optimum of cost {cost}, but its solution has the objective {value:g}"
        )
        return math.inf

    def _ending(
        self, log: _AnswerLog, status: int | None, complaint: str, has_record: bool
    ) -> Ending:
        last_line = next(reversed(complaint.strip().splitlines()), "")
        because = f" ({last_line.strip()[:200]})" if last_line else ""
        if status is None:
            # Stopped by us: at the deadline no solution is no fault, and a proof needs its end.
            return Ending.STOPPED
        if status not in _NORMAL_EXITS:
            how = f"was ended by signal {-status}" if status < 0 else f"exited with {status}"
            self._warn(how + because)
            return Ending.FAILED
        if log.unsatisfiable:
            self._warn("claims that no record satisfies groups and constraints")
            return Ending.FAILED
        if not has_record:
            self._warn(f"printed no solution (line 'v'){because}")
            return Ending.FAILED
        return Ending.PROVEN if log.optimal else Ending.STOPPED

    def _warn(self, message: str) -> None:
        if message not in self._warned:  # once is enough in a game of many rounds
            self._warned.add(message)
            _log.warning("solver %s: %s %s", self.name, shlex.join(self.command), message)


class MaxSat(Commanded):
    """An external MaxSAT solver.

    Parameters
    ----------
    argument
        The command. ``{wcnf}`` in it stands for a file in the format of 2022, ``{old}`` for one
        with the older header; with neither, the former's name is added at the end. For example
        ``maxsat:uwrmaxsat -m`` or ``maxsat:clasp {old}``.
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


class PseudoBoolean(Commanded):
    """An external pseudo-Boolean solver.

    Parameters
    ----------
    argument
        The command. ``{opb}`` in it stands for the file; without, its name is added at the end. For
        example ``pb:roundingsat --print-sol=1`` or ``pb:minisat+``.
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
        return Encoding(texts, program.variables, program.constant, program.scale, program.error)


class Clasp(PseudoBoolean):
    """Clasp, of the package clingo, in a process of its own; takes no argument."""

    name = "clasp"
    module = "clingo"
    distribution = "clingo"
    bits = 30  # its weights have 32

    def __init__(self, argument: str = "") -> None:
        KernelSolver.__init__(self, argument)
        self._take([sys.executable, "-m", "clingo", "--mode=clasp", "{opb}"])


class _AnswerLog:
    """The last incumbent among the lines that a solver prints."""

    def __init__(self, variables: int, limits: SearchLimits) -> None:
        self.optimal = False
        self.unsatisfiable = False
        self.cost: int | None = None
        """Of the last line ``o``."""
        self.found: float | None = None
        """Seconds from the call to the last line ``v``."""
        self._variables = variables
        self._budget = limits
        self._words: list[str] = []
        self._open = False
        """The last line was a ``v`` that may go on."""

    def take(self, line: str) -> None:
        """Take a line; all but those of the protocol are passed over."""
        kind, _, rest = line.strip().partition(" ")
        if kind == "v":
            words = rest.split()
            if not self._open:
                self._words = []
            self._words += words
            self._open = words[-1:] != ["0"]
            self.found = self._budget.elapsed()
            return
        self._open = False
        if kind == "o":
            self.cost = _whole(rest.split()[:1])
        elif kind == "s":
            self.optimal = rest.startswith("OPTIMUM")
            self.unsatisfiable = rest.startswith("UNSATISFIABLE")

    def record(self, attributes: int) -> NDArray[np.uint8] | None:
        """Return the last incumbent's attributes, or None if there is none that can be read."""
        words = self._words
        if self.found is None:
            return None
        record = np.zeros(attributes, np.uint8)
        if len(words) == 1 and self._is_bit_string(words[0]):
            bits = np.frombuffer(words[0].encode("ascii"), np.uint8) - ord("0")
            known = min(attributes, len(bits))
            record[:known] = bits[:known]
            return record
        for word in words:
            # Pseudo-Boolean solvers name variables: x1 -x2.
            literal = _whole([word.replace("x", "", 1)])
            if literal is None:
                return None
            if 0 < literal <= attributes:
                record[literal - 1] = 1
        return record

    def _is_bit_string(self, word: str) -> bool:
        """Tell the form of 2022, one 0 or 1 a variable, from a single literal."""
        if set(word) - {"0", "1"}:
            return False
        most = self._variables
        return len(word) == most or word[0] == "0" or int(word[:19]) > most


def _whole(words: list[str]) -> int | None:
    """Return the whole number that a word is, or None."""
    try:
        return int(words[0]) if len(words[0]) < 20 else None  # more is no number of 64 bits
    except (IndexError, ValueError):
        return None
