"""What an experiment is: the settings of its runs, one run, a summary, a picture, expectations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from dualquery.runtime.errors import BadInputError, did_you_mean
from experiments.harness.data_files import DataFiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Run = Mapping[str, Any]
"""The parameters of a run, its ``seed`` if it has one; plain values that JSON can hold."""

Row = Mapping[str, Any]
"""One line of a tidy table that a run adds: plain values by column, none of them a parameter."""


@dataclass(frozen=True)
class Option:
    """An option of one experiment only."""

    name: str  # name on the command line, without the dashes
    kind: type  # type of a value
    help: str  # its line in ``--help``


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the user of an experiment chose."""

    quick: bool = False
    """Whether to run the small form: about a minute or less on two cores, on packaged data."""
    runs: int | None = None
    """Seeds 1 to this for each setting; None for the experiment's own number."""
    data: DataFiles = field(default_factory=DataFiles)  # files that the package does not hold
    options: Mapping[str, Any] = field(default_factory=dict)
    """The values of each of the experiment's own options that is given."""
    out: Path = Path("results")  # folder of the results, for what a run writes besides its rows

    def seeds(self, full: int, quick: int = 1) -> range:
        """Return the seeds: 1 to what the user said, or else to one of these."""
        return range(1, (self.runs or (quick if self.quick else full)) + 1)

    def named(self, option: str, known: Collection[str]) -> tuple[str, ...]:
        """Return the names that an option was given; none if it was not given.

        Raises
        ------
        BadInputError
            If one of them is not ``known``.
        """
        names = tuple(self.options.get(option) or ())
        for name in names:
            if name not in known:
                raise BadInputError(
                    f"--{option} {name}: unknown{did_you_mean(name, known)} "
                    f"(known: {', '.join(known)})"
                )
        return names


@dataclass(frozen=True)
class Finding:
    """Something that an experiment was expected to show, and what it showed."""

    expected: str  # a sentence; who expects it
    found: str  # the figures
    holds: bool | None  # whether they agree; None if this form of the experiment cannot tell

    def text(self) -> str:
        """Return one line."""
        verdict = {True: "as expected", False: "NOT as expected", None: "not decided"}[self.holds]
        return f"expected {self.expected}; found {self.found} ({verdict})"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """An experiment.

    All functions are of a module's top level, so that another process can find them.
    """

    name: str  # its name on the command line
    title: str  # one line
    setting: str  # the caption: the paper's setting, and in what ours differs
    plan: Callable[[Choices], Sequence[Run]]
    """Returns the runs that the choices ask for. Raises `BadInputError` if data are missing."""
    perform: Callable[[Run, int], Sequence[Row]]
    """Does one run with a number of threads, and returns its rows. The threads change how long it
    takes, nothing else."""
    summarise: Callable[[pl.DataFrame], pl.DataFrame]
    """Turns the tidy table (one line a row, the run's parameters as columns, too) into the few
    lines that a reader wants to see."""
    expect: Callable[[pl.DataFrame], Sequence[Finding]]  # compares the table with what is expected
    draw: Callable[[pl.DataFrame], Mapping[str, Figure]] | None = None
    """Draws the table: name of each picture -> figure. None for an experiment that is a table."""
    headline: Callable[[pl.DataFrame], Mapping[str, Any]] | None = None
    """Figures for the top of ``results.json``."""
    options: tuple[Option, ...] = ()  # options that only this experiment has
    fresh: bool = False
    """Whether each run has a process of its own; its rows then get ``run_seconds``,
    ``run_cpu_seconds`` and ``peak_mib``."""
    timed: bool = False
    """Whether the table has times: each run is then fresh and alone, and has all cores."""
