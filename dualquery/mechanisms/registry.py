"""Mechanisms by name: the built-in table, then third parties' entry points."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Collection, Mapping
from dataclasses import fields
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from dualquery.runtime.errors import BadInputError, did_you_mean

if TYPE_CHECKING:
    from dualquery.mechanisms.protocol import Mechanism

BUILT_IN: Mapping[str, str] = {
    "dualquery": "dualquery.mechanisms.dualquery.game:DualQuery",
    "auto": "dualquery.mechanisms.auto:Auto",
    "gaussian": "dualquery.mechanisms.baselines.noisy_answers:Gaussian",
    "matrix": "dualquery.mechanisms.matrix.mechanism:Matrix",
    "laplace": "dualquery.mechanisms.baselines.noisy_answers:Laplace",
    "independent": "dualquery.mechanisms.baselines.independent:Independent",
    "uniform": "dualquery.mechanisms.baselines.uniform:Uniform",
    "zero": "dualquery.mechanisms.baselines.zero:Zero",
    "smalldb": "dualquery.mechanisms.baselines.smalldb:SmallDB",
    "randomized-response": "dualquery.mechanisms.baselines.randomized_response:RandomizedResponse",
    "mwem": "mwem.mechanism:Mwem",
    "mwem-sampled": "mwem.sampled.mechanism:MwemSampled",
    "barak": "mwem.barak:Barak",
}
ENTRY_POINTS = "dualquery.mechanisms"


def mechanism_names() -> list[str]:
    """Return the names of all mechanisms that can be used here."""
    return [
        *BUILT_IN,
        *(e.name for e in entry_points(group=ENTRY_POINTS) if e.name not in BUILT_IN),
    ]


def implied_mechanism(options: Collection[str]) -> str:
    """Return the mechanism meant where none is named: options without a name are DualQuery's."""
    return "dualquery" if options else "auto"


def check_mechanism(name: str) -> None:
    """Raise `BadInputError` unless there is a mechanism of that name; imports none."""
    known = mechanism_names()
    if name not in known:
        raise BadInputError(
            f"unknown mechanism {name!r}{did_you_mean(name, known)} (known: {', '.join(known)})"
        )


def mechanism_class(name: str) -> type[Any]:
    """Return the configuration class of a mechanism.

    Raises
    ------
    BadInputError
        If there is none of that name, or a third party's cannot be imported.
    """
    check_mechanism(name)
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: type[Any] = getattr(importlib.import_module(module), attribute)
        return found
    entry, *_ = entry_points(group=ENTRY_POINTS, name=name)
    try:
        loaded: type[Any] = entry.load()
    except ImportError as error:
        raise BadInputError(
            f"mechanism {name!r} ({entry.value}) cannot be imported: {error}"
        ) from error
    return loaded


def configure(name: str | None, options: Mapping[str, Any]) -> Mechanism[Any]:
    """Build a mechanism from option names and values; values may be text.

    Parameters
    ----------
    name
        The mechanism; None for the one that the options imply (see `implied_mechanism`).
    options
        Fields of its configuration, or their aliases, as given by the user.

    Raises
    ------
    BadInputError
        If an option is unknown to the mechanism or its value does not fit.
    """
    implied = name is None
    name = implied_mechanism(options) if name is None else name
    cls = mechanism_class(name)
    hints = typing.get_type_hints(cls)
    known = [field.name for field in fields(cls)]
    aliases: Mapping[str, str] = getattr(cls, "aliases", {})  # third parties' may have none
    values: dict[str, Any] = {}
    for given, value in options.items():
        key = aliases.get(given, given)
        if key in values:
            raise BadInputError(f"option {key} is given twice, once as {given}")
        if key not in known:
            listed = ", ".join(known) or "none"
            guess = did_you_mean(key, known)
            remedy = "; name the mechanism that has it" if implied or name == "auto" else ""
            raise BadInputError(
                f"mechanism {name!r} has no option {key!r}{guess} (its options: {listed}){remedy}"
            )
        values[key] = _parse(key, value, hints[key]) if isinstance(value, str) else value
    mechanism: Mechanism[Any] = cls(**values)
    return mechanism


def _parse(key: str, text: str, hint: Any) -> Any:
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
