"""The look of all pictures: sizes, colours that everyone can tell apart, lines with bands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, StrMethodFormatter

from experiments.harness.run_folder import write_whole

COLUMN = 3.6
"""Width of a column of text, in inches: a picture of one panel is as wide."""

# Okabe and Ito, "Color Universal Design" (2008), without their yellow, too pale for lines.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#777777"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1)), (0, (2, 2)),
    (0, (6, 2, 1, 2, 1, 2)), (0, (1, 2.5)),
)  # fmt: skip

LABELS = {
    "max_error": "max error (share of rows)",
    "mean_error": "mean error (share of rows)",
    "seconds": "run time (s)",
    "squared_error": "squared error of a query (rows²)",
    "relative_entropy": "relative entropy (nats)",
    "cpu_seconds": "CPU time (s)",
    "peak_mib": "peak memory (MiB)",
}
"""Column -> what an axis says; other columns say their names."""


@dataclass(frozen=True)
class Curve:
    """How one series looks: colour, marker and dashes differ, so that any one of them is enough."""

    label: str  # in the legend
    number: int  # position in the palette, from 0

    @property
    def look(self) -> Mapping[str, Any]:
        """Arguments of `Axes.plot`."""
        at = self.number % len(PALETTE)
        return {
            "color": PALETTE[at],
            "marker": MARKERS[at],
            "linestyle": DASHES[at],
            "label": self.label,
        }

    @property
    def unjoined(self) -> Mapping[str, Any]:
        """The same without a line, for places in no order."""
        return {**self.look, "linestyle": "none"}


def curves(labels: Iterable[str]) -> dict[str, Curve]:
    """Return a look for each label, in order."""
    return {label: Curve(label, number) for number, label in enumerate(labels)}


@contextmanager
def styled(name: str) -> Iterator[None]:
    """Draw in the common style; ``name`` makes the ids within an SVG its own."""
    settings = {
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "legend.handlelength": 3,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "lines.linewidth": 1.2,
        "lines.markersize": 3.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.5,
        "svg.fonttype": "none",  # text stays text: light, and it can be searched
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    }
    with mpl.rc_context(settings):
        yield


def panels(columns: int, rows: int = 1, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; ``height`` is that of a row, in inches."""
    figure = Figure(figsize=(COLUMN * min(columns, 2) if columns <= 2 else 2.7 * columns,
                             height * rows), layout="constrained")  # fmt: skip
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What one panel shows: the mean over runs of each curve as a line, its range as a band."""

    table: pl.DataFrame  # one line a run and place; nulls are left out
    x: str
    y: str
    by: str  # the column that names the curves
    looks: Mapping[str, Curve]  # the curves to draw, in order
    title: str = ""
    xlabel: str | None = None  # beside the axis; None for what `LABELS` says
    ylabel: str | None = None
    ticks: Sequence[float] = ()  # places on a logarithmic x axis
    scales: tuple[str, str] = ("linear", "log")  # of x and y
    levels: Sequence[tuple[str, float]] = ()
    """Label and height of lines across the panel, dotted and then solid."""

    def draw(self, axes: Axes) -> None:
        """Draw it into a panel."""
        for label, curve in self.looks.items():
            line_with_band(axes, self.table.filter(pl.col(self.by) == label), self.x, self.y, curve)
        for (label, height), dashes in zip(self.levels, (":", "-"), strict=False):
            axes.axhline(height, color=GREY, linestyle=dashes, linewidth=0.9, label=label)
        axes.set(title=self.title, xscale=self.scales[0], yscale=self.scales[1])
        axes.set_xlabel(self.xlabel or LABELS.get(self.x, self.x))
        axes.set_ylabel(self.ylabel or LABELS.get(self.y, self.y))
        if self.ticks:
            axes.set_xscale("log")
            axes.set_xticks(self.ticks, [f"{value:g}" for value in self.ticks])
            axes.minorticks_off()
        for axis, scale in zip((axes.xaxis, axes.yaxis), self.scales, strict=True):
            low, high = axis.get_view_interval()
            if scale == "log" and high < 100.0 * low and not (self.ticks and axis is axes.xaxis):
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                thousands = EngFormatter(sep="")  # 50k, 2M
                axis.set_major_formatter(
                    thousands if low >= 1_000.0 else StrMethodFormatter("{x:g}")
                )
                axis.set_minor_formatter(NullFormatter())


def picture(charts: Sequence[Chart], columns: int, height: float = 2.6, legend: int = 2) -> Figure:
    """Return a figure of charts, row by row, with one legend of ``legend`` columns at most."""
    figure, axes = panels(columns, -(-len(charts) // columns), height)
    for panel, chart in zip(axes, charts, strict=False):
        chart.draw(panel)
    for panel in axes[len(charts) :]:
        panel.set_visible(False)
    legend_below(figure, axes[: len(charts)], legend)
    return figure


def line_with_band(axes: Axes, table: pl.DataFrame, x: str, y: str, curve: Curve) -> None:
    """Draw the mean over runs as a line, and smallest to largest as a band; nulls are left out."""
    points = (
        table.drop_nulls([x, y])
        .group_by(x)
        .agg(mean=pl.col(y).mean(), low=pl.col(y).min(), high=pl.col(y).max())
        .sort(x)
    )
    if points.is_empty():
        return
    axes.plot(points[x].to_list(), points["mean"].to_list(), **curve.look)
    if (points["low"] < points["high"]).any():
        edges = points["low"].to_list(), points["high"].to_list()
        color = curve.look["color"]
        axes.fill_between(points[x].to_list(), *edges, color=color, alpha=0.18, linewidth=0)


def legend_below(figure: Figure, axes: Sequence[Axes], columns: int = 2) -> None:
    """Put one legend for all panels below them, in as many columns as fit, `columns` at most."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    entries: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    for fewer in range(columns, 0, -1):
        legend = figure.legend(
            list(entries.values()), list(entries), loc="outside lower center", ncols=fewer
        )
        if fewer == 1 or legend.get_window_extent(renderer).width <= figure.bbox.width:
            break
        legend.remove()


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as SVG and PNG, and return the path of the first."""
    import io

    for ending, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 200})):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, **options)
        write_whole(folder / f"{name}.{ending}", buffer.getvalue())
    return folder / f"{name}.svg"
