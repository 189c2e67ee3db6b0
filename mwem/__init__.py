"""The other side of the game: multiplicative weights over records, queries as best responses.

DualQuery keeps weights on queries and answers with records; MWEM (Hardt, Ligett and McSherry 2012)
keeps weights on records and answers with queries. It stands on the shared modules of ``dualquery``
(queries, curator, accountants):

- `algorithm`: Figure 1; `mechanism`: as a mechanism of the shared protocol; `options`, `spending`,
  `output`: its parameters, its budget, what it gives out; `bounds`: what theory promises.
- `sampled`: MWEM on a population of records, for domains that no exact representation fits.
- `barak`: all asked Fourier coefficients with noise, fitted by multiplicative weights.
- `representations`: ways to hold the distribution, all exact, behind one protocol.
- `answers`: answers of all queries, as products of functions of columns
  (`dualquery.queries.products`), under a distribution.
- `questions`: what an iteration asks, one query or a whole marginal (a cuboid).
- `cell_records`, `measures`: back to records, and distances from the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "Barak",
    "Mwem",
    "MwemSampled",
    "maximum_error",
    "mean_squared_error",
    "relative_entropy",
    "rounded_table",
    "sampled_table",
    "svd_bound",
    "theorem_2_2_bound",
]

if TYPE_CHECKING:
    from mwem.barak import Barak
    from mwem.bounds import svd_bound, theorem_2_2_bound
    from mwem.cell_records import rounded_table, sampled_table
    from mwem.measures import maximum_error, mean_squared_error, relative_entropy
    from mwem.mechanism import Mwem
    from mwem.sampled.mechanism import MwemSampled

_HOMES = {
    "Barak": "barak",
    "Mwem": "mechanism",
    "MwemSampled": "sampled.mechanism",
    "svd_bound": "bounds",
    "theorem_2_2_bound": "bounds",
    "maximum_error": "measures",
    "mean_squared_error": "measures",
    "relative_entropy": "measures",
    "rounded_table": "cell_records",
    "sampled_table": "cell_records",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: kernels load slowly."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
