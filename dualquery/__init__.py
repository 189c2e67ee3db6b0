"""Accurate answers and synthetic data over very many attributes, under differential privacy.

>>> import dualquery
>>> released = dualquery.release("adult", queries=1000)  # doctest: +SKIP

`release` does the main job (`Table`, `WorkloadRequest`, `SyntheticRecords`, `Guarantee` and `Run`
hold its rarer arguments); `load_release` reads a folder back; `evaluate` and `compare` compare a
release with its table (both not private); `BudgetFile` holds what all releases of a data set may
cost together; `Synthesizer` has fit and sample; `Engine` says where the rows are read.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dualquery.runtime.resources import __version__, check_siblings

if TYPE_CHECKING:
    from dualquery.api import expected_error, release
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.data.given_table import Table, Unit, Weight
    from dualquery.queries.conjunctions import Workload
    from dualquery.queries.parities import FactorParities, Parities
    from dualquery.queries.ranges import RangeQueries, SeriesRangeQueries
    from dualquery.queries.tabulated import HistogramQueries
    from dualquery.releases.answer.answering import Answers, answer_queries
    from dualquery.releases.compare.evaluation import compare, evaluate
    from dualquery.releases.keep.folder import Release, load_release
    from dualquery.requests import Guarantee, Run, SyntheticRecords, WorkloadRequest
    from dualquery.rows.engines import Engine
    from dualquery.runtime.errors import BadInputError
    from dualquery.synthesizer import Synthesizer

__all__ = [
    "Answers", "BadInputError", "BudgetFile", "Engine", "FactorParities", "Guarantee",
    "HistogramQueries", "Parities", "RangeQueries", "Release", "Run", "SeriesRangeQueries",
    "Synthesizer", "SyntheticRecords", "Table", "Unit", "Weight", "Workload", "WorkloadRequest",
    "__version__", "answer_queries", "compare", "evaluate", "expected_error", "load_release",
    "release",
]  # fmt: skip

check_siblings()

# Heavy libraries load with the first use of a name, so that the command line starts at once.
_HOME = {
    "api": ("expected_error", "release"),
    "budgets.budget_file": ("BudgetFile",),
    "data.given_table": ("Table", "Unit", "Weight"),
    "queries.conjunctions": ("Workload",),
    "queries.parities": ("FactorParities", "Parities"),
    "queries.ranges": ("RangeQueries", "SeriesRangeQueries"),
    "queries.tabulated": ("HistogramQueries",),
    "releases.answer.answering": ("Answers", "answer_queries"),
    "releases.compare.evaluation": ("compare", "evaluate"),
    "releases.keep.folder": ("Release", "load_release"),
    "requests": ("Guarantee", "Run", "SyntheticRecords", "WorkloadRequest"),
    "rows.engines": ("Engine",),
    "runtime.errors": ("BadInputError",),
    "synthesizer": ("Synthesizer",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"dualquery.{module}"), name)
    raise AttributeError(f"module 'dualquery' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
