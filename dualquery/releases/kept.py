"""What was paid for, as files of a release folder: the noisy measurements, and the fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.releases.stored import check_described, check_files, read_table
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.domain import Domain
    from dualquery.estimates.measurements import Measurements
    from dualquery.models.protocol import Model

MEASUREMENTS, MODEL = "measurements.parquet", "model.npz"


def describe_kept(measurements: Measurements | None, model: Model | None) -> dict[str, Any]:
    """Return what ``release.json`` says of both, None for what there is not; JSON-able."""
    from dualquery.models.stored import storable

    return {
        "measurements": None if measurements is None else measurements.describe(),
        "model": model.kind if model is not None and storable(model) else None,
    }


def write_kept(measurements: Measurements | None, model: Model | None, folder: Path) -> None:
    """Write what there is. A model of a kind that only a third party's code reads is left out."""
    from dualquery.models.stored import storable, write_model

    if measurements is not None:
        measurements.table().write_parquet(folder / MEASUREMENTS)
    if model is not None and storable(model):
        write_model(model, folder / MODEL)


def read_kept(
    folder: Path, stored: Mapping[str, Any], domain: Domain
) -> tuple[Measurements | None, Model | None]:
    """Read what ``release.json`` of format 2 or newer speaks of.

    Raises
    ------
    BadInputError
        If a file is missing, damaged or of another release.
    """
    from dualquery.estimates.measurements import Measurements, factors_of
    from dualquery.models.stored import read_model

    measurements, model = None, None
    described = stored["measurements"]
    if described is not None:
        check_files(folder, (MEASUREMENTS,))
        check_described(described)
        measurements = Measurements.from_table(read_table(folder / MEASUREMENTS), described)
        queries = measurements.queries
        try:
            factors_of(measurements.factors, domain)
        except IndexError:
            raise BadInputError("the measurements name bits that the schema has not") from None
        if np.any(queries < -1) or np.any(queries >= stored["queries"]):
            raise BadInputError("the measurements name queries that the workload has not")
        if len(measurements) != described["numbers"]:
            raise BadInputError(
                f"{len(measurements):,} measurements found, but release.json speaks of "
                f"{described['numbers']:,}; copy the release again"
            )
    if stored["model"] is not None:
        check_files(folder, (MODEL,))
        model = read_model(folder / MODEL, domain)
    return measurements, model
