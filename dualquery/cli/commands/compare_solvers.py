"""``dualquery compare-solvers``: back-ends side by side on a real run's problems, or on files."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.shared_options import Json, Quiet, Verbose, timed_name, with_options
from dualquery.cli.terminal import Terminal, start
from dualquery.requests import ReleaseSpec
from dualquery.runtime.errors import BadInputError, InterruptedRun
from dualquery.runtime.option_fields import built
from solvers import BestResponse, available_solvers, get_solver
from solvers.protocol import Wrapper
from solvers.registry import registered

if TYPE_CHECKING:
    from dualquery.privacy.guarantee import PrivacyStatement
    from dualquery.releases.keep.folder import Release
    from solvers.comparison import Measurement, NamedProblem, SolverSummary

_NOT_PRIVATE = "NOT-PRIVATE-"  # begins the name of every file of a run without a guarantee
_HEADS = "solver", "run", "solved", "proven", "wrong", "best", "1%", "proof", "gap", "bound", "over"
_CAPTION = (
    "solved: as good a record as the best known; wrong: one that beats the stated bound; best, 1%, "
    "proof: mean time to the best known, to within 1% of it, to the proof; gap, bound: mean "
    "distance of record and bound from the best known; over: most time beyond a limit"
)
FIRST_SOLVED = 2  # the first round needs no solver
_DEFAULT_SOLVERS = "auto,local-search,cpsat,scip,highs"


@with_options(
    "schema", "unit", "max_rows_per_unit", "weight", "max_weight", "queries", "option", "epsilon",
    "delta", "budget", "seed", solver_timeout=20.0, threads=1,
)  # fmt: skip
def compare_solvers(
    instances: Annotated[
        list[str] | None,
        typer.Argument(
            help="A table (default: adult), or files of problems: .wcnf, .lp, .mps, .opb.",
            metavar="TABLE|PROBLEM",
        ),
    ] = None,
    *,
    solvers: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Names separated by commas; default: {_DEFAULT_SOLVERS}. May be repeated. "
            "maxsat:COMMAND, or pb:COMMAND, needs an option of its own."
        ),
    ] = None,
    at: Annotated[str, typer.Option(help="Rounds whose problems are taken.")] = "2,5,20,80",
    reduce: Annotated[
        bool, typer.Option("--reduce", help="Reduce each problem before every solver.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder to make; default: comparison-<UTC time>.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    solver_timeout: float,
    **asked: Any,
) -> None:
    """Compare best-response solvers under equal limits, each run in a process of its own.

    Every solver gets each problem with 1/64, 1/16, 1/4 and all of
    --solver-timeout, until it proves an optimum. The folder holds every call
    (Parquet), the comparison (JSON), a picture and the problems.

    Problems of a table show queries that were drawn from private weights: they
    are released at (--epsilon, --delta), and privacy.json in the folder states
    the guarantee. With --seed there is none, and the files' names say so.

    Examples:

      dualquery compare-solvers adult --solvers auto,cpsat,scip --solver-timeout 5

      dualquery compare-solvers rounds/*.wcnf --solvers cpsat --solvers "maxsat:uwrmaxsat -m"
    """
    threads, seed = asked["threads"], asked["seed"]
    terminal = start(machine=as_json, quiet=quiet, verbose=verbose, threads=threads)

    from dualquery.data.readers.formats import is_public
    from solvers.comparison import NamedProblem, compare, summarise
    from solvers.comparison.plots import write_plots
    from solvers.comparison.report import report, write_report
    from solvers.formats import is_instance_file, read_instance

    if not solver_timeout > 0:
        raise BadInputError(f"--solver-timeout is {solver_timeout}; seconds above 0 are needed")
    names = _solver_names(solvers or [_DEFAULT_SOLVERS])
    for name in names:
        get_solver(name)
    given, target = instances or ["adult"], out or timed_name("comparison")
    of_files = all(is_instance_file(name) for name in given)
    for name in ("budget", "unit", "weight") if of_files else ():
        if asked[name] is not None:
            raise BadInputError(f"--{name} is about a run on a table; files have none")
    spec = built(ReleaseSpec, {**asked, "data": given[0]})
    with _new_folder(target):
        if of_files:
            if len({*given}) < len(given):
                raise BadInputError(f"{Counter(given).most_common(1)[0][0]} is given twice")
            problems = [NamedProblem(name, read_instance(name).problem) for name in given]
            privacy = None
        else:
            problems, privacy = _drawn_problems(terminal, given, at, spec)
            terminal.say(privacy.guarantee())

        def listen(one: Measurement) -> None:
            terminal.say(f"{one.solver} on {one.instance}, {one.limit:.3g} s: {one.status}")

        settings = {"solvers": names, "threads": threads, "seed": seed, "reduce": reduce,
                    "instances": given, "processors": os.cpu_count(),
                    "versions": {each.name: each.version for each in available_solvers()},
                    "python": platform.python_version(), "system": platform.platform()}  # fmt: skip
        with _stated(target, privacy, public=is_public(given[0])):
            _write_problems(target, problems)  # which are paid for
            measurements = compare(
                problems, names, solver_timeout, threads=threads, seed=seed or 0, reduced=reduce,
                listen=listen,
            )  # fmt: skip
            content = report(problems, measurements, solver_timeout, settings)
            write_report(target, content)
            if pictured := find_spec("matplotlib") is not None:
                write_plots(target, measurements)
    content["out"] = str(target)
    if privacy is not None:
        content["privacy"] = privacy.to_dict()
    terminal.emit(content)
    style: dict[str, Any] = {"padding": (0, 1, 0, 0), "box": None, "caption_justify": "left"}
    terminal.table(_HEADS, map(_cells, summarise(measurements)), caption=_CAPTION, **style)
    if not pictured:
        terminal.say("no picture: it needs Matplotlib (pip install 'dualquery[plots]')")
    terminal.say(f"written to {target}")


def _solver_names(options: Sequence[str]) -> list[str]:
    """Split lists of names; a command of its own may have commas."""
    names: list[str] = []
    for option in options:
        parts = [option] if option.startswith(("maxsat:", "pb:")) else option.split(",")
        names += [part.strip() for part in parts if part.strip()]
    if not names:
        raise BadInputError("--solvers names no solver; see dualquery solvers")
    return list(dict.fromkeys(names))


def _drawn_problems(
    terminal: Terminal, instances: list[str], at: str, spec: ReleaseSpec
) -> tuple[list[NamedProblem], PrivacyStatement]:
    """Return the problems of a run on a table, and the guarantee of the run."""
    from solvers.comparison import NamedProblem
    from solvers.formats import is_instance_file

    if len(instances) > 1:
        tables = [name for name in instances if not is_instance_file(name)]
        raise BadInputError(
            f"{tables[0]!r} is no file of a problem (.wcnf, .lp, .mps, .opb); "
            "give such files only, or one table"
        )
    rounds = [int(part) for part in at.split(",") if part.strip().isdecimal()]
    if len(rounds) <= at.count(",") or min(rounds) < FIRST_SOLVED:
        raise BadInputError(f"--at is {at!r}; give rounds from {FIRST_SOLVED} on, between commas")
    options = dict(spec.mechanism.options)
    if "solver" in options:
        raise BadInputError("-o solver: the run itself always uses local-search")
    if not {"rounds", "alpha"} & options.keys():
        options["rounds"] = max(rounds)
    short = BadInputError(f"--at {at}: the run is shorter than {min(rounds)} rounds")
    if (said := str(options.get("rounds"))).isdecimal() and int(said) < min(rounds):
        raise short
    budget = spec.budget
    progress = terminal.progress()
    released, found = released_with_problems(
        spec.table, rounds, options=options, schema=spec.schema, queries=spec.workload,
        epsilon=budget.epsilon, delta=budget.delta, guarantee=budget, budget=spec.budget_file,
        seed=spec.seed, run=replace(spec.run, progress=progress),
    )  # fmt: skip
    if not found:
        raise short
    named = [NamedProblem(f"round-{number}", problem) for number, problem in found.items()]
    return named, released.privacy


def released_with_problems(
    table: Any, rounds: Collection[int], *, options: Mapping[str, Any], **asked: Any
) -> tuple[Release, dict[int, BestResponse]]:
    """Run DualQuery with local search; return the release, and the problems of some rounds.

    The problems show drawn queries, so they are outputs of the run, which its statement is about.

    Parameters
    ----------
    table, asked
        As for `dualquery.release`.
    rounds
        Round numbers from 2 on; those past the run's last round are left out.
    options
        Fields of DualQuery's configuration but the solver.
    """
    from dualquery.api import release

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
    """State the guarantee of the run before its files; without one, every file's name says so."""
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


@contextmanager
def _new_folder(path: Path) -> Iterator[None]:
    """Make a folder, and leave none behind if nothing comes of it."""
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise BadInputError(f"--out {path}: {error.strerror}; give a new folder") from error
    try:
        yield
    except BaseException as error:
        if not any(each.is_file() for each in path.rglob("*")):
            shutil.rmtree(path)
        elif isinstance(error, KeyboardInterrupt):
            raise InterruptedRun(f"{path} holds the problems") from None
        raise


def _cells(each: SolverSummary) -> list[str]:
    """Return a solver's line of the table."""
    times = (each.incumbent_seconds, each.close_seconds, each.proof_seconds)
    return [
        each.solver,
        *map(str, (each.instances, each.solved, each.proven, each.wrong)),
        *("-" if seconds is None else f"{seconds:.2g}s" for seconds in times),
        f"{each.gap:.1%}",
        "-" if each.bound_gap is None else f"{each.bound_gap:.1%}",
        f"{each.overrun_seconds:.1g}s",
    ]
