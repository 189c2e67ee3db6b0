"""Mechanisms by name: the built-in table, then third parties' entry points."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from dualquery.mechanisms.options import read_options
from dualquery.runtime.errors import BadInputError, did_you_mean

if TYPE_CHECKING:
    from dualquery.mechanisms.protocol import Mechanism

BUILT_IN: Mapping[str, str] = {
    "dualquery": "dualquery.mechanisms.dualquery.game:DualQuery",
    "auto": "dualquery.mechanisms.auto:Auto",
    "gaussian": "dualquery.mechanisms.baselines.noisy_answers:Gaussian",
    "matrix": "dualquery.mechanisms.matrix.mechanism:Matrix",
    "staged": "dualquery.mechanisms.matrix.staged:Staged",
    "laplace": "dualquery.mechanisms.baselines.noisy_answers:Laplace",
    "independent": "dualquery.mechanisms.baselines.independent:Independent",
    "uniform": "dualquery.mechanisms.baselines.data_blind:Uniform",
    "zero": "dualquery.mechanisms.baselines.data_blind:Zero",
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
    """Return the mechanism to use where none is named: DualQuery if there are options."""
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
    """Build a mechanism from the names (or aliases) and values of options; values may be text.

    A name of None stands for the mechanism that the options imply (see `implied_mechanism`).

    Raises
    ------
    BadInputError
        If an option is unknown to the mechanism or its value does not fit.
    """
    implied = name is None
    name = implied_mechanism(options) if name is None else name
    cls = mechanism_class(name)
    remedy = "; name the mechanism that has it" if implied or name == "auto" else ""
    mechanism: Mechanism[Any] = cls(**read_options(name, cls, options, remedy))
    return mechanism


def with_records(
    mechanism: Mechanism[Any], records: int | None, polish: float | None = None
) -> Mechanism[Any]:
    """Return the mechanism that makes so many records, if it has an option for their number.

    None leaves it as it is. To ``polish`` records, the mechanism must make some.

    Raises
    ------
    BadInputError
        If it makes none, the number cannot be, or another one was given as its option.
    """
    asked = {"--records": records, "--polish": polish}
    for option in (name for name, value in asked.items() if value is not None):
        if not getattr(mechanism, "makes_records", True):
            raise BadInputError(
                f"mechanism {mechanism.name!r} makes no synthetic records; leave {option} out, or "
                "use a mechanism that does, such as matrix, dualquery or mwem"
            )
    if records is None:
        return mechanism
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise BadInputError(f"--records is {records!r}; a whole number from 1 on is needed")
    own = getattr(mechanism, "records", records)
    if own not in (None, records):
        raise BadInputError(f"--records is {records}, and -o records is {own}; give one of them")
    return replace(mechanism, records=records) if hasattr(mechanism, "records") else mechanism  # type: ignore[type-var]  # a frozen dataclass
