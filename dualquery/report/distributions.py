"""Every column's distribution, as bars with intervals; of many values, the most frequent first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.report.facts import BitShares
from dualquery.report.markup import Html, element, joined

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release

AT_ONCE = 16
"""Values without an order that are shown at once; of more, the rest is folded away."""

_SCALES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
"""What a whole bar stands for: the least that the largest share of a column fits into."""


def distributions(release: Release, known: BitShares) -> Html:
    """Every column's distribution; of items, and of many columns, the most frequent."""
    schema = release.schema
    labels = schema.bit_labels().to_list()
    if np.isnan(known.share).all():
        return element("p", "The release says nothing of single columns.")
    note = ""
    if isinstance(schema, TableSchema) and len(known.shown) == schema.domain.bits:
        parts, others = [], []
        for column, (start, end) in zip(
            schema.columns, itertools.pairwise(schema.domain.offsets.tolist()), strict=True
        ):
            bits = list(range(start, end))
            if isinstance(column, Categorical) and column.other_bit is not None:
                share = float(known.share[start + column.other_bit])
                others.append(f"{column.name} {percentage(share, 1)}")
            if not (ordered := not isinstance(column, Categorical) or len(bits) <= AT_ONCE):
                bits.sort(key=lambda bit: -float(np.nan_to_num(known.share[bit])))
            names = [labels[bit].removeprefix(f"{column.name}=") for bit in bits]
            if isinstance(column, Binary):
                names = [column.one]
            parts.append(_distribution(column.name, names, bits, known, ordered=ordered))
        if others:
            note = f"Rows with values that the schema does not list, (other): {', '.join(others)}. "
    else:
        names = [labels[bit] for bit in known.shown]
        parts = [_distribution("most frequent", names, known.shown.tolist(), known, ordered=False)]
        note = f"The {len(names)} most frequent of {schema.domain.bits:,}, which noise helped to "
        note += "choose: fewer of their intervals hold the truth. "
    explained = (
        f"{note}A bar is the released share of the {release.base.name}. The line across its end is "
        f"the interval that holds the true share with a chance of {known.level:.0%}, where one is "
        "known. It rests on all noisy numbers about the column, and is that of dualquery answer."
    )
    if np.isnan(known.low[known.shown]).any():
        explained += (
            " An empty bar is a guess: the column was not measured by itself, and its shares come "
            "from a fit to other answers. Where those say nothing of it, its values share evenly."
        )
    return joined([element("p", explained), element("div", *parts, class_="columns")])


def _distribution(
    name: str, labels: Sequence[str], bits: Sequence[int], known: BitShares, *, ordered: bool
) -> Html:
    """Return one column's tables; values without an order come by their shares."""
    ends = np.concatenate([known.share[list(bits)], known.high[list(bits)]])
    largest = float(np.nanmax(ends)) if not np.isnan(ends).all() else 1.0
    whole = next(scale for scale in _SCALES if largest <= scale or scale == 1.0)
    lines = [_line(label, bit, known, whole) for label, bit in zip(labels, bits, strict=True)]
    measured = not np.isnan(known.low[list(bits)]).all()
    kind = "column" if measured else "column fitted"
    scale = ("" if measured else "fitted; ") + f"bars end at {100 * whole:g}%"
    caption = (element("strong", name), element("span", scale, class_="scale"))
    if ordered or len(lines) <= AT_ONCE:
        return element("div", _shares(caption, lines), class_=kind)
    rest = element(
        "details",
        element("summary", f"{len(lines) - AT_ONCE} more"),
        _shares((element("span", f"{name}, the rest"),), lines[AT_ONCE:]),
    )
    return element("div", _shares(caption, lines[:AT_ONCE]), rest, class_=kind)


def _shares(caption: Sequence[Html], lines: Sequence[Html]) -> Html:
    heads = ("value", "", "share", "interval")
    return element(
        "table",
        element("caption", *caption),
        element("thead", element("tr", *(element("th", each, scope="col") for each in heads))),
        element("tbody", *lines),
    )


def _line(label: str, bit: int, known: BitShares, whole: float) -> Html:
    value, low, high = (float(each[bit]) for each in (known.share, known.low, known.high))
    places = 1 if whole >= 0.1 else 2 if whole >= 0.01 else 3
    half = 0.4999 * 10**-places  # ends are rounded outwards
    ends = f"{max(100 * low - half, 0):.{places}f} to {100 * high + half:.{places}f}%"
    return element(
        "tr",
        element("th", label, scope="row"),
        element("td", bar(value / whole, low / whole, high / whole), class_="drawn"),
        element("td", percentage(value, places)),
        element("td", "" if math.isnan(low) else ends),
    )


def percentage(value: float, places: int) -> str:
    """Return a share in per cent with some decimals; a tiny one as less than the last place."""
    if math.isnan(value):
        return "not known"
    text = f"{100 * value:.{places}f}%"
    return f"<{10.0**-places:.{places}f}%" if value > 0 and not float(text[:-1]) else text


def bar(value: float, low: float = math.nan, high: float = math.nan) -> Html:
    """Return a bar and its interval, as parts of its whole length; NaN for what is not known."""
    parts = []
    if not math.isnan(value):
        parts.append(element("span", class_="bar", style=f"width:{100 * value:.2f}%"))
    if not math.isnan(low):
        place = f"left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"
        parts.append(element("span", class_="reach", style=place))
    return element("div", *parts, class_="track", aria_hidden="true")
