"""Solvers that are not ours: in a process of their own, judged, and named in what goes wrong."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

from solvers.child import Child, ChildError
from solvers.errors import InfeasibleProblemError, SolverError, revived
from solvers.judging import judge
from solvers.kernel_solver import KernelSolver, load
from solvers.problem import BestResponse
from solvers.protocol import Capability, Options, Solver, Wrapper
from solvers.solution import Solution

LOADING_SECONDS = 120.0
PATIENCE_SECONDS = 2.0
_PATIENCE_SHARE = 0.5
"""How far past its limit a solver may go: seconds, and a share of the limit."""

_HIGHEST_MEMORY = Path("/proc/self/status")
_RESET_HIGHEST_MEMORY = Path("/proc/self/clear_refs")


class Watched(Wrapper):
    """A solver whose answers are judged, and whose faults name it.

    Parameters
    ----------
    inner
        The solver.
    label
        What messages call it.
    """

    def __init__(self, inner: Solver, label: str) -> None:
        super().__init__(inner)
        self._label = label

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Return what the solver found, as far as it is so (see `judge`).

        Raises
        ------
        SolverError
            Whatever it raised, by a message that names it; of the kind that it raised, if that is
            one of ours.
        """
        try:
            return judge(problem, self.inner.solve(problem, **options))
        except InfeasibleProblemError as fault:
            hint = options.get("hint")
            if len(problem.rows) == 0 or (hint is not None and problem.feasible(hint)):
                raise self._named(
                    SolverError(f"it says that no record is feasible: {fault}")
                ) from fault
            raise self._named(fault) from fault
        except SolverError as fault:
            raise self._named(fault) from fault
        except MemoryError:
            raise
        except Exception as fault:
            raise self._named(SolverError(f"{type(fault).__name__}: {fault}")) from fault

    def _named(self, fault: SolverError) -> SolverError:
        named = f"solver {self._label}: {fault}"
        if isinstance(fault, ChildError):
            return ChildError(named, late=fault.late)
        return revived(type(fault).__name__, named)


def watched(solver: Solver, label: str) -> Solver:
    """Return a solver that judges what it finds: ours do, all others are watched."""
    ours = isinstance(solver, KernelSolver | Watched)
    return solver if ours else Watched(solver, label)


class Isolated:
    """A solver in a process of its own, which is started again when it dies.

    Parameters
    ----------
    value
        ``module:attribute``, as an entry point has it: a callable that returns a solver.
    argument
        What it is called with: the text after the colon of ``name:argument``.
    patience
        Seconds, beside half of a call's limit, that it may go past that before it is ended.

    Raises
    ------
    SolverError
        If it cannot be loaded.
    """

    def __init__(self, value: str, argument: str, patience: float = PATIENCE_SECONDS) -> None:
        self._what = value, argument
        self._patience = patience
        self._child = Child("solvers.watched", "answer")
        self.memory_mib: float | None = None
        """Growth of its memory in the last call, at its highest; None where unknown."""
        self.renew()

    @property
    def name(self) -> str:
        """Name that the solver gives itself."""
        return self._name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the solver says that it supports."""
        return self._capabilities

    def renew(self) -> None:
        """Make the solver anew, which may have learnt from its calls."""
        name, capabilities = self._ask("make", LOADING_SECONDS, *self._what)
        self._name: str = name
        known = {each.value: each for each in Capability}
        self._capabilities = frozenset(known[each] for each in capabilities if each in known)

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Return what the solver answers, unjudged.

        Raises
        ------
        SolverError
            If it raised, died, or did not come back in time; its process is ended then.
        """
        if not self._child.served:
            self.renew()
        self._ask("load", LOADING_SECONDS)  # compiled loops, which no time limit counts
        seconds = self._patience + (1.0 + _PATIENCE_SHARE) * options.get("time_limit", 20.0)
        found, self.memory_mib = self._ask("solve", seconds, problem, options)
        return Solution(**found)

    def close(self) -> None:
        """End the process."""
        self._child.close()

    def _ask(self, what: str, seconds: float, *content: Any) -> Any:
        reply = self._child.ask(pickle.dumps((what, *content)), seconds)
        try:
            # The process runs the solver's own code with our rights: its pickles add no danger.
            kind, answer = pickle.loads(reply)  # noqa: S301  # see above
        except Exception as fault:
            self.close()
            raise SolverError(f"its answer cannot be read: {fault}") from fault
        if kind:
            raise revived(kind, answer)
        return answer


_made: list[Solver] = []
"""The solver of this process, if it is that of an `Isolated` one."""


def answer(request: bytes) -> bytes:
    """Answer what `Isolated` asks: in the other process."""
    what, *content = pickle.loads(request)  # noqa: S301  # from our own program
    try:
        return pickle.dumps(("", _ANSWERS[what](*content)))
    except Exception as fault:
        ours = [each for each in type(fault).__mro__ if each.__module__ == "solvers.errors"]
        message = str(fault) if ours else f"{type(fault).__name__}: {fault}"
        return pickle.dumps(((*ours, SolverError)[0].__name__, message))


def _make(value: str, argument: str) -> tuple[str, list[str]]:
    module, _, attribute = value.partition(":")
    _made[:] = [getattr(import_module(module), attribute)(argument)]
    return str(_made[0].name), [each.value for each in _made[0].capabilities]


def _load() -> None:
    load(_made[0])


def _solve(problem: BestResponse, options: Options) -> tuple[dict[str, Any], float | None]:
    before = _memory_mib(reset=True)
    found = _made[0].solve(problem, **options)
    after = _memory_mib(reset=False)
    if not isinstance(found, Solution):
        raise SolverError(f"it returned {type(found).__name__}; expected a solvers.Solution")
    grown = None if before is None or after is None else max(after - before, 0.0)
    return {each.name: getattr(found, each.name) for each in fields(Solution)}, grown


_ANSWERS: dict[str, Callable[..., Any]] = {"make": _make, "load": _load, "solve": _solve}


def _memory_mib(*, reset: bool) -> float | None:
    """Return the highest memory since the last reset, MiB, where the system tells (Linux)."""
    try:
        if reset:
            _RESET_HIGHEST_MEMORY.write_text("5")
        status = _HIGHEST_MEMORY.read_text()
    except OSError:
        return None
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024
