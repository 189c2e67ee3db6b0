"""Solvers by name: the built-in ones in a table, third parties' through entry points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec

from solvers.errors import SolverUnavailableError, UnknownSolverError
from solvers.kernel_solver import KernelSolver
from solvers.protocol import Capability, Solver

ENTRY_POINTS = "dualquery.solvers"

_BUILT_IN = {
    "local-search": "solvers.backends.local_search:LocalSearch",
    "cpsat": "solvers.backends.cpsat:CpSat",
    "scip": "solvers.backends.scip:Scip",
    "highs": "solvers.backends.highs:Highs",
    "exhaustive": "solvers.backends.exhaustive:Exhaustive",
}
_ALIASES = {"auto": "local-search"}


@dataclass(frozen=True)
class SolverInfo:
    """What is known about a registered solver without running it."""

    name: str
    version: str | None
    """Version of the package that it needs; None if that is not installed."""
    installed: bool
    capabilities: frozenset[Capability]


def get_solver(name: str) -> Solver:
    """Return the solver called ``name`` or ``name:argument``.

    ``auto`` stands for ``local-search``. What the argument means is the solver's business:
    ``scip``, ``cpsat`` and ``highs`` take a formulation, ``disaggregated`` (the default) or
    ``aggregated``.

    Raises
    ------
    UnknownSolverError
        If no such solver is registered, or it does not know the argument.
    SolverUnavailableError
        If the package that the solver needs is not installed.
    """
    key, _, argument = name.partition(":")
    key = _ALIASES.get(key, key)
    if key in _BUILT_IN:
        factory = _built_in(key)
        if find_spec(factory.module) is None:
            raise SolverUnavailableError(
                f"solver {key} needs the package {factory.distribution}, which is not installed: "
                f"pip install {factory.distribution}"
            )
        # Every built-in takes its argument as text; the base class leaves the constructor open.
        make: Callable[[str], Solver] = factory
        return make(argument)
    for point in metadata.entry_points(group=ENTRY_POINTS, name=key):
        try:
            third_party: Callable[[str], Solver] = point.load()
        except ImportError as error:
            raise SolverUnavailableError(
                f"solver {key} ({point.value}) cannot be imported: {error}"
            ) from error
        return third_party(argument)
    known = ", ".join(sorted({*_BUILT_IN, *_ALIASES, *_third_party_names()}))
    raise UnknownSolverError(f"unknown solver {key!r}; known: {known}")


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
    except SolverUnavailableError:
        return SolverInfo(name, version, False, frozenset())
    return SolverInfo(name, version, True, capabilities)


def _third_party_names() -> list[str]:
    return sorted(metadata.entry_points(group=ENTRY_POINTS).names - _BUILT_IN.keys())


def _built_in(name: str) -> type[KernelSolver]:
    module, _, attribute = _BUILT_IN[name].partition(":")
    factory: type[KernelSolver] = getattr(import_module(module), attribute)
    return factory


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
