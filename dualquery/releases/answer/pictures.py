"""Pictures of a release; they need Matplotlib, an extra.

Colours are of Okabe and Ito, "Color Universal Design" (2008), and of the map "cividis", which
colour-blind people can tell apart; shapes and labels say the same.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import numpy as np

from dualquery.releases.answer.cross_tables import cross_table
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_line

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
except ModuleNotFoundError:
    raise BadInputError(
        "pictures need Matplotlib; install it with: pip install 'dualquery[plots]'"
    ) from None

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release


BLUE, ORANGE = "#0072B2", "#E69F00"

MOST_VALUES = 40  # of one column that are drawn, the largest ones of more
_ANNOTATED = 240  # cells up to which each has its figure in it

_STYLE = {"font.size": 9, "axes.titlesize": 10, "legend.frameon": False}
_STYLE |= {"axes.spines.top": False, "axes.spines.right": False}


class Picture(Figure):
    """A Matplotlib figure that notebooks show."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with mpl.rc_context(_STYLE):
            self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()


def of_columns(release: Release, one: str, other: str | None, *, private: bool) -> Picture:
    """Draw the shares of one column's values, or of the pairs of values of two: see `Release.plot`.

    A picture of a release that is not ``private`` says so.
    """
    with mpl.rc_context(_STYLE):
        picture = _of_one(release, one) if other is None else _of_two(release, one, other)
    if not private:
        picture.suptitle("NOT PRIVATE", color="#8f1d1d", fontweight="bold", fontsize=10)
    return picture


def _of_one(release: Release, name: str) -> Picture:
    found = cross_table(release, name)
    lines, note = [*zip(found.row_labels, found.cells, strict=True)], ""
    if len(lines) > MOST_VALUES:
        note = f"\nthe {MOST_VALUES} largest of {len(lines):,} values, which noise helped to choose"
        lines = sorted(lines, key=lambda line: -(line[1]["answer"] or 0.0))[:MOST_VALUES]
    places = np.arange(len(lines))
    picture = Picture(figsize=(6.4, 1.3 + 0.26 * len(lines)), layout="constrained")
    axes = picture.subplots()
    measured = np.array([cell["low"] is not None for _, cell in lines])
    faces = [BLUE if known else "none" for known in measured]
    shares, low, high = (
        np.array([_percent(cell[key]) for _, cell in lines]) for key in ("answer", "low", "high")
    )
    axes.barh(places, shares, 0.72, color=faces, edgecolor=BLUE)
    if measured.any():
        ends = low[measured], high[measured]
        label = f"{found.level:.0%} interval of the true share"
        axes.hlines(places[measured], *ends, colors=ORANGE, linewidth=3, label=label)
        axes.legend(loc="lower right")
    axes.set_yticks(places, [_named(label) for label, _ in lines])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(f"share of the {release.base.name} (%)")
    empty = "" if measured.all() else "; empty bars: fitted, no interval"
    axes.set_title(f"{_named(name)}: released shares{empty}{note}", loc="left")
    return picture


def _of_two(release: Release, one: str, other: str) -> Picture:
    found = cross_table(release, one, other)
    height, width = len(found.row_labels), len(found.column_labels)
    shares = np.array([_percent(cell["answer"]) for cell in found.cells]).reshape(height, width)
    reach = [(cell["high"] - cell["low"]) / 2 for cell in found.cells if cell["low"] is not None]
    told = "no cell has an interval"
    if reach:
        told = f"{found.level:.0%} intervals: about ±{100 * float(np.median(reach)):.2g} points"
    size = (min(max(2.5 + 0.55 * width, 5.0), 16.0), min(1.8 + 0.3 * height, 16.0))
    picture = Picture(figsize=size, layout="constrained")
    axes = picture.subplots()
    drawn = axes.imshow(shares, cmap="cividis", aspect="auto", vmin=0)
    if shares.size <= _ANNOTATED:
        for (row, column), share in np.ndenumerate(shares):
            color = "white" if share < 0.55 * shares.max() else "black"
            number = axes.text(column, row, f"{share:.1f}", fontsize=7, color=color)
            number.set(ha="center", va="center")
    labels = [_named(each) for each in found.column_labels]
    axes.set_xticks(range(width), labels, ha="right", rotation=60, rotation_mode="anchor")
    axes.set_yticks(range(height), [_named(each) for each in found.row_labels])
    axes.set(xlabel=_named(other), ylabel=_named(one))
    picture.colorbar(drawn, ax=axes, label=f"share of the {release.base.name} (%)")
    axes.set_title(f"{_named(one)} and {_named(other)}, released\n{told}", loc="left")
    return picture


def _percent(value: float | None) -> float:
    return math.nan if value is None else 100 * value


def _named(text: str) -> str:
    """Return a name as a picture can show it: one line, no formula, not too long."""
    line = terminal_line(text)
    return (line if len(line) <= 30 else f"{line[:29]}…").replace("$", r"\$")
