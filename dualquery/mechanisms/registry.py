"""Mechanisms by name: the built-in table, then third parties' entry points."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from dualquery.mechanisms.options import read_options
from dualquery.runtime.errors import BadInputError, did_you_mean
from dualquery.runtime.option_fields import plain

if TYPE_CHECKING:
    from dualquery.mechanisms.protocol import Mechanism

BUILT_IN: Mapping[str, str] = {
    "auto": "dualquery.mechanisms.auto:Auto",
    "adaptive": "dualquery.mechanisms.adaptive.mechanism:Adaptive",
    "matrix": "dualquery.mechanisms.adaptive.mechanism:Matrix",
    "staged": "dualquery.mechanisms.adaptive.mechanism:Staged",
    "probed": "dualquery.mechanisms.adaptive.mechanism:Probed",
    "dualquery": "dualquery.mechanisms.dualquery.game:DualQuery",
    "mwem": "mwem.mechanism:Mwem",
    "mwem-sampled": "mwem.sampled.sampled_mechanism:MwemSampled",
    "gaussian": "dualquery.mechanisms.baselines.noisy_answers:GaussianAnswers",
    "laplace": "dualquery.mechanisms.baselines.noisy_answers:LaplaceAnswers",
    "independent": "dualquery.mechanisms.baselines.independent:Independent",
    "uniform": "dualquery.mechanisms.baselines.data_blind:Uniform",
    "zero": "dualquery.mechanisms.baselines.data_blind:Zero",
    "smalldb": "dualquery.mechanisms.baselines.smalldb:SmallDB",
    "barak": "mwem.barak:Barak",
    "randomized-response": "dualquery.mechanisms.baselines.randomized_response:RandomizedResponse",
}
ENTRY_POINTS = "dualquery.mechanisms"


def mechanism_names() -> list[str]:
    """Return the names of all mechanisms that can be used here."""
    return [*dict.fromkeys([*BUILT_IN, *(e.name for e in entry_points(group=ENTRY_POINTS))])]


AUTOMATIC = ("adaptive", "dualquery", "mwem")
"""The mechanisms that `auto` chooses among; it takes the first one wherever it can."""
PRESETS = ("matrix", "staged", "probed")
"""Names of `adaptive` with a fixed first stage, which go in 0.3."""


def implied_mechanism(options: Collection[str]) -> str:
    """Return the mechanism to use where none is named: ``auto``, or a game that has the options."""
    if not options or has_options(AUTOMATIC[0], options):
        return "auto"
    games = AUTOMATIC[1:]
    return next((name for name in games if has_options(name, options)), games[0])


def has_options(mechanism: str, options: Collection[str]) -> bool:
    """Return whether a mechanism has options of all these names (or aliases)."""
    cls = mechanism_class(mechanism)
    return {cls.aliases.get(name, name) for name in options} <= {f.name for f in fields(cls)}


def check_mechanism(name: str) -> None:
    """Raise `BadInputError` unless there is a mechanism of that name; imports none."""
    known = mechanism_names()
    if name not in known:
        raise BadInputError(
            f"unknown mechanism {name!r}{did_you_mean(name, known)} (known: {', '.join(known)})"
        )


def mechanism_class(name: str) -> type[Any]:
    """Return the configuration class of a mechanism; `BadInputError` if it cannot be imported."""
    check_mechanism(name)
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: type[Any] = getattr(importlib.import_module(module), attribute)
        return found
    entry, *_ = entry_points(group=ENTRY_POINTS, name=name)
    try:
        loaded: type[Any] = entry.load()
    except Exception as error:  # whatever is wrong with what is not ours
        said = f"mechanism {name!r} ({entry.value}) cannot be imported: {error}"
        raise BadInputError(said) from error
    return loaded


def configure(name: str | None, options: Mapping[str, Any]) -> Mechanism[Any]:
    """Build a mechanism from the names (or aliases) and values of options; values may be text.

    A name of None stands for the mechanism that the options imply (see `implied_mechanism`). What
    ``auto`` is given is for the mechanism that it will choose. `BadInputError` if an option is
    unknown to the mechanism, of ``auto`` to all that it chooses among, or its value does not fit.
    """
    options, implied = {key: plain(value) for key, value in options.items()}, name is None
    name = implied_mechanism(options) if name is None else name
    cls = mechanism_class(name)
    if name == "auto" and options:
        # So that a value that does not fit is refused at once.
        able = [configure(each, options) for each in AUTOMATIC if has_options(each, options)]
        if able:
            made: Mechanism[Any] = cls(options=options, records=getattr(able[0], "records", None))
            return made
    remedy = "; name the mechanism that has it" if implied or name == "auto" else ""
    mechanism: Mechanism[Any] = cls(**read_options(name, cls, options, remedy))
    return mechanism


def with_records(mechanism: Mechanism[Any], records: int | None) -> Mechanism[Any]:
    """Return the mechanism that makes this number of records, if it has an option for it.

    None leaves it as it is. `BadInputError` if it makes none, or another or no possible number.
    """
    if records is None:
        return mechanism
    if not getattr(mechanism, "makes_records", True):
        raise BadInputError(
            f"{mechanism.name!r} makes no synthetic records: take adaptive, or ask for none"
        )
    own = getattr(mechanism, "records", None)
    if own not in (None, records):
        raise BadInputError(f"--records is {records}, and -o records is {own}; give one of them")
    return replace(mechanism, records=records) if hasattr(mechanism, "records") else mechanism  # type: ignore[type-var]  # a frozen dataclass
