"""The program itself: help, usage, exit codes, commands of others, signals."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from unittest.mock import Mock

import pytest

import dualquery as package
from dualquery.cli.main import FIRST_STEPS, app
from tests.tables import names

ROOT = Path(__file__).resolve().parents[2]
INTERRUPT = Mock(side_effect=KeyboardInterrupt)


def commands() -> list[tuple[str, ...]]:
    """Return every command with its sub-commands, as the words of a call."""
    found = [(each.name or each.callback.__name__,) for each in app.registered_commands]
    for group in app.registered_groups:
        inner = group.typer_instance.registered_commands
        found += [(group.name,), *((group.name, each.callback.__name__) for each in inner)]
    return [tuple(word.replace("_", "-") for word in words) for words in found]


def test_version_help_and_no_command(dualquery) -> None:
    assert dualquery("--version").out == f"dualquery {package.__version__}\n"
    assert dualquery().out == f"{FIRST_STEPS}\n"
    for asked in ("--help", "-h"):
        done = dualquery(asked).ok
        assert all(words[0] in done.out for words in commands())


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_help_of_every_command_has_an_example(dualquery, words) -> None:
    done = dualquery(*words, "--help").ok
    assert "Example" in done.out
    assert f"dualquery {' '.join(words)}" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["relaese"], "No such command 'relaese'"),
        (["release", "--colour"], "No such option: --colour"),
        (["release", "a", "b"], "unexpected extra argument"),
        (["evaluate", "x"], "Missing argument"),
        (["evaluate", "x", "adult", "--threads", "0"], "--threads"),
    ],
)
def test_wrong_usage_is_exit_code_2(dualquery, here, arguments, message) -> None:
    assert message in dualquery(*arguments).refusal
    assert names(here) == set()


def test_internal_faults_are_exit_code_1(dualquery, small, here, monkeypatch) -> None:
    fail = Mock(side_effect=ZeroDivisionError("seven\nlines"))
    monkeypatch.setattr("dualquery.room.curator.Curator.evaluate", fail)
    done = dualquery(*small)
    assert done.code == 1
    fault = "error: internal fault: ZeroDivisionError: seven lines"
    assert done.last == f"{fault} (--verbose shows where)"
    assert "Traceback" not in done.err
    assert all("Traceback" in dualquery(*small, flag).err for flag in ("--verbose", "-v"))
    monkeypatch.setattr("dualquery.data.schema.schema_files.load_schema", fail)
    assert dualquery("schema", "check", "adult").last == fault
    assert names(here) == set()


def test_ctrl_c_leaves_a_charge_and_says_so(dualquery, here, monkeypatch) -> None:
    monkeypatch.setattr("dualquery.room.learning.SchemaRoom.open", INTERRUPT)
    assert dualquery("budget", "init", "file", "--epsilon", "5", "--delta", "1e-6").code == 0
    done = dualquery("schema", "adult", "--epsilon", "1", "--delta", "1e-9", "--budget", "file")
    kept = "what the budget file was charged, if anything, stays charged"
    assert done.last.endswith(f"nothing was written; {kept}")
    assert re.search("schema .*begun", dualquery("budget", "show", "file").out)


def test_ctrl_c_is_exit_code_130_and_leaves_nothing(dualquery, small, here, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("dualquery.room.curator.Curator.evaluate", INTERRUPT)
        for extra in ([], ["--json"], ["--quiet"]):
            done = dualquery(*small, "--out", "deep/out", *extra)
            assert done.code == 130
            assert done.out == ""
            assert done.last == "error: interrupted: nothing was written"
            assert names(here) == set()
    monkeypatch.setattr("dualquery.cli.commands.release._show", INTERRUPT)
    done = dualquery(*small, "--out", "out")
    assert (done.code, done.last) == (130, "error: interrupted: the release is written to out")
    assert names(here) == {"out"}


class TestThirdPartyCommands:
    """Commands of other packages; one that is broken harms no other command."""

    @pytest.fixture(autouse=True)
    def entry_points(self, monkeypatch: pytest.MonkeyPatch):
        here = "tests.cli.test_program"
        greeting = EntryPoint("greet", f"{here}:greet", "dualquery.commands")
        kinds = {"broken": "tests.no_such:run", "none": f"{here}:HEAVY", "solve": f"{here}:greet"}
        others = [EntryPoint(name, value, "dualquery.commands") for name, value in kinds.items()]
        points = EntryPoints([greeting, *others])
        monkeypatch.setattr("dualquery.cli.main.entry_points", points.select)
        monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])

    def test_they_run_and_run_again(self, dualquery) -> None:
        assert all(dualquery("greet", "world").out == "hello world\n" for _ in range(2))
        assert "greet" in dualquery("--help").out

    @pytest.mark.parametrize("name", ["broken", "none"])
    def test_a_broken_one_says_so(self, dualquery, name) -> None:
        done = dualquery(name)
        assert f"command '{name}'" in done.refusal
        assert "cannot be imported" in done.last
        assert dualquery("solvers").code == 0

    def test_none_takes_the_place_of_a_built_in_one(self, dualquery) -> None:
        done = dualquery("solve", "world")
        assert (done.code, "world" in done.last, "hello" in done.out) == (2, True, False)


def greet(name: str) -> None:
    """Greet somebody.

    Example: dualquery greet world
    """
    print(f"hello {name}")


HEAVY = ["numba", "polars", "scipy", "ortools", "pyscipopt", "pyarrow", "opendp", "dp_accounting"]


def test_help_and_bad_options_import_nothing_heavy() -> None:
    asked = [[*words] for words in (("--version",), ("--help",), ("release", "--help"))]
    asked += [["release", "adult", *words] for words in (("--delta", "2"), ("-o", "free"))]
    script = (
        "import sys\n"
        "from dualquery.cli.main import main\n"
        f"codes = [main(words) for words in {asked}]\n"
        f"print('HEAVY', [name for name in {HEAVY} if name in sys.modules], codes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "HEAVY [] [0, 0, 0, 2, 2]"


def test_what_a_library_prints_goes_to_stderr_and_what_is_not_encoded_is_escaped() -> None:
    code = (
        "import os, dualquery.cli.main as program\n"
        "program.guarded = lambda *_: (os.write(1, b'noise'), print('kept \\u0141'))\n"
        "program.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("kept \\u0141\n", "noise")


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_a_closed_stderr_lends_its_number_to_no_file() -> None:
    code = "import os, dualquery.cli.main as m; m.guarded = lambda *_: os.dup(1); print(m.main())"
    command = 'exec "$0" -c "$1" 2>&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, code], capture_output=True, text=True, cwd=ROOT
    )
    assert int(done.stdout) > 2


@pytest.mark.skipif(sys.platform != "linux", reason="a full device of Linux")
def test_output_that_nobody_takes_ends_in_one_line() -> None:
    command = '("$0" -m dualquery --help; echo $? >&2) | true; "$0" -m dualquery --help > /dev/full'
    command += "; echo $? >&2"
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True)
    first, code, second, again = done.stderr.splitlines()
    assert (code, again) == ("2", "2")
    assert first == "error: cannot print: Broken pipe; what was written or charged stays"
    assert second.startswith("error: cannot print: No space left")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_real_signal_ends_cleanly(files, tmp_path) -> None:
    (folder := tmp_path / "work").mkdir()
    process = subprocess.Popen(
        [
            sys.executable, "-m", "dualquery", "release", files[0], "--schema", files[1],
            "--queries", "50", "--way", "2", "--rounds", "5000", "--samples", "20",
            "--accountant", "zcdp", "--solver", "highs", "--out", "mine",
        ],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while process.stderr.readline() not in ("running dualquery\n", ""):
        pass
    # The folder is reserved before the work begins.
    journal = folder / "mine.unfinished" / "journal"
    while b'{"end"' not in journal.read_bytes() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    said = r"private draws begun: \d+; .* release --resume mine.unfinished"
    said += ", or delete it to make a new one$"
    assert re.search(f"^error: interrupted: {said}", err.rstrip().splitlines()[-1])
    assert "Traceback" not in err
    assert names(folder) == {"mine.unfinished"}
