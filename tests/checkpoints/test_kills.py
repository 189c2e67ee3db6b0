"""kill -9 at random instants, then both copies of what is left go on: a charge has one release."""

import contextlib
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from dualquery.budgets.budget_file import BudgetFile
from dualquery.checkpoints.checkpoint import Checkpoint
from dualquery.cli.main import main
from dualquery.releases.keep.folder import load_release
from dualquery.releases.make.payment import Payment
from tests.tables import write_people

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

HOWS = {
    "gaussian": ("--mechanism", "gaussian"),
    "game": ("--mechanism", "dualquery", "--rounds", "25", "--samples", "3"),
    "matrix, means": ("--mechanism", "matrix", "--means", "age"),
}
WHY_NOT = {
    "lost in a draw": "so it cannot go on: delete",
    "stopped at once": "does not say what was asked for",
    "not charged, and nothing is left": "has no room",
    "out already": "exists already",
    "another copy goes on": "goes on from another copy",
    "another copy is out": "a copy of a checkpoint whose release",
    "nothing was begun": "no folder of an unfinished release",
}
"""What refuses to go on; of two copies the first of these counts."""
STAGES = ("ready", "paying", "within", "out")
"""Files of a worker: it has begun, is about to pay, is about to draw, has given a release out."""

_processes = multiprocessing.get_context("forkserver")
# Imports take seconds, and no thread may run before the fork: import, call nothing.
_processes.set_forkserver_preload(
    [
        "dualquery.api", "dualquery.cli.main", "dualquery.cli.commands.release",
        "dualquery.mechanisms.baselines.noisy_answers", "dualquery.models.model",
        "dualquery.queries.generate.workloads", "dualquery.room.sensitivity.spectral",
        "dualquery.room.sensitivity.combinatorial", "dualquery.releases.keep.folder",
        "dp_accounting.rdp.rdp_privacy_accountant", "opendp.mod", "opendp.measurements",
        "pandas", "polars", "pyarrow.compute", "rich.progress", "scipy.stats",
        "sklearn.decomposition",
    ]
)  # fmt: skip


def work(folder: Path, asked: list[str], name: str, state: str) -> None:
    """Make releases until the budget is spent; note when a draw is made, and if it is unpaid."""
    os.environ["XDG_STATE_HOME"] = state  # the server of forks may be that of another test
    pay, begin, end = Payment.pay, Checkpoint.begin, Checkpoint.end
    within = folder / f"within-{name}"

    def noted_pay(payment: Payment, *given: object) -> None:
        (folder / f"paying-{name}").touch()
        pay(payment, *given)  # type: ignore[arg-type]

    def noted_begin(kept: Checkpoint, *given: object, spare: bool) -> None:
        within.touch()
        begin(kept, *given, spare=spare)  # type: ignore[arg-type]
        if kept.facts["charge"]["release"] not in BudgetFile(folder / "budget").read().releases:
            (folder / "unpaid").touch()

    def noted_end(kept: Checkpoint, result: object) -> None:
        end(kept, result)  # type: ignore[arg-type]
        within.unlink()

    Payment.pay = noted_pay  # type: ignore[method-assign]
    Checkpoint.begin, Checkpoint.end = noted_begin, noted_end  # type: ignore[method-assign]
    (folder / f"ready-{name}").touch()
    for number in range(1000):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = main([*asked, "--out", str(folder / f"out-{name}-{number}")])
        if code:
            (folder / "refused").touch()
            os._exit(0 if "has no room" in said.getvalue() else 1)


def resume(path: Path, state: str) -> None:
    """Go on with a release that was killed, and leave beside it what was said."""
    os.environ["XDG_STATE_HOME"] = state
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(["release", "--resume", str(path), "--threads", "1"])
    found = [name for name, text in WHY_NOT.items() if text in said.getvalue()]
    known = code == 0 or (code == 2 and len(found) == 1)
    path.with_suffix(".said").write_text((found or ["goes on"])[0] if known else said.getvalue())


