"""What `dualquery.release` is given: plain values, and one object for each part of the job.

Every field of these objects is a keyword of `release`, too, by the name that `KEYWORDS` gives it:
``release(table, way=2)`` is ``release(table, queries=WorkloadRequest(way=2))``.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, ParamSpec, TypeVar

from dualquery.data.table import Table
from dualquery.requests import (
    BudgetRequest,
    Guarantee,
    MechanismRequest,
    ReleaseSpec,
    Run,
    SyntheticRecords,
    WorkloadRequest,
)
from dualquery.runtime.errors import IN_PYTHON, BadInputError, did_you_mean
from dualquery.runtime.option_fields import keywords_of, only_in_objects

T = TypeVar("T")
P = ParamSpec("P")

OBJECTS = {
    "table": Table, "queries": WorkloadRequest, "records": SyntheticRecords,
    "guarantee": Guarantee, "run": Run,
}  # fmt: skip
"""Arguments of `release` that are objects, or the value of their first field."""

PLAIN = ("schema", "mechanism", "options", "epsilon", "delta", "budget", "seed")
"""Its other arguments."""

KEYWORDS: Mapping[type[Any], Mapping[str, str]] = {
    kind: {
        name: field
        for name, field in keywords_of(kind).items()
        if name not in (*OBJECTS, *PLAIN, "data")
    }
    for kind in OBJECTS.values()
}
"""For each object: the keywords of `dualquery.release` that stand for its fields."""


def spec_of(given: Mapping[str, Any], keywords: Mapping[str, Any]) -> ReleaseSpec:
    """Return the request that the arguments of `dualquery.release` make, checked.

    Parameters
    ----------
    given
        The arguments that it names, by name.
    keywords
        All others.

    Raises
    ------
    BadInputError
        If something cannot be whatever the table, or is given twice.
    TypeError
        If there is no such keyword; the message names the closest one.
    """
    known = [*given, *(name for own in KEYWORDS.values() for name in own)]
    for name in keywords:
        if name not in known:
            close = did_you_mean(name, known)
            raise TypeError(f"release() got an unexpected keyword argument {name!r}{close}")
    made = {name: _merged(kind, given[name], keywords) for name, kind in OBJECTS.items()}
    about = {each.name: getattr(made["guarantee"], each.name) for each in fields(Guarantee)}
    return ReleaseSpec(
        table=made["table"],
        schema=given["schema"],
        workload=made["queries"],
        mechanism=MechanismRequest(name=given["mechanism"], given=given["options"]),
        records=made["records"],
        budget=BudgetRequest(epsilon=given["epsilon"], delta=given["delta"], **about),
        budget_file=given["budget"],
        seed=given["seed"],
        run=made["run"],
    )


def _merged(kind: type[Any], given: object, keywords: Mapping[str, Any]) -> Any:
    """Return an argument as an object, with the fields that were given as keywords."""
    first, *_ = fields(kind)
    names, defaults = KEYWORDS[kind], {field.name: field.default for field in fields(kind)}
    own = {names[name]: value for name, value in keywords.items() if name in names}
    if not isinstance(given, kind):
        if first.name in own and given != defaults[first.name]:
            own_name = next(name for name, field in names.items() if field == first.name)
            raise BadInputError(_TWICE.format(own_name, kind.__name__))
        return kind(**{first.name: given, **own})
    for name, field in names.items():
        if field in own and getattr(given, field) != defaults[field]:
            raise BadInputError(_TWICE.format(name, kind.__name__))
    return replace(given, **own) if own else given


_TWICE = "{} is given twice: as a keyword and in the {}; leave one out"

_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")
_IN_PYTHON = {
    **only_in_objects(ReleaseSpec), "csv": "csv=... (for a file)", "positive": "signed=False"
}  # fmt: skip
"""What stands in Python for options whose own names say too little."""


def told_in_python(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose errors note the keywords for the options that messages name.

    Messages name options as the command line does. It does not show notes, Python does.

    Parameters
    ----------
    function
        Takes the fields of the objects as keywords, too.
    """
    names = [*inspect.signature(function).parameters]
    known = {*names, *(name for own in KEYWORDS.values() for name in own)}

    @functools.wraps(function)
    def telling(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*args, **keywords)
        except BadInputError as error:
            told = {}
            for option in _OPTION.findall(str(error)):
                name = option.replace("-", "_")
                if name in _IN_PYTHON or name in known:
                    told[f"--{option}"] = _IN_PYTHON.get(name, f"{name}=...")
            if told:
                error.add_note(f"{IN_PYTHON}{', '.join(map(' is '.join, told.items()))}")
            raise

    return telling
