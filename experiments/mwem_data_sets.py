"""The data sets of the MWEM paper's experiments: from files, or stand-ins of the same shape.

A stand-in is drawn from a model that is written down here, with a fixed seed; its title says that
it is one. Its number of rows and columns are the real table's, the rest is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.rows.engines import Dataset, load
from dualquery.rows.histogram import Histogram
from dualquery.rows.packed import Records
from dualquery.runtime.errors import BadInputError

STAND_IN = "stand-in"

CATEGORICAL_ADULT = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
    "native-country",
)  # fmt: skip
"""The eight categorical attributes of Adult (section 3.3)."""

WITHOUT = f"Without it run --quick, on a {STAND_IN} where the package does not hold the table."


@dataclass(frozen=True, eq=False)
class Study:
    """A table of an experiment."""

    title: str  # what pictures and texts call it; says so if it is a stand-in
    data: Dataset[Records]  # the rows


def exact_cells(data: Dataset[Any]) -> NDArray[np.float64]:
    """Return the number of rows in every cell, an axis a column. Not private."""
    return data.records.total(Histogram(data.schema.domain), 1).astype(np.float64)  # type: ignore[no-any-return]


# --- numbers, for range queries -------------------------------------------------------------------


@lru_cache(maxsize=4)
def numeric_table(name: str, path: str | None) -> Study:
    """Return a table of Figure 2, a key of `NUMERIC`, every column over its whole published range.

    The path is that of a file with a header; None for the Adult rows in the package, or a stand-in
    of Transfusion.
    """
    wanted = NUMERIC[name]
    columns = tuple(
        Categorical(column, tuple((str(value),) for value in values))
        for column, values in wanted.columns.items()
    )
    schema = TableSchema(columns, name=name, declared=True)
    if path is not None:
        return Study(name, load(path, schema))
    if wanted.stand_in is None:
        return Study(name, load("adult", schema))
    return Study(f"{name} ({STAND_IN})", load(wanted.stand_in(), schema))


def transfusion_stand_in() -> pl.DataFrame:
    """Return 748 donors: geometric numbers of donations and months, each donation 250 c.c."""
    generator = np.random.default_rng(748)
    frequency = np.minimum(generator.geometric(1 / 5.5, 748), 50)
    recency = np.minimum(generator.geometric(1 / 10, 748), 74)
    columns = {"recency_months": recency, "frequency_times": frequency}
    return pl.DataFrame({**columns, "monetary_cc": 250 * frequency})


@dataclass(frozen=True)
class Numbers:
    """A table of numbers."""

    file: str  # a key of `harness.data_files.DATA_FILES`
    columns: dict[str, range]  # its columns, and the values that each may have
    stand_in: Callable[[], pl.DataFrame] | None = None
    """Makes the rows that stand in for the file; None where the package holds the table."""


NUMERIC = {
    "Adult: capital loss": Numbers("adult-train", {"capital-loss": range(4_357)}),
    "Adult: age x hours": Numbers(
        "adult-train", {"age": range(17, 91), "hours-per-week": range(1, 100)}
    ),
    "Transfusion: recency x frequency": Numbers(
        "transfusion",
        {"recency_months": range(75), "frequency_times": range(1, 51)},
        transfusion_stand_in,
    ),
    "Transfusion: monetary": Numbers(
        "transfusion", {"monetary_cc": range(250, 12_501, 250)}, transfusion_stand_in
    ),
}


# --- binary attributes, for contingency tables ----------------------------------------------------


@lru_cache(maxsize=4)
def contingency_table(name: str, path: str | None) -> Study:
    """Return ``mildew``, ``rochdale``, ``czech`` or ``nltcs``: binary attributes.

    The path of ``nltcs``, the National Long Term Care Survey, is a file as `read_patterns` takes
    it; the others have one line a cell, the last column called count. None is for a stand-in: a
    `log_linear` model, and for ``nltcs`` 21,574 persons of a latent class each, who have each
    disability apart given the class.
    """
    if path is None:
        rows = log_linear(*STAND_INS[name]) if name in STAND_INS else _latent_classes()
        return Study(f"{name} ({STAND_IN})", load(rows, ItemSchema.numbered(rows.shape[1], name)))
    if name == "nltcs":
        rows = read_patterns(Path(path), _SURVEY_BITS)
        return Study(name, load(rows, ItemSchema.numbered(_SURVEY_BITS, name)))
    return Study(name, _read_cells(name, Path(path)))


def read_patterns(path: Path, bits: int) -> NDArray[np.uint8]:
    """Return the rows of a text of bit patterns: uint8, shape ``(n, bits)``.

    Its lines are 0s and 1s, together or apart, each with or without a count. Lines before the first
    such line are skipped.

    Raises
    ------
    BadInputError
        If the file cannot be read, or a line after the first pattern is none.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}") from error
    patterns, counts = [], []
    for number, line in enumerate(lines, 1):
        words = line.replace(",", " ").split()
        if words and len(words[0]) == bits > 1:
            words = [*words[0], *words[1:]]
        pattern, count = words[:bits], words[bits:] or ["1"]
        good = len(pattern) == bits and set(pattern) <= {"0", "1"}
        if good and len(count) == 1 and count[0].isdigit():
            patterns.append(pattern)
            counts.append(int(count[0]))
        elif words and patterns:
            raise BadInputError(
                f"{path}, line {number}: {bits} values 0 or 1 and perhaps a count are "
                f"expected, not {line.strip()!r}"
            )
    if not sum(counts):
        raise BadInputError(f"{path}: no line has {bits} values 0 or 1")
    return np.repeat(np.array(patterns, np.uint8), counts, axis=0)


