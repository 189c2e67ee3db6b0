"""The options of a release that need no table: read and checked before anything heavy is loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.cli.counted_rows import unit_of, weight_of
from dualquery.cli.options import mechanism_options
from dualquery.mechanisms.registry import check_mechanism
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.requests import WorkloadRequest


def check_options(given: dict[str, Any]) -> WorkloadRequest:
    """Check all options that need no table, before anything heavy is imported.

    Returns
    -------
    The queries asked for.
    """
    from dualquery.requests import BudgetRequest, WorkloadRequest
    from dualquery.room.randomness import check_seed
    from solvers import get_solver

    BudgetRequest(
        unit=unit_of(given),
        weight=weight_of(given),
        **chosen(given, "epsilon", "delta", "accountant", "neighbours", "rows"),
    )
    mechanism_options(given)
    if given["mechanism"] is not None:
        check_mechanism(given["mechanism"])
    if given["solver"] is not None:
        get_solver(given["solver"])
    check_seed(given["seed"])
    queries = given["queries"]
    return WorkloadRequest(
        queries=None if queries is None else parse_queries(queries),
        seed=given["workload_seed"],
        columns=given["query_columns"],
        marginals=parse_marginals(given["marginals"]),
        items=given["query_items"],
        **chosen(given, "way", "signed", "max_cells", "target", "means"),
    )


def chosen(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return some of the options."""
    return {name: given[name] for name in names}


def parse_queries(text: str | int) -> int | str:
    """Read ``--queries``: a number, ``all`` or a file."""
    number = whole_number(str(text))
    if number is not None:
        return number
    from dualquery.data.opening import is_file

    if text == "all" or is_file(Path(str(text))):
        return str(text)
    raise BadInputError(
        f"--queries is {text!r}, and there is no such file; give a number, 'all', or the path of "
        "a file of queries"
    )


def parse_marginals(text: str | int | None) -> int | str | None:
    """Read ``--marginals``: a number or ``all``."""
    number = None if text is None else whole_number(str(text))
    if number is None and text not in (None, "all"):
        raise BadInputError(f"--marginals is {text!r}; give a number, or 'all'")
    return text if number is None else number


def whole_number(text: str) -> int | None:
    """Return the whole number that a text is, such as ``100_000`` or ``1e5``; else None."""
    match = re.fullmatch(r"([+-]?\d+)(?:[eE]\+?(\d\d?))?", text.replace("_", ""), re.ASCII)
    return None if match is None else int(match[1]) * 10 ** int(match[2] or 0)
