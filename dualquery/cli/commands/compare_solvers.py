"""``dualquery compare-solvers``: back-ends side by side on a real run's problems, or on files."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.options import (
    Budget,
    Delta,
    Epsilon,
    Json,
    MaxRowsPerUnit,
    MaxWeight,
    Quiet,
    SchemaName,
    UnitColumn,
    Verbose,
    WeightColumn,
)
from dualquery.cli.terminal import Terminal, set_threads, start_logging
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.privacy.statement import PrivacyStatement
    from dualquery.releases.keep.folder import Release
    from solvers import BestResponse
    from solvers.comparison import Measurement, NamedProblem, SolverSummary

_NOT_PRIVATE = "NOT-PRIVATE-"
"""Begins the name of every file of a comparison that has no guarantee."""

_HEADS = ("solver", "run", "solved", "proven", "best", "1%", "proof", "gap", "bound", "over")

FIRST_SOLVED = 2
"""The first round needs no solver."""

_DEFAULT_SOLVERS = "auto,local-search,cpsat,scip,highs"


def compare_solvers(
    instances: Annotated[
        list[str] | None,
        typer.Argument(
            help="A table (a built-in name, PATH or FORMAT:PATH; default adult), or files of "
            "problems: .wcnf, .lp, .mps, .opb.",
            metavar="TABLE|PROBLEM",
        ),
    ] = None,
    solvers: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Names separated by commas; default: {_DEFAULT_SOLVERS}. May be repeated. "
            "maxsat:COMMAND needs an option of its own."
        ),
    ] = None,
    solver_timeout: Annotated[float, typer.Option(help="Longest time limit, in seconds.")] = 20.0,
    at: Annotated[str, typer.Option(help="Rounds whose problems are taken.")] = "2,5,20,80",
    schema: SchemaName = None,
    unit: UnitColumn = None,
    max_rows_per_unit: MaxRowsPerUnit = None,
    weight: WeightColumn = None,
    max_weight: MaxWeight = None,
    queries: Annotated[
        int, typer.Option(help="Random queries of the run on the table.", min=1)
    ] = 100_000,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", help="An option of the mechanism dualquery.", metavar="KEY=VALUE"
        ),
    ] = None,
    reduce: Annotated[
        bool, typer.Option("--reduce", help="Reduce each problem before every solver.")
    ] = False,
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    budget: Budget = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Makes run and solvers reproducible. Files from a table of yours are then not "
            "private, and are named so.",
            min=0,
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="Most threads of a solver.", min=1)] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder to make; default: comparison-<UTC time>.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare best-response solvers under equal limits, each run in a process of its own.

    Every solver gets each problem with 1/64, 1/16, 1/4 and all of
    --solver-timeout, until it proves an optimum. The folder holds every call
    (Parquet), the comparison (JSON), a picture and the problems.

    Problems of a table show queries that were drawn from private weights: they
    are released at (--epsilon, --delta), and privacy.json in the folder states
    the guarantee.

    Examples:

      dualquery compare-solvers adult --solvers auto,cpsat,scip --solver-timeout 5

      dualquery compare-solvers rounds/*.wcnf --solvers cpsat --solvers "maxsat:uwrmaxsat -m"
    """
    terminal = Terminal(machine=as_json, quiet=quiet)
    start_logging(verbose=verbose, quiet=quiet)
    set_threads(threads)

    from dualquery.data.encoding.units import Unit, Weight
    from dualquery.data.readers.formats import is_public
    from solvers import available_solvers, get_solver
    from solvers.comparison import compare, summarise
    from solvers.comparison.plots import write_plots
    from solvers.comparison.report import report, write_report
    from solvers.formats import is_instance_file

    if not solver_timeout > 0:
        raise BadInputError(f"--solver-timeout is {solver_timeout}; seconds above 0 are needed")
    names = _solver_names(solvers or [_DEFAULT_SOLVERS])
    for name in names:
        get_solver(name)
    target = out or Path(f"comparison-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}")
    with _new_folder(target):
        asked = instances or ["adult"]
        if all(is_instance_file(name) for name in asked):
            for name, value in (("--budget", budget), ("--unit", unit), ("--weight", weight)):
                if value is not None:
                    raise BadInputError(
                        f"{name} is about a run on a table, and problems from files have none; "
                        "leave it out"
                    )
            problems, privacy = _problems_of_files(asked), None
        else:
            paid = {"epsilon": epsilon, "delta": delta, "budget": budget, "seed": seed}
            problems, privacy = _drawn_problems(
                terminal, asked, at, option, schema=schema, queries=queries, threads=threads,
                unit=Unit.of_options(unit, max_rows_per_unit),
                weight=Weight.of_options(weight, max_weight), **paid,
            )  # fmt: skip
            terminal.console.print(privacy.guarantee(), markup=False)

        def listen(one: Measurement) -> None:
            said = f"{one.solver} on {one.instance}, {one.limit:.3g} s: {one.status}"
            terminal.console.print(said, markup=False)

        measurements = compare(
            problems, names, solver_timeout, threads=threads, seed=seed or 0, reduced=reduce,
            listen=listen,
        )  # fmt: skip
        settings = {"solvers": names, "threads": threads, "seed": seed, "reduce": reduce,
                    "instances": asked, "processors": os.cpu_count(),
                    "versions": {each.name: each.version for each in available_solvers()},
                    "python": platform.python_version(), "system": platform.platform()}  # fmt: skip
        content = report(problems, measurements, solver_timeout, settings)
        with _stated(target, privacy, public=is_public(asked[0])):
            write_report(target, content)
            _write_problems(target, problems)
            pictured = find_spec("matplotlib") is not None
            if pictured:
                write_plots(target, measurements)
    content["out"] = str(target)
    if privacy is not None:
        content["privacy"] = privacy.to_dict()
    terminal.emit(content)
    caption = (
        "solved: as good a record as the best known; best, 1%, proof: mean time to the best known, "
        "to within 1% of it, to the proof; gap, bound: mean distance of record and bound from the "
        "best known; over: most time beyond a limit"
    )
    terminal.table(
        _HEADS,
        map(_cells, summarise(measurements)),
        padding=(0, 1, 0, 0),
        box=None,
        caption=caption,
        caption_justify="left",
    )
    if not pictured:
        terminal.console.print("no picture: it needs Matplotlib (pip install 'dualquery\\[plots]')")
    terminal.console.print(f"written to {target}", markup=False)