def go_on(folder: Path, state: str) -> Counter[str]:
    """Resume every release that was killed, and a copy of it at once; return what came of them."""
    done: Counter[str] = Counter()
    for path in [*folder.glob("*.unfinished")]:
        both = path, path.with_name(f"copy-{path.name}")
        shutil.copytree(*both, ignore=shutil.ignore_patterns("space"))
        racers = [_processes.Process(target=resume, args=(each, state)) for each in both]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        came = {each.with_suffix(".said").read_text() for each in both}
        done[next(name for name in ("goes on", *WHY_NOT) if name in came)] += 1
        assert came <= {"goes on", *WHY_NOT}, came
        done["races"] += 1
        for each in both:
            if each.exists():
                each.rename(each.with_suffix(".seen"))
    return done


def check(folder: Path, lost: int) -> None:
    account = BudgetFile(folder / "budget").read()
    assert account.spent[0] <= 1.0
    assert account.spent[1] <= 1e-6
    assert not (folder / "unpaid").exists()
    made = []
    for out in {path.parent for path in folder.glob("*/release.json")}:
        load_release(out)
        said = json.loads((out / "release.json").read_text())
        charged = account.releases[said["options"]["budget_file"]["release"]]
        stated = said["privacy"]["epsilon"], said["privacy"]["delta"]
        assert (charged.cost.epsilon, charged.cost.delta) == stated
        made.append(charged.id)
    assert len(made) == len(set(made))
    assert len(account.releases) - len(made) == lost


def kill(tmp_path: Path, how: str, kills: int, longest: float) -> None:
    table, schema = write_people(tmp_path, rows=50)
    chance, done = random.Random(how), Counter[str]()
    killed = files = lost = 0
    folder, spent = tmp_path / "none", 0
    while killed < kills:
        if not folder.exists() or spent:
            folder, lost = tmp_path / f"file-{files}", 0
            folder.mkdir()
            BudgetFile.create(folder / "budget", epsilon=1.0, delta=1e-6)
            files += 1
        asked = [
            "release", str(table), "--schema", str(schema), "--queries", "5", "--way", "1",
            *HOWS[how], "--epsilon", "0.1", "--delta", "1e-8", "--budget", str(folder / "budget"),
            "--threads", "1",
        ]  # fmt: skip
        names = [f"{killed}-{number}" for number in range(2)]
        state = os.environ["XDG_STATE_HOME"]
        workers = [_processes.Process(target=work, args=(folder, asked, n, state)) for n in names]
        for each in workers:
            each.start()
        for name, each in zip(names, workers, strict=True):
            begun = f"{chance.choice(STAGES)}-{name}*"
            while each.is_alive() and {p.suffix for p in folder.glob(begun)} <= {".unfinished"}:
                time.sleep(0.001)
            time.sleep(longest * chance.random() ** 3)  # most of them at once
            if each.is_alive() and each.pid is not None:
                os.kill(each.pid, signal.SIGKILL)
            each.join()
            assert each.exitcode in (0, -signal.SIGKILL)
            killed += each.exitcode == -signal.SIGKILL
        done["within a draw"] += len([*folder.glob("within-*")])
        for path in folder.glob("within-*"):
            path.unlink()
        resumed = go_on(folder, state)
        done += resumed
        lost += resumed["lost in a draw"]
        spent = (folder / "refused").exists() + resumed["not charged, and nothing is left"]
        check(folder, lost)
    assert done["lost in a draw"] <= done["within a draw"]
    print(how, killed, "kills,", files, "budget files:", dict(done))
    assert kills < 10 or done["goes on"] > 0


def test_a_few(tmp_path: Path) -> None:
    kill(tmp_path, "gaussian", 3, longest=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_many(tmp_path: Path, how: str) -> None:
    """The bar of issue 35: 200 kills in all."""
    kill(tmp_path, how, 70, longest=0.5)
