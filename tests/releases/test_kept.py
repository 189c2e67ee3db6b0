"""What a release keeps of what was paid for: it comes back, and what is damaged is refused."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualquery.models.mixture import ProductMixture
from dualquery.releases.keep.folder import Release, load_release
from dualquery.releases.keep.stored import MEASUREMENTS, MODEL
from dualquery.runtime.errors import BadInputError
from tests.tables import release_people, reseal
from tests.verification.test_verify import edit, put


@pytest.fixture(scope="module")
def made() -> Release:
    small = {"components": 16, "steps": 50, "records": 50}
    return release_people(queries=40, way=2, mechanism="matrix", options=small)


@pytest.fixture
def saved(made, tmp_path) -> Path:
    return made.save(tmp_path / "out")


def test_measurements_and_model_come_back(made, saved) -> None:
    again = load_release(saved)
    for name in ("starts", "factors", "queries", "values", "deviations", "absent"):
        read, kept = (getattr(each.measurements, name) for each in (again, made))
        np.testing.assert_array_equal(read, kept)
    assert again.measurements.describe() == made.measurements.describe()
    np.testing.assert_array_equal(again.model.chances, made.model.chances)
    np.testing.assert_array_equal(again.model.weights, made.model.weights)


def test_a_model_of_a_third_party_is_used_but_not_stored(made, tmp_path) -> None:
    class Own(ProductMixture):
        kind = "own"

    own = Own(made.model.domain, made.model.weights, made.model.chances)
    folder = replace(made, model=own).save(tmp_path / "out")
    assert load_release(folder).model is None
    assert not (folder / MODEL).exists()


@pytest.mark.parametrize("name", [MEASUREMENTS, MODEL])
def test_a_missing_or_damaged_file_is_refused(saved, name) -> None:
    content = (saved / name).read_bytes()
    for damaged in (content[: len(content) // 2], b""):
        (saved / name).write_bytes(damaged)
        with pytest.raises(BadInputError, match="damaged"):
            load_release(saved)
    (saved / name).unlink()
    with pytest.raises(BadInputError, match=name):
        load_release(saved)


@pytest.mark.parametrize(("column", "number"), [("value", 1e300), ("deviation", math.nan)])
def test_a_measurement_that_cannot_be_is_refused_by_its_row(saved, column, number) -> None:
    """With the digests of a careful forger."""
    table = pl.read_parquet(saved / MEASUREMENTS)
    table[3, column] = number
    table.write_parquet(saved / MEASUREMENTS)
    reseal(saved)
    with pytest.raises(BadInputError, match=rf"measurement 3 .*its {column} is"):
        load_release(saved)


def test_a_folder_of_format_1_has_neither(saved) -> None:
    edit(saved, put("format_version", 1))
    for key in ("measurements", "model", "proof"):
        edit(saved, lambda stored, key=key: stored.pop(key))
    (saved / MEASUREMENTS).unlink()
    (saved / MODEL).unlink()
    again = load_release(saved)
    assert again.measurements is None
    assert again.model is None
