"""What `dualquery.release` is given besides plain values: one object for each part of the job.

Every field of these objects is a keyword of `release`, too, by the name that `KEYWORDS` gives it:
``release(table, way=2)`` is ``release(table, queries=WorkloadRequest(way=2))``.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dualquery.data.table import Table
from dualquery.data.units import Unit, Weight
from dualquery.requests import WorkloadRequest
from dualquery.rows.engines import Engine
from dualquery.runtime.errors import IN_PYTHON, BadInputError, did_you_mean
from dualquery.runtime.progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from dualquery.checkpoints.checkpoint import Checkpoint

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class SyntheticRecords:
    """The synthetic records of a release.

    Parameters
    ----------
    number
        How many; None for one a row, up to limits that the release states. A mechanism that fits no
        distribution repeats its own records.
    polish
        Seconds for which the records are brought nearer to the released answers, of conjunctions of
        at most 3 literals (`dualquery.releases.polish`); None for not at all. How far it gets
        depends on the machine, so a seed does not repeat the records then.
    """

    number: int | None = None
    _: KW_ONLY
    polish: float | None = None


@dataclass(frozen=True)
class Guarantee:
    """What epsilon and delta are about.

    Parameters
    ----------
    neighbours
        ``replace-one``: one row is replaced by another, and the number of rows is public.
        ``add-remove``: one row is added or removed, and the number of rows is private.
    rows
        With ``add-remove`` or ``unit``, where the number of rows is private: a public number to use
        instead. None buys a noisy one with a twenty-fifth of epsilon; under ``add-remove`` that
        needs ``delta``.
    accountant
        Who proves the guarantee: ``auto``, ``paper``, ``advanced``, ``zcdp`` or ``exact``.
    unit
        Rows that belong together, such as ``Unit("household", max_rows=5)``: what is replaced,
        added or removed is then a household with all its rows (see `dualquery.data.units`), and the
        number of households takes the place of the number of rows. None for one row.
    weight
        How much a row counts, such as ``Weight("w", max=100)`` (see `dualquery.data.units`):
        shares are then of the total weight, which is private, and ``rows`` states that. None for
        rows that count once.

    Raises
    ------
    BadInputError
        If ``unit`` or ``weight`` is something else, such as a column's name.
    """

    neighbours: str = "replace-one"
    _: KW_ONLY
    rows: int | None = None
    accountant: str = "auto"
    unit: Unit | None = None
    weight: Weight | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and not isinstance(self.unit, Unit):
            raise BadInputError(
                f"unit is {self.unit!r}; a dualquery.Unit(column, max_rows) is needed"
            )
        if self.weight is not None and not isinstance(self.weight, Weight):
            raise BadInputError(
                f"weight is {self.weight!r}; a dualquery.Weight(column, max) is needed"
            )


@dataclass(frozen=True)
class Run:
    """How a release is run. Nothing of it changes an answer or a record.

    Parameters
    ----------
    engine
        How private rows are read, or the name of one of `dualquery.rows.engines.ENGINES`: ``auto``
        takes ``stream`` for files that do not fit into memory.
    threads
        Threads for all parts; None for one a core.
    checkpoint
        Keeps what is drawn, or has it from an interrupted run that this one goes on with (see
        `dualquery.releases.reservation`). A run with a seed needs none: it can be made again.
    show_private_errors
        True to log the true errors of the answers, for yourself only. What you choose after seeing
        them is not covered by the guarantee, and the release says that they were shown.
    progress
        Listens to phases and rounds. True for lines on stderr: what is done, how long it still
        takes, and the error to expect.
    """

    engine: Engine | str = "auto"
    _: KW_ONLY
    threads: int | None = None
    checkpoint: Checkpoint | None = None
    show_private_errors: bool = False
    progress: Progress | bool | None = NO_PROGRESS

    @property
    def reading(self) -> Engine:
        """The engine.

        Raises
        ------
        BadInputError
            If there is none of that name.
        """
        return self.engine if isinstance(self.engine, Engine) else Engine(name=self.engine)


KEYWORDS: Mapping[type[Any], Mapping[str, str]] = {
    Table: {"columns": "columns", "max_ones_per_row": "max_ones_per_row", "csv": "csv"},
    WorkloadRequest: {
        "way": "way",
        "signed": "signed",
        "workload_seed": "seed",
        "query_columns": "columns",
        "marginals": "marginals",
        "max_cells": "max_cells",
        "target": "target",
        "query_items": "items",
        "means": "means",
    },
    SyntheticRecords: {"polish": "polish"},
    Guarantee: {name: name for name in ("neighbours", "rows", "accountant", "unit", "weight")},
    Run: {
        "engine": "engine",
        "threads": "threads",
        "checkpoint": "checkpoint",
        "show_private_errors": "show_private_errors",
        "progress": "progress",
    },
}
"""For each object: the keywords of `dualquery.release` that stand for its fields."""


def whole(kind: type[T], given: object, keywords: dict[str, Any]) -> T:
    """Return an argument as an object, with the fields that were given as keywords of their own.

    Parameters
    ----------
    kind
        The object's class, one of `KEYWORDS`.
    given
        Such an object, or the value of its first field.
    keywords
        The keywords that are left; those of this object are taken out.

    Raises
    ------
    BadInputError
        If a field is given both in the object and as a keyword, or cannot be.
    """
    first, *_ = fields(kind)  # type: ignore[arg-type]  # a dataclass
    known = given if isinstance(given, kind) else kind(**{first.name: given})
    names = KEYWORDS[kind]
    own = {name: keywords.pop(name) for name in [*keywords] if name in names}
    defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    for name in own:
        if getattr(known, names[name]) != defaults[names[name]]:
            raise BadInputError(
                f"{name} is given twice: as a keyword and in the {kind.__name__}; leave one out"
            )
    return replace(known, **{names[name]: value for name, value in own.items()})  # type: ignore[type-var]


_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")
_IN_PYTHON = {
    "csv": "csv=... (for a file)",
    "unit": "unit=dualquery.Unit(...)",
    "max-rows-per-unit": "unit=dualquery.Unit(...)",
    "weight": "weight=dualquery.Weight(...)",
    "max-weight": "weight=dualquery.Weight(...)",
    "positive": "signed=False",
    "scheduler": "engine=dualquery.Engine(...)",
    "answers-cache": "engine=dualquery.Engine(...)",
}
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
                if option in _IN_PYTHON or name in known:
                    told[f"--{option}"] = _IN_PYTHON.get(option, f"{name}=...")
            if told:
                error.add_note(f"{IN_PYTHON}{', '.join(map(' is '.join, told.items()))}")
            raise

    return telling


def require_known(keywords: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse what is left of the keywords, as Python does.

    Raises
    ------
    TypeError
        If any is left; the message names the closest of the known names.
    """
    for name in keywords:
        known = [*names, *(each for own in KEYWORDS.values() for each in own)]
        close = did_you_mean(name, known)
        raise TypeError(f"release() got an unexpected keyword argument {name!r}{close}")