_SURVEY_BITS = 16


STAND_INS = {
    "mildew": (6, 70, 0.4, 0.4),
    "rochdale": (8, 665, 0.6, 0.3),
    "czech": (6, 1_841, 0.3, 0.1),
}
"""Arguments of `log_linear`: the real table's attributes and rows, and standard deviations by which
about as many cells hold rows as in the real table (22 of 64, 91 of 256, 63 of 64)."""


def log_linear(bits: int, n: int, main: float, pair: float) -> NDArray[np.uint8]:
    """Draw rows of a log-linear model with main effects and all pairs: uint8, shape ``(n, bits)``.

    ``main`` and ``pair`` are the standard deviations of the effects.
    """
    generator = np.random.default_rng(n)
    cells = (np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1
    signs = 1.0 - 2.0 * cells
    pairs = np.triu(generator.normal(0.0, pair, (bits, bits)), 1)
    logs = signs @ generator.normal(0.0, main, bits) + np.einsum("ci,ij,cj->c", signs, pairs, signs)
    shares = np.exp(logs - logs.max())
    return cells[generator.choice(len(cells), n, p=shares / shares.sum())].astype(np.uint8)


def _latent_classes() -> NDArray[np.uint8]:
    generator = np.random.default_rng(21_574)
    severity = generator.choice([-4.0, -1.5, 0.5, 3.0], 21_574, p=[0.5, 0.25, 0.15, 0.1])
    ease = np.linspace(-1.5, 1.5, _SURVEY_BITS)
    chance = 1.0 / (1.0 + np.exp(-(severity[:, None] + ease)))
    return (generator.random(chance.shape) < chance).astype(np.uint8)


def _read_cells(name: str, path: Path) -> Dataset[Records]:
    """Read one line a cell, the count last."""
    cells = pl.read_csv(path, infer_schema=False)
    *names, last = cells.columns
    if last != "count" or any(cells[column].n_unique() != 2 for column in names):
        raise BadInputError(
            f"{path}: columns of two values each and a last column called count are expected"
        )
    counts = cells[last].str.to_integer(strict=False)
    if counts.null_count() or counts.sum() <= 0 or (counts < 0).any():
        raise BadInputError(f"{path}: the column count must hold whole numbers, not all 0")
    columns = tuple(Binary(column, *sorted(cells[column].unique().to_list())) for column in names)
    rows = cells.select(pl.col(names).repeat_by(counts)).explode(names).drop_nulls()
    return load(rows, TableSchema(columns, name=name, declared=True))