def _solver_names(options: Sequence[str]) -> list[str]:
    """Split lists of names; a command of its own may have commas."""
    names: list[str] = []
    for option in options:
        parts = [option] if option.startswith("maxsat:") else option.split(",")
        names += [part.strip() for part in parts if part.strip()]
    if not names:
        raise BadInputError("--solvers names no solver; see dualquery solvers")
    return list(dict.fromkeys(names))


def _drawn_problems(
    terminal: Terminal, instances: list[str], at: str, option: list[str] | None, **asked: Any
) -> tuple[list[NamedProblem], PrivacyStatement]:
    """Return the problems of a run on a table, and the guarantee of the run."""
    from dualquery.requests import MechanismRequest
    from solvers.comparison import NamedProblem
    from solvers.formats import is_instance_file

    if len(instances) > 1:
        tables = [name for name in instances if not is_instance_file(name)]
        raise BadInputError(
            f"{tables[0]!r} is no file of a problem (.wcnf, .lp, .mps, .opb); "
            "give such files only, or one table"
        )
    rounds = _round_numbers(at)
    options = dict(MechanismRequest(given=option).options)
    if "solver" in options:
        raise BadInputError("-o solver: the run itself always uses local-search")
    if not {"rounds", "alpha"} & options.keys():
        options["rounds"] = max(rounds)
    with terminal.progress() as progress:
        released, found = released_with_problems(
            instances[0], rounds, options=options, progress=progress, **asked
        )
    if not found:
        raise BadInputError(f"--at {at}: the run is shorter than {min(rounds)} rounds")
    named = [NamedProblem(f"round-{number}", problem) for number, problem in found.items()]
    return named, released.privacy


