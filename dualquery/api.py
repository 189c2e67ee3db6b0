"""The main job in one call: a table goes in, a private release comes out.

Arguments of `release` are plain values, or objects whose fields are keywords, too:
``release(table, way=2)`` is ``release(table, queries=WorkloadRequest(way=2))``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from dualquery.data.given_table import Table
from dualquery.mechanisms.protocol import Task
from dualquery.mechanisms.registry import configure
from dualquery.queries.family import Queries
from dualquery.releases.make.beside import without_beside
from dualquery.releases.make.making import release_of
from dualquery.requests import (
    BudgetRequest,
    Guarantee,
    MechanismRequest,
    ReleaseSpec,
    Run,
    SyntheticRecords,
    WorkloadRequest,
)
from dualquery.room.row_count import RowCount, bought_epsilon
from dualquery.runtime.errors import BadInputError, did_you_mean
from dualquery.runtime.option_fields import keywords_of

if TYPE_CHECKING:
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.data.schema.any_schema import Schema
    from dualquery.estimates.expected import ExpectedError
    from dualquery.releases.keep.folder import Release

AS_USUAL = Run()

OBJECTS = {  # arguments of `release` that are objects, or the value of their first field
    "table": Table, "queries": WorkloadRequest, "records": SyntheticRecords,
    "guarantee": Guarantee, "run": Run,
}  # fmt: skip
_OTHERS = {
    *OBJECTS, "schema", "mechanism", "options", "epsilon", "delta", "budget", "seed", "data",
}  # fmt: skip
KEYWORDS: Mapping[type[Any], Mapping[str, str]] = {  # of each object, for its fields
    kind: {name: field for name, field in keywords_of(kind).items() if name not in _OTHERS}
    for kind in OBJECTS.values()
}


def release(
    table: Any = "adult",
    *,
    schema: Schema | Mapping[str, object] | str | Path | None = None,
    queries: WorkloadRequest | int | str | Path | Sequence[str] | Queries | None = None,
    mechanism: str | None = None,
    options: Mapping[str, Any] | None = None,
    records: SyntheticRecords | int | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    guarantee: Guarantee | str = "replace-one",
    budget: str | Path | BudgetFile | None = None,
    seed: int | None = None,
    run: Run = AS_USUAL,
    **keywords: Any,
) -> Release:
    """Answer a workload about a private table, and make synthetic records, under privacy.

    Parameters
    ----------
    table
        A built-in name, a path, ``FORMAT:PATH``, a Polars, pandas, Arrow, NumPy or SciPy table; or
        a `Table`, which says what of it is read.
    schema
        The declared columns: a schema, a built-in name, a path, or what a schema file holds as a
        dict. Without one a part of the budget learns it.
    queries
        A number of random conjunctions, ``"all"``, a file or a list of queries; a
        `WorkloadRequest`; or a `Workload` or another family (`dualquery.queries.family`).
    mechanism, options
        The mechanism's name, and values for the fields of its configuration. None for ``auto``,
        which chooses from public facts and passes options on.
    records
        Number of synthetic records, or `SyntheticRecords`; None for one a row, up to limits.
    epsilon, delta
        The budget. ``delta`` defaults to 1/n^2 of n rows or units, or 0 for a pure mechanism.
    guarantee
        What epsilon and delta are about: ``replace-one``, ``add-remove`` or a `Guarantee`.
    budget
        A budget file (`dualquery.BudgetFile`, or its path), which is charged before anything is
        drawn. Without one the guarantee adds up with those of other releases about the same rows.
    seed
        For experiments only: makes the run reproducible and the release not private.
    run
        Engine, threads, checkpoint, progress, private errors: a `Run`.
    keywords
        Any field of these objects by its own name, such as ``way=2``, ``neighbours="add-remove"``
        or ``threads=1`` (`KEYWORDS` lists them).

    Raises
    ------
    BadInputError
        If anything asked for cannot be, or the budget file has no room for it; nothing private has
        been drawn then, but a schema or number of rows. Options have their command line's names.

    Examples
    --------
    >>> import dualquery
    >>> released = dualquery.release("adult", queries=1000, epsilon=1.0)  # doctest: +SKIP
    >>> released.save("my-release")  # doctest: +SKIP
    """
    given = {name: value for name, value in locals().items() if name != "keywords"}
    return release_of(_spec_of(given, keywords))


def _spec_of(given: Mapping[str, Any], keywords: Mapping[str, Any]) -> ReleaseSpec:
    """Return the request that the arguments of `release` and further keywords make, checked."""
    known = [*given, *(name for own in KEYWORDS.values() for name in own)]
    for name in keywords:
        if name not in known:
            close = did_you_mean(name, known)
            raise TypeError(f"release() got an unexpected keyword argument {name!r}{close}")
    made = {name: _merged(kind, given[name], keywords) for name, kind in OBJECTS.items()}
    about = {each.name: getattr(made["guarantee"], each.name) for each in fields(Guarantee)}
    return ReleaseSpec(
        table=made["table"], schema=given["schema"], workload=made["queries"],
        mechanism=MechanismRequest(name=given["mechanism"], given=given["options"]),
        records=made["records"], seed=given["seed"], run=made["run"],
        budget=BudgetRequest(epsilon=given["epsilon"], delta=given["delta"], **about),
        budget_file=given["budget"],
    )  # fmt: skip


def _merged(kind: type[Any], given: object, keywords: Mapping[str, Any]) -> Any:
    """Return an argument as an object, with the fields that were given as keywords."""
    own = {field: name for name, field in KEYWORDS[kind].items() if name in keywords}
    made = given if isinstance(given, kind) else kind(**{fields(kind)[0].name: given})
    for each in fields(kind):
        if each.name in own and getattr(made, each.name) != each.default:
            place = f"as a keyword and in the {kind.__name__}"
            raise BadInputError(f"{own[each.name]} is given twice: {place}; leave one out")
    return replace(made, **{field: keywords[name] for field, name in own.items()}) if own else made


def expected_error(
    queries: Queries,
    n: int,
    *,
    mechanism: str | None = None,
    options: Mapping[str, Any] | None = None,
    **budget: Any,
) -> ExpectedError | None:
    """Return the error to expect of a release, None for a mechanism without a model of it.

    Looks at no data and spends nothing. `BadInputError` if an option or the budget cannot be.

    Parameters
    ----------
    queries, n
        A `Workload`, or another family; a public number of rows, >= 2 (with a weight, the total).
    mechanism, options, budget
        As for `dualquery.release`; ``budget`` is any field of `BudgetRequest`.
    """
    if not isinstance(queries, Queries):
        raise BadInputError(f"queries is {queries!r}; a Workload is needed, or another family")
    configured = configure(mechanism, options or {})
    wanted = BudgetRequest(**budget)
    if not (isinstance(n, SupportsIndex | float) and 2 <= n < 2**63):
        raise BadInputError(f"n is {n!r}; a number of rows from 2 on is needed")
    relation, rows = wanted.relation, wanted.copies_of(n)
    bought = bought_epsilon(relation, wanted.rows, wanted.epsilon)
    units = max(2, rows // relation.copies) if relation.replaces else None
    count = RowCount(rows, relation, bought, units=units)
    rest = without_beside(wanted.resolve(configured, count)[0], (), count)
    task = Task(queries, rows, relation.copies)
    return configured.expected_error(task, configured.plan(task, rest))
