"""Solvers side by side: equal problems, equal limits, one process a run.

:func:`~solvers.comparison.runs.compare` measures, :mod:`solvers.comparison.summary` condenses,
:mod:`solvers.comparison.report` and :mod:`solvers.comparison.plots` write.
"""

from solvers.comparison.runs import Measurement, NamedProblem, compare
from solvers.comparison.summary import SolverSummary, summarise

__all__ = ["Measurement", "NamedProblem", "SolverSummary", "compare", "summarise"]
