"""Models as files: arrays of numbers in NumPy's ``.npz``, without pickled objects."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np

from dualquery.data.domain import Domain
from dualquery.models.protocol import Model
from dualquery.runtime.array_files import read_arrays
from dualquery.runtime.errors import BadInputError

LARGEST = 1 << 32
"""Bytes of a model's arrays: a thousand components over a million bits."""

KINDS: Mapping[str, str] = {
    "mixture": "dualquery.models.mixture:ProductMixture",
    "labelled mixture": "dualquery.models.labelled:LabelledMixture",
}
"""Modules and classes of the models that can be stored, by their kind."""


def storable(model: Model) -> bool:
    """Return whether a model is one that `read_model` reads."""
    return model.kind in KINDS


def write_model(model: Model, path: Path) -> None:
    """Write a model's kind and arrays, compressed. The file depends on these alone."""
    np.savez_compressed(path, kind=np.array(model.kind), **model.arrays())  # type: ignore[arg-type]


def read_model(path: Path, domain: Domain) -> Model:
    """Read a model.

    Raises
    ------
    BadInputError
        If the file holds no model of the domain, or one of a kind that is not known here.
    """
    try:
        with path.open("rb") as stream:
            arrays = dict(read_arrays(stream, LARGEST))
        kind = str(arrays.pop("kind"))
        place = KINDS.get(kind)
        if place is None:
            raise BadInputError(
                f"{path.name} holds a model of kind {kind!r}, which this version does not know; "
                "upgrade dualquery"
            )
        module, name = place.split(":")
        model: Model = getattr(import_module(module), name)(domain, **arrays)
    except (OSError, KeyError, TypeError, ValueError) as fault:
        raise BadInputError(
            f"{path.name} is damaged ({fault}); copy the release again from where it was made"
        ) from None
    return model
