"""What was measured with noise, as linear functionals of the rows: kept by a release.

A measured number is the mean over the rows of a product of factors, plus noise. The *code* of a
factor is a whole number: ``c >= 0`` is the literal ``c`` (``2 * bit + negated``), 1 where it holds
and else 0. ``-2^30 < c < 0`` is the sign of bit ``-c - 1``, 1 where it is 0 and -1 where it is 1;
``c <= -2^30`` is the contrast of bit ``-2^30 - c``, 1 where it is 0 and ``1 - n`` where it is 1, n
being the number of values of its column. What is no product, such as a range, is named by its place
in the workload.

**Where the number of rows is private** numbers are divided by a public N, which counts rows that
are not there; ``absent`` is what each of these contributes (`dualquery.estimates.intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.data.cells import axis_sizes
from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.family import Queries

if TYPE_CHECKING:
    import polars as pl

    from dualquery.room.features import Features

NoiseKind = Literal["gaussian", "discrete laplace"]

Float64 = NDArray[np.float64]

_CONTRASTS = -(2**30)
"""Code of the contrast of bit 0; those of the others lie below it."""

_LARGEST = 1e30
"""No share of rows or noise of the room is larger; squares stay finite."""

CHOSEN = "a first noisy look decided what else was measured, which the chance does not allow for"
"""The note of measurements that were chosen by earlier noise; their own is new."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """``m`` noisy numbers; the noise of each is independent of the others'.

    Parameters
    ----------
    starts
        int64, shape ``(m + 1,)``: number i has the factors ``starts[i] .. starts[i + 1] - 1``.
    factors
        int32: codes of factors (see the module), those of a number on different bits.
    queries
        int32, shape ``(m,)``: place in the workload of what has no factors; -1 where factors say.
    values
        float64, shape ``(m,)``: the noisy numbers, as shares of the public number of rows, not cut
        to any range.
    deviations
        float64, shape ``(m,)``, above 0: standard deviations of their noise, likewise.
    absent
        float64, shape ``(m,)``: what a row that is not there contributes; NaN where not known.
    noise
        The kind of noise.
    note
        What else a reader must know, such as rows that were left out; may be empty.
    """

    starts: NDArray[np.int64]
    factors: NDArray[np.int32]
    queries: NDArray[np.int32]
    values: Float64
    deviations: Float64
    absent: Float64
    noise: NoiseKind
    note: str = ""

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
    def of_literals(
        literals: NDArray[np.int32],
        values: Float64,
        deviations: ArrayLike,
        noise: NoiseKind = "gaussian",
        *,
        absent: ArrayLike = 0.0,
        note: str = "",
    ) -> Measurements:
        """Return measured conjunctions: int32 ``(m, k)`` literal codes, padded with -1."""
        return _of_codes(literals, literals >= 0, values, deviations, noise, absent, note)

    @staticmethod
    def of_features(
        features: Features, values: Float64, deviations: ArrayLike, note: str = ""
    ) -> Measurements:
        """Return measured features; the noise is Gaussian."""
        codes = np.where(features.contrasts, _CONTRASTS - features.bits, 2 * features.bits)
        return _of_codes(codes, features.bits >= 0, values, deviations, "gaussian", 0.0, note)

    @staticmethod
    def of_signs(
        bits: NDArray[np.int32],
        values: Float64,
        deviations: ArrayLike,
        noise: NoiseKind,
        absent: ArrayLike = 0.0,
    ) -> Measurements:
        """Return measured parities: products of the signs of bits, int32 ``(m, k)``, padded -1."""
        return _of_codes(-bits - 1, bits >= 0, values, deviations, noise, absent, "")

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
        conjunctions = conjunctions_of(queries)
        if conjunctions is not None:
            return Measurements.of_literals(
                conjunctions.literals[places], values, deviations, noise, absent=absent
            )
        nothing = np.full((len(places), 1), -1, np.int32)
        return _of_codes(nothing, nothing >= 0, values, deviations, noise, absent, "", places)

    @staticmethod
    def joined(parts: Sequence[Measurements]) -> Measurements:
        """Return all numbers of several measurements with the same kind of noise."""
        lengths = np.concatenate([np.diff(part.starts) for part in parts])
        (noise,) = {part.noise for part in parts}
        return Measurements(
            starts=np.concatenate(([0], np.cumsum(lengths))),
            factors=np.concatenate([part.factors for part in parts]),
            queries=np.concatenate([part.queries for part in parts]),
            values=np.concatenate([part.values for part in parts]),
            deviations=np.concatenate([part.deviations for part in parts]),
            absent=np.concatenate([part.absent for part in parts]),
            noise=noise,
            note="; ".join(dict.fromkeys(part.note for part in parts if part.note)),
        )

    def describe(self) -> dict[str, object]:
        """Return what ``release.json`` says about the measurements, JSON-able."""
        return {"numbers": len(self), "noise": self.noise, "note": self.note}

    def table(self) -> pl.DataFrame:
        """Return a row a number: ``factors``, ``query``, ``value``, ``deviation``, ``absent``."""
        import polars as pl
        import pyarrow as pa

        lists = pa.LargeListArray.from_arrays(self.starts, self.factors)
        return pl.DataFrame(
            {
                "factors": pl.Series(pl.from_arrow(lists), dtype=pl.List(pl.Int32)),
                "query": pl.Series(self.queries).replace(-1, None),
                "value": self.values,
                "deviation": self.deviations,
                "absent": pl.Series(self.absent).fill_nan(None),
            }
        )

    @staticmethod
    def from_table(table: pl.DataFrame, described: Mapping[str, object]) -> Measurements:
        """Return what `table` and `describe` wrote; `TypeError` or `ValueError` if it is not."""
        import polars as pl

        for name in ("value", "deviation", "absent"):
            if table.schema[name] not in (pl.Float64, pl.Null):
                raise TypeError(f"the column {name} holds {table.schema[name]}, not numbers")
        for name, kind in (("factors", table.schema["factors"]), ("query", table.schema["query"])):
            inner = kind.inner if isinstance(kind, pl.List) else kind
            if inner not in (pl.Int32, pl.Null):
                raise TypeError(f"the column {name} holds {kind}, not numbers of 32 bits")
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


class Factors(NamedTuple):
    """Factors of measured numbers, arrays of one shape: the bit of each, and its two values."""

    bits: NDArray[np.int64]
    at_zero: NDArray[np.int64]
    at_one: NDArray[np.int64]


def factors_of(codes: NDArray[Any], domain: Domain) -> Factors:
    """Return the factors with some codes, integers of any shape, over a domain.

    Raises
    ------
    IndexError
        If the domain has no such bit.
    """
    codes = codes.astype(np.int64)
    literal, contrast = codes >= 0, codes <= _CONTRASTS
    bits = np.where(literal, codes >> 1, np.where(contrast, _CONTRASTS - codes, -codes - 1))
    values = np.where(contrast, axis_sizes(domain)[domain.column_of_bit[bits]], 2)
    negated = codes & 1
    return Factors(bits, np.where(literal, negated, 1), np.where(literal, 1 - negated, 1 - values))


def _of_codes(
    codes: NDArray[np.int32],
    present: NDArray[np.bool_],
    values: Float64,
    deviations: ArrayLike,
    noise: NoiseKind,
    absent: ArrayLike,
    note: str,
    places: NDArray[np.int64] | None = None,
) -> Measurements:
    """Return measurements from rows of codes, some present."""
    count = len(codes)
    queries = np.full(count, -1) if places is None else places
    return Measurements(
        np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(np.int64),
        codes[present].astype(np.int32),
        queries.astype(np.int32),
        np.asarray(values, np.float64),
        np.broadcast_to(np.asarray(deviations, np.float64), count).copy(),
        np.broadcast_to(np.asarray(absent, np.float64), count).copy(),
        noise,
        note,
    )
