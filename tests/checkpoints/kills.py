"""Releases that are killed at random instants, and what must hold of the files they leave.

Workers make real releases of a tiny table on one budget file, by the command line in process. Each
notes, before the first private draw of a release, which charge it was told is on the disk; so a
draw without its charge would be seen even if no answer of it got out.

`rounds_of_kills` starts workers, kills them with SIGKILL and looks at what is left. To look at
more, give it an ``after``: it is called with the folder once the workers of a round are dead.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualquery.budgets.budget_file import BudgetFile
from tests.tables import write_people

EPSILON, DELTA = 0.1, 1e-8
"""Of each release."""

WHOLE = {"epsilon": 1.0, "delta": 1e-6}
"""Of a budget file: ten releases."""

BUDGET, REFUSED = "b.budget", "refused"
READY, PAYING, DRAWS, OUT, WITHIN = "ready", "paying", "draws", "out", "within"
STAGES = (READY, PAYING, DRAWS, OUT)
"""Files of a worker: it has begun, is about to pay, draws, has given a release out; and one that
is there only while it draws."""

_processes = multiprocessing.get_context("forkserver")
# Imports take seconds, and no thread may run before the fork: import, call nothing.
_processes.set_forkserver_preload(
    [
        "dualquery.api", "dualquery.cli.main", "dualquery.cli.console",
        "dualquery.mechanisms.baselines.noisy_answers", "dualquery.models.stored",
        "dualquery.queries.generate.marginals", "dualquery.room.sensitivity.spectral",
        "dualquery.room.sensitivity.pairwise_kernels", "dualquery.releases.folder",
        "dp_accounting.rdp.rdp_privacy_accountant", "opendp.mod", "opendp.measurements",
        "pandas", "polars", "pyarrow.compute", "rich.progress", "scipy.stats",
        "sklearn.decomposition",
    ]
)  # fmt: skip


@dataclass
class Tally:
    """What was counted over all kills."""

    kills: int = 0
    in_draws: int = 0
    """Kills within a draw."""
    files: int = 0
    releases: int = 0
    """Complete release folders."""
    charged: int = 0
    unfinished: int = 0
    """Charged releases without an answer."""
    overspent: int = 0
    lost: int = 0
    """Draws or answers whose charge is not in the file."""
    torn: int = 0
    """Release folders that cannot be read."""
    faults: int = 0
    """Workers that ended other than by a kill or a refusal for lack of budget."""


GAUSSIAN = ("--mechanism", "gaussian")
UNIT = ("--unit", "home", "--max-rows-per-unit", "3", "--rows", "40")
WEIGHT = ("--weight", "w", "--max-weight", "5", "--rows", "100")
MEANS = ("--means", "age")
OF_ALL_KINDS = (
    GAUSSIAN,
    (*GAUSSIAN, *UNIT),
    (*GAUSSIAN, *WEIGHT),
    (*GAUSSIAN, *MEANS),
    ("--mechanism", "matrix", *UNIT, *WEIGHT, *MEANS),
)
"""Ways to make a release; those of one budget file are all made in one of them."""


def write_homes(folder: Path, rows: int) -> tuple[Path, Path]:
    """Write people with the home that each lives in and a weight, and the schema."""
    import polars as pl

    table, schema = write_people(folder, rows)
    people = pl.read_csv(table).with_row_index("row")
    people = people.with_columns(home=pl.col("row") % 15, w=pl.col("row") % 7).drop("row")
    people.write_csv(table)
    return table, schema


def work(
    folder: Path, table: Path, schema: Path, name: str, state: str, how: tuple[str, ...]
) -> None:
    """Make releases until the budget is spent."""
    os.environ["XDG_STATE_HOME"] = state  # the server of forks may be that of another test
    from dualquery.checkpoints.checkpoint import Checkpoint
    from dualquery.cli.main import main
    from dualquery.releases.payment import Payment

    paid: list[str] = []
    pay, begin, end = Payment.pay, Checkpoint.begin, Checkpoint.end
    within = folder / f"{WITHIN}-{name}"

    def noted_pay(self: Payment, *arguments: object) -> None:
        (folder / f"{PAYING}-{name}").touch()
        pay(self, *arguments)  # type: ignore[arg-type]
        assert self.charge is not None
        paid.append(self.charge.release)

    def noted_begin(self: Checkpoint, *arguments: object, spare: bool) -> None:
        within.touch()
        begin(self, *arguments, spare=spare)  # type: ignore[arg-type]
        with (folder / f"{DRAWS}-{name}").open("a") as stream:
            stream.write(f"{paid[-1] if paid else 'unpaid'}\n")

    def noted_end(self: Checkpoint, result: object) -> None:
        end(self, result)  # type: ignore[arg-type]
        within.unlink()

    Payment.pay = noted_pay  # type: ignore[method-assign]
    Checkpoint.begin = noted_begin  # type: ignore[method-assign]
    Checkpoint.end = noted_end  # type: ignore[method-assign]
    (folder / f"{READY}-{name}").touch()
    for number in range(1000):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = main([
                "release", str(table), "--schema", str(schema), "--queries", "5", "--way", "1",
                *how, "--epsilon", str(EPSILON), "--delta", str(DELTA),
                "--budget", str(folder / BUDGET), "--out", str(folder / f"{OUT}-{name}-{number}"),
                "--threads", "1",
            ])  # fmt: skip
        if code:
            (folder / f"{REFUSED}-{name}").write_text(said.getvalue())
            os._exit(0 if "has no room" in said.getvalue() else 1)


def rounds_of_kills(
    place: Path,
    table: Path,
    schema: Path,
    kills: int,
    seed: int,
    *,
    workers: int = 2,
    longest: float = 0.5,
    hows: Sequence[tuple[str, ...]] = (GAUSSIAN,),
    after: Callable[[Path], None] = lambda folder: None,
) -> Tally:
    """Kill workers until there were enough kills, and count what they left.

    Parameters
    ----------
    place
        An empty folder.
    table, schema
        The private table.
    kills
        Number of workers to kill while they work.
    seed
        Of the instants: soon after a stage of a worker's first release, whatever the machine.
    workers
        Processes on one budget file at a time.
    longest
        Most seconds that a worker lives after the stage.
    hows
        Options of the releases: those of the first budget file, of the second, and so on.
    after
        Called when all workers of a round are dead.
    """
    instants = random.Random(seed)
    state = os.environ["XDG_STATE_HOME"]
    tally = Tally()
    folder, how = place, hows[0]
    while tally.kills < kills:
        if folder is place or any(folder.glob(f"{REFUSED}-*")):
            folder = place / f"file-{tally.files}"
            folder.mkdir()
            how = hows[tally.files % len(hows)]
            unit = "home" if "--unit" in how else "row"
            BudgetFile.create(folder / BUDGET, **WHOLE, unit=unit)
            tally.files += 1
        names = [f"{tally.kills}-{number}" for number in range(workers)]
        started = [
            _processes.Process(target=work, args=(folder, table, schema, name, state, how))
            for name in names
        ]
        for each in started:
            each.start()
        for name, each in zip(names, started, strict=True):
            stage = instants.choice(STAGES)
            while not reached(folder, stage, name) and each.is_alive():
                time.sleep(0.002)
            time.sleep(longest * instants.random() ** 3)  # most of them at once
            if each.is_alive() and each.pid is not None:
                os.kill(each.pid, signal.SIGKILL)
            each.join()
            tally.kills += each.exitcode == -signal.SIGKILL
            tally.in_draws += (folder / f"{WITHIN}-{name}").exists()
            tally.faults += each.exitcode not in (0, -signal.SIGKILL)
        after(folder)
        look(folder, Tally())  # every state in between must be whole, too
    for made in sorted(place.iterdir()):
        look(made, tally)
    return tally


def reached(folder: Path, stage: str, name: str) -> bool:
    """Return whether a worker has come so far."""
    return any(path.suffix != ".unfinished" for path in folder.glob(f"{stage}-{name}*"))


def look(folder: Path, tally: Tally) -> None:
    """Count what workers left in a folder."""
    from dualquery.releases.folder import load_release

    account = BudgetFile(folder / BUDGET).read()
    spent = account.spent
    tally.overspent += spent[0] > WHOLE["epsilon"] or spent[1] > WHOLE["delta"]
    tally.charged += len(account.releases)
    answered = set()
    for out in folder.glob(f"{OUT}-*"):
        if out.name.endswith(".unfinished"):
            continue
        try:
            load_release(out)
        except ValueError:
            tally.torn += 1
            continue
        tally.releases += 1
        said = json.loads((out / "release.json").read_text())
        found = account.releases.get(said["options"]["budget_file"]["release"])
        stated = (said["privacy"]["epsilon"], said["privacy"]["delta"])
        if found is None or (found.cost.epsilon, found.cost.delta) != stated:
            tally.lost += 1
        else:
            answered.add(found.id)
    for file in folder.glob(f"{DRAWS}-*"):
        tally.lost += sum(name not in account.releases for name in file.read_text().split())
    tally.unfinished += len(account.releases) - len(answered)
