"""New records from a finished release: post-processing, free of charge, as many as one likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.protocol import MOST_RECORDS, Outcome, default_records
from dualquery.releases.agreeing import following_records
from dualquery.rules.reading import rules_of
from dualquery.rules.repair import repaired
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.means import BoughtMean
    from dualquery.models.protocol import Model

BLOCK_CELLS = 1 << 28
"""Records times bits that are drawn at once: 256 MiB."""

Source = Literal["model", "records"]


class Sampled(Protocol):
    """What records are drawn from: a `dualquery.releases.folder.Release`."""

    @property
    def chosen(self) -> str:
        """The name of the mechanism that made it."""
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

    @property
    def means(self) -> tuple[BoughtMean, ...]:
        """Means of columns that were bought."""
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
        f"mechanism {release.chosen!r} makes no synthetic records; use one that does, such as "
        "matrix, dualquery or mwem"
    )


def sampled_blocks(
    release: Sampled, count: int, generator: np.random.Generator
) -> Iterator[NDArray[np.uint8]]:
    """Yield ``count`` records in blocks of at most `BLOCK_CELLS` cells: uint8 ``(r, bits)``.

    They keep the rules of the schema, and follow means that were bought (`agreeing`). A model is
    rounded to each block; records of a release are taken equally often, but for a random remainder,
    in random order.

    Raises
    ------
    BadInputError
        If ``count`` is negative, or the release has nothing to draw from.
    """
    if count < 0:
        raise BadInputError(f"cannot draw {count} records; ask for 0 or more")
    source_of_records(release)
    rules = rules_of(release.schema)
    step = max(1, BLOCK_CELLS // release.schema.domain.bits)
    for first in range(0, max(count, 1), step):
        size = min(step, count - first)
        if release.model is not None:
            records = release.model.sample(size, generator)
        elif release.records is not None:
            records = resampled(release.records, size, generator)
        records = repaired(records, rules, generator)
        yield following_records(records, release.records, release.schema, release.means, generator)


def finished_records(
    outcome: Outcome, wanted: int | None, n: int, seed: int | None
) -> tuple[NDArray[np.uint8] | None, tuple[str, ...]]:
    """Return the records of a release, and remarks on their number.

    Parameters
    ----------
    outcome
        What the mechanism gave.
    wanted
        Number of records asked for; None for the mechanism's own.
    n
        Public number of rows.
    seed
        Seed of public randomness, or None.
    """
    records, model = outcome.records, outcome.model
    if records is None:
        asked = () if wanted is None else ("no synthetic records were made, although asked for",)
        return None, asked
    count, bits = records.shape
    if wanted is not None and wanted != count:
        generator = np.random.default_rng(seed)
        if model is not None:
            return model.sample(wanted, generator), ()
        return resampled(records, wanted, generator), (
            f"the {wanted:,} synthetic records repeat the {count:,} that the mechanism made",
        )
    if wanted is None and model is not None and count == default_records(n, model.domain) < n:
        return records, (
            f"{count:,} synthetic records, not one a row, because a release has at most "
            f"{MOST_RECORDS:,}, and fewer of {bits:,} bits, unless --records asks for more",
        )
    return records, ()


def resampled(
    records: NDArray[np.uint8], count: int, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Return ``count`` records in random order, each taken equally often but for a remainder."""
    whole = np.repeat(np.arange(len(records)), count // len(records))
    rest = generator.choice(len(records), size=count % len(records), replace=False)
    order = generator.permutation(np.concatenate([whole, rest]))
    return np.take(records, order, axis=0)
