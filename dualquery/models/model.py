"""What a release keeps of a fit: a public distribution over records, in a file of plain arrays.

A model is post-processing of private draws, so to ask it or to draw records from it costs nothing.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.literals import LiteralRows
from dualquery.runtime.array_files import read_arrays
from dualquery.runtime.errors import BadInputError

LARGEST = 1 << 32
"""Bytes of a model's arrays: a thousand components over a million bits."""

KINDS: Mapping[str, str] = {
    "mixture": "dualquery.models.mixture:ProductMixture",
    "labelled mixture": "dualquery.models.labelled:LabelledMixture",
}
"""Modules and classes of the models that can be stored, by their kind."""


class Model(Protocol):
    """A distribution over legal records."""

    kind: ClassVar[str]
    """By which a stored model is read again (`KINDS`)."""

    @property
    def domain(self) -> Domain:
        """The columns of the records."""

    def answers(self, queries: LiteralRows) -> NDArray[np.float64]:
        """Return the chance of every conjunction: float64, shape ``(m,)``, in [0, 1]."""

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return legal records in random order, uint8, shape ``(count, bits)``.

        They are the model rounded, as evenly as it can be, and not draws on their own.
        """

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return what the model consists of, as arrays of numbers."""


def write_model(model: Model, path: Path) -> None:
    """Write a model's kind and arrays, compressed. The file depends on these alone."""
    np.savez_compressed(path, kind=np.array(model.kind), **model.arrays())  # type: ignore[arg-type]


def read_model(path: Path, domain: Domain) -> Model:
    """Read a model; `BadInputError` if the file holds none of the domain, or of an unknown kind."""
    try:
        with path.open("rb") as stream:
            arrays = dict(read_arrays(stream, LARGEST))
        kind = str(arrays.pop("kind"))
        if kind not in KINDS:
            why = f"a model of kind {kind!r}, which this version does not know; upgrade dualquery"
            raise BadInputError(f"{path.name} holds {why}")
        module, name = KINDS[kind].split(":")
        model: Model = getattr(import_module(module), name)(domain, **arrays)
    except (OSError, KeyError, TypeError, ValueError) as fault:
        raise BadInputError(
            f"{path.name} is damaged ({fault}); copy the release again from where it was made"
        ) from None
    return model
