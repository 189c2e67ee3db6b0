"""Solvers that are not ours: in a process of their own, judged, and named in what goes wrong."""

import contextlib
import logging
import math
import pickle
import time
from collections.abc import Callable
from dataclasses import fields, replace
from importlib.metadata import EntryPoint
from typing import Any, Unpack

from solvers.backends.local_search_backend import LocalSearch
from solvers.child import Child, ChildError
from solvers.errors import InfeasibleProblemError, SolverError, revived
from solvers.feasibility import feasible_record
from solvers.judging import judge
from solvers.kernel_solver import KernelSolver, load
from solvers.problem import BestResponse
from solvers.protocol import Capability, Options, Solver, Wrapper
from solvers.solution import Solution, Status

LOADING_SECONDS = 120.0
PATIENCE_SECONDS = 2.0
_PATIENCE_SHARE = 0.5  # how far past its limit a solver may go: seconds, and a share of the limit


MOST_FAULTS = 3
"""Faults, one after the other, after which a solver is not asked any more."""

_FALLBACK_SECONDS = 0.25

_log = logging.getLogger(__name__)


class Watched(Wrapper):
    """A solver whose answers are judged, and whose faults name it by a label."""

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
            known = len(problem.rows) == 0 or (hint is not None and problem.feasible(hint))
            with contextlib.suppress(InfeasibleProblemError):
                deadline = time.perf_counter() + _FALLBACK_SECONDS
                known = known or feasible_record(problem, deadline) is not None
            if known:
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


class Guarded(Wrapper):
    """Asks another solver, and answers with a feasible record whatever that does.

    Parameters
    ----------
    solver
        The other one.
    """

    def __init__(self, solver: Solver) -> None:
        super().__init__(watched(solver, solver.name))
        self._faults = 0

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Return a feasible record: the solver's, or our local search's (`Status.FALLBACK`).

        Raises
        ------
        MemoryError
            If there is none left.
        SolverError
            If no record is feasible, or the local search finds none.
        """
        began = time.perf_counter()
        fault = f"not asked any more after {MOST_FAULTS} faults"
        if self._faults < MOST_FAULTS:
            try:
                found = self.inner.solve(problem, **options)
            except MemoryError:
                raise
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            else:
                self._faults = 0
                return found
            self._faults += 1
            _log.warning("solver %s failed, and a local search stands in: %s", self.name, fault)
        options["time_limit"] = min(options.get("time_limit", _FALLBACK_SECONDS), _FALLBACK_SECONDS)
        own = LocalSearch().solve(problem, **options)
        return replace(
            own,
            bound=math.inf,
            status=Status.FALLBACK,
            seconds=time.perf_counter() - began,
            solver=self.name,
            steps=(f"local search in its place: {fault[:200]}",),
        )


class Isolated:
    """A solver in a process of its own, which is started again when it dies.

    ``value`` is ``module:attribute``, as an entry point has it: a callable that takes the argument
    and returns a solver. ``patience`` is in seconds, beside half of a call's limit, that it may go
    past that before it is ended. ``name`` and ``capabilities`` are what the solver says of itself.

    Raises
    ------
    SolverError
        If it cannot be loaded.
    """

    def __init__(self, value: str, argument: str, patience: float = PATIENCE_SECONDS) -> None:
        self._what = value, argument
        self._patience = patience
        self._child = Child("solvers.watched", "answer")
        self.renew()

    def renew(self) -> None:
        """Make the solver anew, which may have learnt from its calls."""
        self.name, capabilities = self._ask("make", LOADING_SECONDS, *self._what)
        known = {each.value: each for each in Capability}
        self.capabilities = frozenset(known[each] for each in capabilities if each in known)

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Return what the solver answers, unjudged.

        Raises
        ------
        SolverError
            If it raised, died, or did not come back in time; its process is ended then.
        """
        # Compiled loops, which no time limit counts; and the solver itself, if its process died.
        self._ask("load", LOADING_SECONDS, *self._what)
        seconds = self._patience + (1.0 + _PATIENCE_SHARE) * options.get("time_limit", 20.0)
        return Solution(**self._ask("solve", seconds, problem, options))

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
    _made[:] = [EntryPoint("", value, "").load()(argument)]
    return str(_made[0].name), [each.value for each in _made[0].capabilities]


def _load(value: str, argument: str) -> None:
    if not _made:
        _make(value, argument)
    load(_made[0])


def _solve(problem: BestResponse, options: Options) -> dict[str, Any]:
    found = _made[0].solve(problem, **options)
    if not isinstance(found, Solution):
        raise SolverError(f"it returned {type(found).__name__}; expected a solvers.Solution")
    return {each.name: getattr(found, each.name) for each in fields(Solution)}


_ANSWERS: dict[str, Callable[..., Any]] = {"make": _make, "load": _load, "solve": _solve}
