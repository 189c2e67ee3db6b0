"""Pictures of a release, and of a release beside its table; they need Matplotlib, an extra.

Colours are of Okabe and Ito, "Color Universal Design" (2008), and of the map "cividis", which
colour-blind people can tell apart; shapes and labels say the same.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.releases.answer.cross_tables import cross_table
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_line
from dualquery.runtime.files import whole_file

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
except ModuleNotFoundError:
    raise BadInputError(
        "pictures need Matplotlib; install it with: pip install 'dualquery[plots]'"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualquery.releases.answer.knowledge import Known

    Float64 = NDArray[np.float64]

BLUE, VERMILION, ORANGE, GREY = "#0072B2", "#D55E00", "#E69F00", "#777777"

ENDINGS = (".svg", ".png", ".pdf")

MOST_VALUES = 40
"""Values of one column that are drawn, the largest ones of more."""

_ANNOTATED = 240
"""Cells up to which each has its figure in it."""

_LEVEL_NAMES = 4
"""Columns up to which their names are written level."""

_COLUMNS = 20
_ALARM: dict[str, Any] = {"color": "#8f1d1d", "fontweight": "bold", "fontsize": 10}
_STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dualquery",
}


class Picture(Figure):
    """A Matplotlib figure that notebooks show."""

    def _repr_png_(self) -> bytes:
        return _written(self, "png")


def check_ending(path: Path) -> None:
    """Raise `BadInputError` unless a picture can be written to a file of this name."""
    if path.suffix not in ENDINGS:
        raise BadInputError(f"{path}: a picture's name ends in {', '.join(ENDINGS)}")
    if path.exists():
        raise BadInputError(f"{path} exists already; delete it, or name another file")


def save(picture: Figure, path: Path) -> None:
    """Write a picture, whole or not at all; the ending of the name says in which format."""
    check_ending(path)
    content = _written(picture, path.suffix[1:])
    with whole_file(path) as part:
        part.write_bytes(content)


def of_columns(release: Known, one: str, other: str | None, *, private: bool) -> Picture:
    """Draw the shares of one column's values, or of the pairs of values of two.

    Parameters
    ----------
    release
        The release.
    one, other
        Names of columns; None for no second one.
    private
        Whether the release has a guarantee; a picture of one that has none says so.

    Raises
    ------
    BadInputError
        If a column is not there, or the pairs are too many.
    """
    picture = _of_one(release, one) if other is None else _of_two(release, one, other)
    if not private:
        picture.suptitle("NOT PRIVATE", **_ALARM)
    return picture


def _of_one(release: Known, name: str) -> Picture:
    found = cross_table(release, name)
    lines = found.lines()
    note = ""
    if len(lines) > MOST_VALUES:
        note = f"\nthe {MOST_VALUES} largest of {len(lines):,} values"
        lines = sorted(lines, key=lambda line: -_percent(line["answer"]))[:MOST_VALUES]
    places = np.arange(len(lines))
    with _styled():
        picture = Picture(figsize=(6.4, 1.3 + 0.26 * len(lines)), layout="constrained")
        axes = picture.subplots()
        measured = np.array([line["low"] is not None for line in lines])
        faces = [BLUE if known else "none" for known in measured]
        shares = [_percent(line["answer"]) for line in lines]
        axes.barh(places, shares, 0.72, color=faces, edgecolor=BLUE)
        if measured.any():
            ends = [
                (p, line) for p, line in zip(places, lines, strict=True) if line["low"] is not None
            ]
            axes.hlines(
                [place for place, _ in ends],
                [_percent(line["low"]) for _, line in ends],
                [_percent(line["high"]) for _, line in ends],
                colors=ORANGE,
                linewidth=3,
                label=f"{found.level:.0%} interval of the true share",
            )
            axes.legend(loc="lower right")
        axes.set_yticks(places, [_named(line[name]) for line in lines])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("share of the rows (%)")
        empty = "" if measured.all() else "; empty bars: fitted, no interval"
        axes.set_title(f"{_named(name)}: released shares{empty}{note}", loc="left")
    return picture


def _of_two(release: Known, one: str, other: str) -> Picture:
    found = cross_table(release, one, other)
    height, width = len(found.row_labels), len(found.column_labels)
    shares = np.array([_percent(cell["answer"]) for cell in found.cells]).reshape(height, width)
    reach = [(cell["high"] - cell["low"]) / 2 for cell in found.cells if cell["low"] is not None]
    told = "no cell has an interval"
    if reach:
        told = f"{found.level:.0%} intervals: about ±{100 * float(np.median(reach)):.2g} points"
    with _styled():
        size = (min(max(2.5 + 0.55 * width, 5.0), 16.0), min(1.8 + 0.3 * height, 16.0))
        picture = Picture(figsize=size, layout="constrained")
        axes = picture.subplots()
        drawn = axes.imshow(shares, cmap="cividis", aspect="auto", vmin=0)
        if shares.size <= _ANNOTATED:
            for row, column in np.ndindex(height, width):
                dark = shares[row, column] < 0.55 * shares.max()
                axes.text(
                    *(column, row, f"{shares[row, column]:.1f}"),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else "black",
                )
        axes.set_xticks(range(width), [_named(each) for each in found.column_labels])
        if width > _LEVEL_NAMES:
            for tick in axes.get_xticklabels():
                tick.set(ha="right", rotation=60, rotation_mode="anchor")
        axes.set_yticks(range(height), [_named(each) for each in found.row_labels])
        axes.set(xlabel=_named(other), ylabel=_named(one))
        picture.colorbar(drawn, ax=axes, label="share of the rows (%)")
        axes.set_title(f"{_named(one)} and {_named(other)}, released\n{told}", loc="left")
    return picture


def of_errors(
    answers: Float64,
    truth: Float64,
    sizes: Sequence[Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
    warning: str,
) -> Picture:
    """Draw errors against the truth, by number of literals and by column: **not private**.

    Parameters
    ----------
    answers, truth
        float64, shape ``(m,)``.
    sizes, columns
        As of `dualquery.releases.compare.evaluation.Comparison.by_literals` and ``by_column``.
    warning
        What stands above the picture.
    """
    sizes, columns = ([] if len(sizes) == 1 else sizes), columns[:_COLUMNS]
    panels = 1 + bool(sizes) + bool(columns)
    with _styled():
        picture = Picture(figsize=(4.4 * panels, 4.2), layout="constrained")
        first, *rest = picture.subplots(1, panels, squeeze=False)[0]
        _against_truth(first, answers, truth)
        if sizes:
            names = [f"{line['literals']}\n{line['queries']:,} queries" for line in sizes]
            _errors(rest[0], names, sizes, "errors by number of literals")
        if columns:
            names = [_named(line["column"]) for line in columns]
            _errors(rest[-1], names, columns, "errors by column, the largest mean first")
        picture.suptitle(warning, **_ALARM)
    return picture


def _against_truth(axes: Any, answers: Float64, truth: Float64) -> None:
    off = answers - truth
    drawn = axes.hexbin(truth, off, gridsize=50, bins="log", cmap="cividis", mincnt=1)
    axes.axhline(0.0, color=VERMILION, linewidth=1)
    axes.set(xlabel="true answer (share of the rows)", ylabel="released answer less the true one")
    axes.set_title(f"{len(truth):,} answers beside the truth")
    axes.figure.colorbar(drawn, ax=axes, label="answers in a cell")


def _errors(
    axes: Any, names: Sequence[str], lines: Sequence[Mapping[str, Any]], title: str
) -> None:
    places = np.arange(len(names))
    for key, mark, colour in (("mean_error", "o", BLUE), ("max_error", "D", VERMILION)):
        values = [line[key] for line in lines]
        axes.plot(values, places, mark, color=colour, label=key.replace("_", " "))
    axes.set_xscale("log")
    axes.set_yticks(places, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("error (share of the rows)")
    axes.set_title(title)
    axes.legend(loc="best")


def _percent(value: float | None) -> float:
    return math.nan if value is None else 100 * value


def _named(text: str) -> str:
    """Return a name as a picture can show it: one line, no formula, not too long."""
    line = terminal_line(text)
    return (line if len(line) <= 30 else f"{line[:29]}…").replace("$", r"\$")


@contextmanager
def _styled() -> Iterator[None]:
    with mpl.rc_context(_STYLE):
        yield


def _written(picture: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    dated: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {}
    with mpl.rc_context(_STYLE):
        picture.savefig(buffer, format=kind, dpi=150, **dated)
    return buffer.getvalue()
