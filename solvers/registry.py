"""Solvers by name: the built-in ones in a table, third parties' through entry points."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec

from solvers.errors import SolverError, SolverUnavailableError, UnknownSolverError
from solvers.kernel_solver import KernelSolver
from solvers.protocol import Capability, Solver
from solvers.watched import PATIENCE_SECONDS, Guarded, Isolated, Watched, watched

ENTRY_POINTS = "dualquery.solvers"

_BUILT_IN = {
    "auto": "solvers.backends.auto:Auto",
    "local-search": "solvers.backends.local_search_backend:LocalSearch",
    "cpsat": "solvers.backends.cpsat:CpSat",
    "scip": "solvers.backends.scip:Scip",
    "highs": "solvers.backends.highs:Highs",
    "exhaustive": "solvers.backends.exhaustive:Exhaustive",
    "maxsat": "solvers.backends.commanded:MaxSat",
    "pb": "solvers.backends.commanded:PseudoBoolean",
    "clasp": "solvers.backends.commanded:Clasp",
    "maxsat-rc2": "solvers.backends.commanded:MaxSatRc2",
    "gurobi": "solvers.backends.gurobi:Gurobi",
    "cplex": "solvers.backends.cplex:Cplex",
}


_NOBODY = metadata.EntryPoint("", "", ENTRY_POINTS)

_ADDED: dict[str, Callable[[str], Solver]] = {}
"""Those of this process only."""


@dataclass(frozen=True)
class SolverInfo:
    """What is known about a registered solver without running it."""

    name: str
    version: str | None  # version of the package that it needs; None if that is not installed
    installed: bool
    capabilities: frozenset[Capability]


def get_solver(name: str) -> Solver:
    """Return the solver called ``name`` or ``name:argument``.

    What the argument means is the solver's business: ``scip``, ``cpsat``, ``highs``,
    ``gurobi`` and ``cplex`` take a formulation, ``disaggregated`` (the default) or ``aggregated``;
    ``maxsat`` takes a command that reads WCNF; ``auto`` takes ``brief``, ``fast`` or a gap. A
    solver may learn from call to call: take a new one for each run. One of a third party runs in a
    process of its own; what it answers is judged, and errors name it.

    Raises
    ------
    UnknownSolverError
        If no such solver is registered, or it does not know the argument.
    SolverUnavailableError
        If the package that the solver needs is not installed.
    """
    key, _, argument = name.partition(":")
    if key in _BUILT_IN:
        return _installed(key)(argument)
    if key in _ADDED:
        return watched(_ADDED[key](argument), name)
    return isolated(name)


def guarded(name: str) -> Guarded:
    """Return the solver called ``name``, guarded.

    Raises
    ------
    SolverError
        As `get_solver`.
    """
    return Guarded(get_solver(name))


def isolated(name: str, patience: float = PATIENCE_SECONDS) -> Watched:
    """Return the solver called ``name`` in a process of its own, whoever made it.

    A call is ended ``patience`` seconds after 1.5 times its limit. Not for a solver of this
    process only. Raises as `get_solver` does.
    """
    key, _, argument = name.partition(":")
    if (value := _BUILT_IN.get(key)) is not None:
        _installed(key)
    else:
        value = next(iter(metadata.entry_points(group=ENTRY_POINTS, name=key)), _NOBODY).value
    if not value:
        known = sorted({*_BUILT_IN, *_ADDED, *_third_party_names()})
        close = difflib.get_close_matches(key, known, n=1)
        guess = f"; did you mean {close[0]!r}?" if close else ""
        raise UnknownSolverError(f"unknown solver {key!r}{guess} (known: {', '.join(known)})")
    try:
        return Watched(Isolated(value, argument, patience), name)
    except UnknownSolverError:
        raise
    except SolverError as error:
        raise SolverUnavailableError(f"solver {key} ({value}) cannot be loaded: {error}") from error


def is_built_in(name: str) -> bool:
    """Return whether a solver is one of this package's, so that each call has its own object."""
    return name.partition(":")[0] in _BUILT_IN


@contextmanager
def registered(name: str, factory: Callable[[str], Solver]) -> Iterator[None]:
    """Make a solver known to this process, by a name not yet taken, for the length of a block.

    The factory is called with the text after the colon of ``name:argument``, as an entry point is.

    Raises
    ------
    UnknownSolverError
        If the name is taken.
    """
    if name in _BUILT_IN or name in _ADDED or name in _third_party_names():
        raise UnknownSolverError(f"there is a solver {name!r} already; take another name")
    _ADDED[name] = factory
    try:
        yield
    finally:
        del _ADDED[name]


def available_solvers() -> list[SolverInfo]:
    """Return all registered solvers; what built-in ones need is looked up, not imported."""
    infos = [_describe(name) for name in _BUILT_IN]
    return infos + [_describe_third_party(name) for name in _third_party_names()]


def _describe(name: str) -> SolverInfo:
    factory = _built_in(name)
    installed = find_spec(factory.module) is not None
    version = _version(factory.distribution) if installed else None
    return SolverInfo(name, version, installed, factory.capabilities)


def _describe_third_party(name: str) -> SolverInfo:
    (point, *_) = metadata.entry_points(group=ENTRY_POINTS, name=name)
    version = point.dist.version if point.dist is not None else None
    try:
        capabilities = get_solver(name).capabilities
    except UnknownSolverError:  # it needs an argument
        return SolverInfo(name, version, True, frozenset())
    except SolverUnavailableError:
        return SolverInfo(name, version, False, frozenset())
    return SolverInfo(name, version, True, capabilities)


def _third_party_names() -> list[str]:
    return sorted(metadata.entry_points(group=ENTRY_POINTS).names - _BUILT_IN.keys())


def _built_in(name: str) -> type[KernelSolver]:
    module, _, attribute = _BUILT_IN[name].partition(":")
    factory: type[KernelSolver] = getattr(import_module(module), attribute)
    return factory


def _installed(name: str) -> type[KernelSolver]:
    """Return a solver of ours whose package is installed."""
    factory = _built_in(name)
    if find_spec(factory.module) is None:
        raise SolverUnavailableError(
            f"solver {name} needs the package {factory.distribution}, which is not installed: "
            f"pip install {factory.distribution}"
        )
    return factory


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
