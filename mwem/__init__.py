"""The other side of the game: multiplicative weights over records, queries as best responses.

DualQuery keeps weights on queries and answers with records; MWEM (Hardt, Ligett and McSherry 2012)
keeps weights on records and answers with queries. It stands on the shared modules of ``dualquery``
(queries, curator, accountants); ``README.md`` says where what is.
"""

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
    from mwem.sampled.sampled_mechanism import MwemSampled

_HOMES = {
    "Barak": "barak",
    "Mwem": "mechanism",
    "MwemSampled": "sampled.sampled_mechanism",
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
