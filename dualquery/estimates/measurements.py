"""What was measured with noise, as linear functionals of the rows: kept by a release.

A measured number is the mean over the rows of a product of factors, plus noise. The *code* of a
factor is a whole number: ``c >= 0`` is the literal ``c`` (``2 * bit + negated``), 1 where it holds
and else 0. ``-2^30 < c < 0`` is the sign of bit ``-c - 1``, 1 where it is 0 and -1 where it is 1;
``c <= -2^30`` is the contrast of bit ``-2^30 - c``, 1 where it is 0 and ``1 - n`` where it is 1,
with n values of its column. What is no product, such as a range, is a place in the workload.

Where the number of rows is private, numbers are divided by a public N, which counts rows that are
not there; ``absent`` is what each of these contributes (`dualquery.estimates.intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.family import Queries
from dualquery.queries.parities import Parities

if TYPE_CHECKING:
    import polars as pl

    from dualquery.room.features import Features

NoiseKind = Literal["gaussian", "discrete laplace"]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_CONTRASTS = -(2**30)  # code of the contrast of bit 0; those of the others lie below it
_LARGEST = 1e30  # no share of rows or noise of the room is larger; squares stay finite

CHOSEN = "a first noisy look decided what else was measured, which the chance does not allow for"
"""The note of measurements that were chosen by earlier noise; their own is new."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """``m`` noisy numbers, float64 ``(m,)``; the noise of each is independent of the others'."""

    starts: NDArray[np.int64]
    """Shape ``(m + 1,)``: number i has the factors ``starts[i] .. starts[i + 1] - 1``."""
    factors: NDArray[np.int32]  # codes (see the module), those of a number on different bits
    queries: NDArray[np.int32]  # ``(m,)``: place in the workload; -1 of what has factors
    values: Float64  # as shares of the public number of rows, not cut to any range
    deviations: Float64  # standard deviations of their noise, above 0, likewise
    absent: Float64  # what a row that is not there contributes; NaN where not known
    noise: NoiseKind
    note: str = ""  # what else a reader must know, such as rows that were left out

    def __post_init__(self) -> None:
        count = len(self.values)
        if not (
            len(self.starts) == count + 1
            and self.starts[0] == 0
            and self.starts[-1] == len(self.factors)
            and (np.diff(self.starts) >= 0).all()
            and len(self.queries) == len(self.deviations) == len(self.absent) == count
        ):
            raise ValueError("the arrays of measurements do not fit together")
        for name, numbers, least in (
            ("value", self.values, -_LARGEST),
            ("deviation", self.deviations, 1 / _LARGEST),
            ("absent", np.nan_to_num(self.absent, nan=0.0), -_LARGEST),
        ):
            wrong = np.flatnonzero(~((numbers >= least) & (numbers <= _LARGEST)))
            if len(wrong):
                raise ValueError(
                    f"measurement {wrong[0]} (from 0): its {name} is {numbers[wrong[0]]:g}; a "
                    f"number from {least:g} to {_LARGEST:g} is needed"
                )
        if ((self.queries >= 0) == (np.diff(self.starts) > 0)).any():
            raise ValueError("a measured number has factors, or is a query of the workload")

    def __len__(self) -> int:
        return len(self.values)

    @staticmethod
    def of_codes(
        codes: NDArray[np.int32],
        values: Float64,
        deviations: ArrayLike,
        noise: NoiseKind = "gaussian",
        *,
        present: NDArray[np.bool_] | None = None,
        absent: ArrayLike = 0.0,
        note: str = "",
        queries: ArrayLike = -1,
    ) -> Measurements:
        """Return measured products: int32 ``(m, k)`` codes; of literals if ``present`` is None."""
        present, count = codes >= 0 if present is None else present, len(codes)
        return Measurements(
            np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(np.int64),
            codes[present].astype(np.int32),
            np.broadcast_to(np.asarray(queries, np.int32), count).copy(),
            np.asarray(values, np.float64),
            np.broadcast_to(np.asarray(deviations, np.float64), count).copy(),
            np.broadcast_to(np.asarray(absent, np.float64), count).copy(),
            noise,
            note,
        )

    @staticmethod
    def of_features(
        features: Features, values: Float64, deviations: ArrayLike, note: str = ""
    ) -> Measurements:
        """Return measured features; the noise is Gaussian."""
        codes = np.where(features.contrasts, _CONTRASTS - features.bits, 2 * features.bits)
        present = features.bits >= 0
        return Measurements.of_codes(codes, values, deviations, present=present, note=note)

    @staticmethod
    def of_queries(
        queries: Queries,
        places: NDArray[np.int64],
        values: Float64,
        deviations: ArrayLike,
        noise: NoiseKind,
        absent: ArrayLike = 0.0,
    ) -> Measurements:
        """Return measured queries of a workload, at some places; by their literals if they have."""
        present, of = None, np.array(-1)
        if (conjunctions := conjunctions_of(queries)) is not None:
            codes = conjunctions.literals[places]
        elif isinstance(queries, Parities):
            codes, present = -1 - queries.sets[places], queries.sets[places] >= 0
        else:
            codes, of = np.full((len(places), 1), -1, np.int32), places
        return Measurements.of_codes(
            codes, values, deviations, noise, present=present, absent=absent, queries=of
        )

    @staticmethod
    def joined(parts: Sequence[Measurements]) -> Measurements:
        """Return all numbers of several measurements with the same kind of noise."""
        (noise,) = {part.noise for part in parts}
        names = "factors", "queries", "values", "deviations", "absent"
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        lengths = np.concatenate([np.diff(part.starts) for part in parts])
        note = "; ".join(dict.fromkeys(part.note for part in parts if part.note))
        starts = np.concatenate(([0], np.cumsum(lengths)))
        return Measurements(starts, noise=noise, note=note, **arrays)

    def describe(self) -> dict[str, object]:
        """Return what ``release.json`` says about the measurements, JSON-able."""
        return {"numbers": len(self), "noise": self.noise, "note": self.note}

    def table(self) -> pl.DataFrame:
        """Return a row a number: ``factors``, ``query``, ``value``, ``deviation``, ``absent``."""
        import polars as pl
        import pyarrow as pa

        starts, codes = ([None, pa.py_buffer(each)] for each in (self.starts, self.factors))
        flat = pa.Array.from_buffers(pa.int32(), len(self.factors), codes)  # imports no Pandas
        lists = pa.Array.from_buffers(pa.large_list(flat.type), len(self), starts, children=[flat])
        factors = pl.Series("factors", pl.from_arrow(lists), pl.List(pl.Int32))
        query = pl.Series("query", self.queries).replace(-1, None)
        columns = {"value": self.values, "deviation": self.deviations, "absent": self.absent}
        numbers = [pl.Series(name, each).fill_nan(None) for name, each in columns.items()]
        return pl.DataFrame([factors, query, *numbers])

    @staticmethod
    def from_table(table: pl.DataFrame, described: Mapping[str, object]) -> Measurements:
        """Return what `table` and `describe` wrote; `TypeError` or `ValueError` if it is not."""
        import polars as pl

        kinds: dict[str, Any] = {"query": pl.Int32, "factors": pl.List(pl.Int32)}
        kinds.update(dict.fromkeys(("value", "deviation", "absent"), pl.Float64))
        for name, kind in kinds.items():
            if table.schema[name] not in (kind, pl.Null, pl.List(pl.Null)):
                raise TypeError(f"the column {name} holds {table.schema[name]}, not {kind}")
        factors = table["factors"].cast(pl.List(pl.Int32))  # of no rows the type is unknown
        lengths = factors.list.len().to_numpy().astype(np.int64)
        deviations = table["deviation"].to_numpy()
        # Older releases said 0 where noise was as small as that.
        tiny = (deviations >= 0) & (deviations < 1 / _LARGEST)
        return Measurements(
            np.concatenate(([0], np.cumsum(lengths))),
            factors.explode().drop_nulls().to_numpy().astype(np.int32),
            table["query"].fill_null(-1).to_numpy().astype(np.int32),
            table["value"].to_numpy(),
            np.where(tiny, 1 / _LARGEST, deviations),
            table["absent"].fill_null(math.nan).to_numpy(),
            noise=described["noise"],  # type: ignore[arg-type]  # one of two texts
            note=str(described["note"]),
        )


def factors_of(codes: NDArray[Any], domain: Domain) -> tuple[Int64, Int64, Int64]:
    """Return the bit of each factor, and the factor's values where that is 0 and where it is 1.

    Codes are integers of any shape, and so are the results. `IndexError` if there is no such bit.
    """
    codes = codes.astype(np.int64)
    literal, contrast = codes >= 0, codes <= _CONTRASTS
    bits = np.where(literal, codes >> 1, np.where(contrast, _CONTRASTS - codes, -codes - 1))
    values = np.where(contrast, axis_sizes(domain)[domain.column_of_bit[bits]], 2)
    return bits, np.where(literal, codes & 1, 1), np.where(literal, ~codes & 1, 1 - values)
