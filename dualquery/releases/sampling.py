"""New records from a finished release: post-processing, free of charge, as many as one likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.models.protocol import Model

BLOCK_CELLS = 1 << 28
"""Records times bits that are drawn at once: 256 MiB."""

Source = Literal["model", "records"]


class Sampled(Protocol):
    """What records are drawn from: a `dualquery.releases.folder.Release`."""

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        ...

    @property
    def schema(self) -> Schema:
        """Columns and bits."""
        ...

    @property
    def model(self) -> Model | None:
        """The fitted distribution."""
        ...

    @property
    def records(self) -> NDArray[np.uint8] | None:
        """The release's own records, uint8 ``(r, bits)``."""
        ...


def source_of_records(release: Sampled) -> Source:
    """Return what new records come from: the model, or the records where there is none.

    Raises
    ------
    BadInputError
        If the release has neither.
    """
    if release.model is not None:
        return "model"
    if release.records is not None:
        return "records"
    raise BadInputError(
        f"mechanism {release.mechanism!r} makes no synthetic records; use one that does, such as "
        "matrix, dualquery or mwem"
    )


def sampled_blocks(
    release: Sampled, count: int, generator: np.random.Generator
) -> Iterator[NDArray[np.uint8]]:
    """Yield ``count`` records in blocks of at most `BLOCK_CELLS` cells: uint8 ``(r, bits)``.

    A model is rounded to each block; records of a release are taken equally often, but for a random
    remainder, in random order.

    Raises
    ------
    BadInputError
        If ``count`` is negative, or the release has nothing to draw from.
    """
    if count < 0:
        raise BadInputError(f"cannot draw {count} records; ask for 0 or more")
    source_of_records(release)
    step = max(1, BLOCK_CELLS // release.schema.domain.bits)
    for first in range(0, max(count, 1), step):
        size = min(step, count - first)
        if release.model is not None:
            yield release.model.sample(size, generator)
        elif release.records is not None:
            yield resampled(release.records, size, generator)


def resampled(
    records: NDArray[np.uint8], count: int, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Return ``count`` records in random order, each taken equally often but for a remainder."""
    whole = np.repeat(np.arange(len(records)), count // len(records))
    rest = generator.choice(len(records), size=count % len(records), replace=False)
    order = generator.permutation(np.concatenate([whole, rest]))
    return np.take(records, order, axis=0)
