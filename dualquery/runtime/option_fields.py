"""An option is declared once: as a field of one of the request's dataclasses.

The command line, keywords in Python, configuration files, checkpoints and the pages' tables of
options are derived from these fields.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from dualquery.runtime.errors import BadInputError

DATA, WORKLOAD, MECHANISM, BUDGET = "Data", "Workload", "Mechanism", "Budget"
RUN = "Run and output"
"""Headings of the help."""

_OPTION, _PART = "option", "part"
_NUMBERS: Mapping[str, type[Any]] = {"int": int, "float": float}
_TYPES: Mapping[str, tuple[type[Any], str]] = {
    "int": (int, "a whole number"), "float": (Real, "a number"), "bool": (bool, "True or False"),
    "str": (str, "a text"), "Sequence[str | int] | str": (Iterable, "a list of names"),
    "Mapping[str, Any] | Sequence[str]": (Iterable, "a mapping"),
}  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """What readers of an option need."""

    help: str  # one or two sentences for people
    panel: str  # its heading in the help
    name: str = ""  # in Python, in configuration files and checkpoints
    flags: tuple[str, ...] | None = None  # on the command line; none for an argument without one
    default: Any = None
    kind: Any = None  # type of what is typed; None for that of the default, or of the field
    read: Callable[[Any], Any] | None = None  # makes the value of what was typed; None: as it is
    least: int | None = None  # smallest number
    metavar: str = ""  # what stands for the value in the help
    attempt: bool = False  # whether each attempt may have its own: it changes no result


def option(default: Any, help: str, panel: str = "", *, typed: Any = None, **more: Any) -> Any:
    """Return a dataclass's field that is an option.

    ``panel`` is by default the class's; ``typed`` is a default for what is typed only.
    """
    more = {"default": typed if default is MISSING else default, **more}
    return field(default=default, metadata={_OPTION: Option(help, panel, **more)})


def part(kind: type[Any], default: Any = MISSING) -> Any:
    """Return a dataclass's field that holds an object with options, by default of its defaults."""
    metadata = {_PART: kind}
    if default is MISSING:
        return field(default_factory=kind, metadata=metadata)
    return field(default=default, metadata=metadata)


def options_of(kind: type[Any]) -> dict[str, Option]:
    """Return all options of a request's class and its parts by name, its own before inherited."""
    found: dict[str, Option] = {}
    for each in sorted(fields(kind), key=lambda each: each.name not in kind.__annotations__):
        if _PART in each.metadata:
            found |= options_of(each.metadata[_PART])
        elif _OPTION in each.metadata:
            declared: Option = each.metadata[_OPTION]
            name = declared.name or each.name
            usual = (f"--{name.replace('_', '-')}",)
            flags = usual if declared.flags is None else declared.flags
            own = str if declared.default is None else type(declared.default)
            typed = declared.kind or _NUMBERS.get(str(each.type).removesuffix(" | None"), own)
            panel = declared.panel or kind.panel
            found[name] = replace(declared, name=name, flags=flags, kind=typed, panel=panel)
    return found


def check_options(request: object) -> None:
    """Make NumPy's numbers Python's; `BadInputError` for what no option's type and least allow."""
    for each in (each for each in fields(request) if _OPTION in each.metadata):  # type: ignore[arg-type]
        declared = each.metadata[_OPTION]
        value = plain(getattr(request, each.name))
        object.__setattr__(request, each.name, value)
        kind, optional, _ = str(each.type).partition(" | None")
        types, needed = _TYPES.get(kind, (object, ""))
        right = isinstance(value, types) and not (kind in _NUMBERS and isinstance(value, bool))
        if isinstance(value, Real) and declared.least is not None and value < declared.least:
            right, needed = False, f"at least {declared.least}"
        if not right and not (value is None and optional):
            flag = (declared.name or each.name).replace("_", "-")
            raise BadInputError(f"--{flag} is {value!r}; {needed} is needed")


def plain(value: Any) -> Any:
    """Return a number as one of Python's own, anything else as it is."""
    value = value.item() if isinstance(value, np.generic) else value
    return float(value) if isinstance(value, Real) and not isinstance(value, Integral) else value


def keywords_of(kind: type[Any]) -> dict[str, str]:
    """Return the keywords in Python that stand for the fields of a class, each with its field."""
    return {
        getattr(each.metadata.get(_OPTION), "name", "") or each.name: each.name
        for each in fields(kind)
        if each.init
    }


def built(kind: type[T], typed: Mapping[str, Any]) -> T:
    """Return a request made of what was typed, by the options' names, and defaults."""
    values = {}
    for each in fields(kind):  # type: ignore[arg-type]  # a dataclass
        if _PART in each.metadata:
            make = together if each.default is None else built
            values[each.name] = make(each.metadata[_PART], typed)
        elif _OPTION in each.metadata:
            declared: Option = each.metadata[_OPTION]
            value = typed.get(declared.name or each.name, declared.default)
            read = declared.read if value is not None else None
            values[each.name] = value if read is None else read(value)
    return kind(**values)


def together(kind: type[T], typed: Mapping[str, Any]) -> T | None:
    """Return what options say that need each other; None if none was typed."""
    flags = {f"--{name.replace('_', '-')}": typed.get(name) for name in options_of(kind)}
    said = [f"{flag} {value}" for flag, value in flags.items() if value is not None]
    unsaid = [flag for flag, value in flags.items() if value is None]
    if said and unsaid:
        raise BadInputError(f"{said[0]} needs {unsaid[0]}; choose it without looking at the table")
    return built(kind, typed) if said else None
