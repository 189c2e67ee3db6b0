"""A mechanism's options: read from the user's text, and checked.

Options are the fields of a mechanism's frozen dataclass. Their types say how a text is read, and
which of them may be None: those whose default is None, for "chosen by the mechanism".
"""

import math
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

from dualquery.runtime.errors import BadInputError, did_you_mean


def read_options(
    name: str, cls: type[Any], given: Mapping[str, Any], remedy: str
) -> dict[str, Any]:
    """Return values for the fields of a mechanism's configuration, given by names or aliases.

    A text is read as the type of its field. `BadInputError`, which ends with ``remedy``, if an
    option is unknown; also if it is given twice, or a text that its field cannot hold.
    """
    hints = typing.get_type_hints(cls)
    known = [field.name for field in fields(cls)]
    aliases: Mapping[str, str] = getattr(cls, "aliases", {})  # third parties' may have none
    values: dict[str, Any] = {}
    for written, value in given.items():
        key = aliases.get(written, written)
        if key in values:
            raise BadInputError(f"option {key} is given twice, once as {written}")
        if key not in known:
            listed = ", ".join(known) or "none"
            guess = did_you_mean(key, known)
            raise BadInputError(
                f"mechanism {name!r} has no option {key!r}{guess} (its options: {listed}){remedy}"
            )
        values[key] = _read(key, value, hints[key]) if isinstance(value, str) else value
    return values


def _read(key: str, text: str, hint: Any) -> Any:
    """Read an option's text as the type that its field declares."""
    allowed = [h for h in typing.get_args(hint) if h is not type(None)] or [hint]
    if text.lower() == "none" and type(None) in typing.get_args(hint):
        return None
    if typing.get_origin(hint) is typing.Literal:
        allowed = [str]
    for kind in allowed:
        if kind is str or typing.get_origin(kind) is typing.Literal:
            return text
        if kind is bool:
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            continue
        try:
            return kind(text)
        except ValueError:
            continue
    names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in allowed)
    raise BadInputError(f"option {key}={text!r} is not a valid {names}")


def check_whole(options: Any, *names: str, least: int = 1) -> None:
    """Raise `BadInputError` unless these options are whole numbers of at least ``least``."""
    for name, value in _given(options, names):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value < 2**63:
            raise BadInputError(
                f"{name} is {value!r}; a whole number of at least {least}, below 2^63, is needed"
            )


def check_number(options: Any, needed: str, valid: Callable[[float], bool], *names: str) -> None:
    """Raise `BadInputError`, which says what is needed, unless these are valid finite numbers."""
    for name, value in _given(options, names):
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not (number and math.isfinite(value) and valid(value)):
            raise BadInputError(f"{name} is {value!r}; {needed} is needed")


def check_choice(options: Any, *names: str, known: str = "known") -> None:
    """Raise `BadInputError` unless these options are among the texts that their types list."""
    hints = typing.get_type_hints(type(options))
    for name in names:
        value = getattr(options, name)
        texts = typing.get_args(hints[name])
        if value not in texts:
            raise BadInputError(f"{name} is {value!r}; {known}: {', '.join(texts)}")


def _given(options: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield names and values, without those that are left to the mechanism."""
    defaults = {field.name: field.default for field in fields(options)}
    for name in names:
        value = getattr(options, name)
        if value is not None or defaults[name] is not None:
            yield name, value
