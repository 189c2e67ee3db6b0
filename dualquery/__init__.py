"""Accurate answers and synthetic data over very many attributes, under differential privacy.

>>> import dualquery
>>> released = dualquery.release("adult", queries=1000)  # doctest: +SKIP
>>> released.synthetic.head(3)  # doctest: +SKIP

`release` does the main job; `load_release` reads a folder back; `evaluate` compares a release with
its table (not private); `Synthesizer` has the fit and sample of other synthesizers; `Engine` says
where the rows are read. The parts are in ``dualquery.data``, ``dualquery.queries``,
``dualquery.privacy``, ``dualquery.game`` and the package ``solvers``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dualquery.siblings import check_siblings
from dualquery.versions import __version__

if TYPE_CHECKING:
    from dualquery.api import release
    from dualquery.engines import Engine
    from dualquery.errors import BadInputError
    from dualquery.evaluation import evaluate
    from dualquery.expected import expected_error
    from dualquery.folder import Release, load_release
    from dualquery.queries.matrix import HistogramQueries
    from dualquery.queries.parities import FactorParities, Parities
    from dualquery.queries.ranges import RangeQueries, SeriesRangeQueries
    from dualquery.queries.workload import Workload
    from dualquery.synthesizer import Synthesizer

__all__ = [
    "BadInputError",
    "Engine",
    "FactorParities",
    "HistogramQueries",
    "Parities",
    "RangeQueries",
    "Release",
    "SeriesRangeQueries",
    "Synthesizer",
    "Workload",
    "__version__",
    "evaluate",
    "expected_error",
    "load_release",
    "release",
]

check_siblings()

# Heavy libraries load with the first use of a name, so that the command line starts at once.
_HOME = {
    "BadInputError": "dualquery.errors",
    "Engine": "dualquery.engines",
    "FactorParities": "dualquery.queries.parities",
    "HistogramQueries": "dualquery.queries.matrix",
    "Parities": "dualquery.queries.parities",
    "RangeQueries": "dualquery.queries.ranges",
    "Release": "dualquery.folder",
    "SeriesRangeQueries": "dualquery.queries.ranges",
    "Synthesizer": "dualquery.synthesizer",
    "Workload": "dualquery.queries.workload",
    "evaluate": "dualquery.evaluation",
    "expected_error": "dualquery.expected",
    "load_release": "dualquery.folder",
    "release": "dualquery.api",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dualquery' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