def released_with_problems(
    table: Any, rounds: Collection[int], *, options: Mapping[str, Any], **asked: Any
) -> tuple[Release, dict[int, BestResponse]]:
    """Run DualQuery with local search; return the release, and the problems of some rounds.

    The problems show drawn queries, so they are outputs of the run, which its statement is about.

    Parameters
    ----------
    table
        As for `dualquery.release`.
    rounds
        Round numbers from 2 on; those past the run's last round are left out.
    options
        Fields of DualQuery's configuration but the solver.
    **asked
        Further arguments of `dualquery.release`.
    """
    from dualquery.api import release
    from solvers import get_solver
    from solvers.protocol import Wrapper
    from solvers.registry import registered

    found: dict[int, BestResponse] = {}

    class Recording(Wrapper):
        made = FIRST_SOLVED - 1

        def solve(self, problem: BestResponse, **more: Any) -> Any:
            self.made += 1
            if self.made in rounds:
                found[self.made] = problem
            return super().solve(problem, **more)

    recorder = Recording(get_solver("local-search"))
    with registered("recording", lambda _: recorder):
        options = {**options, "solver": "recording"}
        released = release(table, mechanism="dualquery", options=options, **asked)
    return released, found


def _problems_of_files(files: Sequence[str]) -> list[NamedProblem]:
    from solvers.comparison import NamedProblem
    from solvers.formats import read_instance

    own = Counter(Path(name).name for name in files)
    # Files of one name in several folders are called by their whole paths.
    names = [Path(name).name if own[Path(name).name] == 1 else name for name in files]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInputError(f"{twice} is given twice; give each file of a problem once")
    return [
        NamedProblem(name, read_instance(file).problem)
        for name, file in zip(names, files, strict=True)
    ]


def _write_problems(folder: Path, problems: Sequence[NamedProblem]) -> None:
    """Keep the problems, for whoever wants to repeat the comparison."""
    from solvers.formats import write_instance

    (folder / "problems").mkdir()
    taken: set[str] = set()
    for number, named in enumerate(problems, 1):
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", named.name).strip("-")
        stem = f"{stem}-{number}" if stem.lower() in taken else stem
        taken.add(stem.lower())
        write_instance(folder / "problems" / f"{stem}.lp", named.problem)


@contextmanager
def _stated(folder: Path, privacy: PrivacyStatement | None, *, public: bool) -> Iterator[None]:
    """State the guarantee of the run before its files; without one, every file's name says so.

    Problems from files have no run (None), and a ``public`` table is of nobody: then there is
    nothing to protect.
    """
    if privacy is not None:
        content = {**privacy.to_dict(), "text": privacy.text(), "public_table": public}
        text = json.dumps(content, indent=2, ensure_ascii=False)
        (folder / "privacy.json").write_text(text + "\n", encoding="utf-8")
    try:
        yield
    finally:
        if privacy is not None and not privacy.private and not public:
            for file in [each for each in folder.rglob("*") if each.is_file()]:
                if file.name != "privacy.json":
                    file.rename(file.with_name(f"{_NOT_PRIVATE}{file.name}"))


def _round_numbers(at: str) -> list[int]:
    try:
        numbers = sorted({int(part) for part in at.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < FIRST_SOLVED:
        raise BadInputError(
            f"--at is {at!r}; give rounds from {FIRST_SOLVED} on, with commas between: the first "
            "round needs no solver"
        )
    return numbers


@contextmanager
def _new_folder(path: Path) -> Iterator[None]:
    """Make a folder, and leave none behind if nothing comes of it."""
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise BadInputError(f"--out {path}: {error.strerror}; give a new folder") from error
    try:
        yield
    except BaseException:
        if not any(path.iterdir()):
            path.rmdir()
        raise


def _cells(each: SolverSummary) -> list[str]:
    """Return a solver's line of the table."""
    times = (each.incumbent_seconds, each.close_seconds, each.proof_seconds)
    return [
        each.solver,
        *map(str, (each.instances, each.solved, each.proven)),
        *("-" if seconds is None else f"{seconds:.2g}s" for seconds in times),
        f"{each.gap:.1%}",
        "-" if each.bound_gap is None else f"{each.bound_gap:.1%}",
        f"{each.overrun_seconds:.1g}s",
    ]
