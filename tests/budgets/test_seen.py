"""Copies and restored backups, as far as the user's own counter tells; and the secret key."""

import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from dualquery.budgets.budget_file import BudgetFile
from dualquery.budgets.charge import Charge
from dualquery.budgets.sqlite_files import Seen
from dualquery.releases.make.payment import is_new, mark_of
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import state_folder
from tests.budgets.conftest import Make
from tests.budgets.test_charges import TENTH, charged, refused
from tests.budgets.test_files import edit


def copy(file: BudgetFile, name: str) -> BudgetFile:
    target = Path(file.path).with_name(name)
    shutil.copy(file.path, target)
    return BudgetFile(target)


def test_a_backup_from_before_a_charge_is_refused(make: Make) -> None:
    file = make()
    charged(file)
    backup = copy(file, "backup.sqlite")
    charged(file)
    refused(backup, "is an older copy: it has 1 entries, and 2 were seen")
    shutil.copy(backup.path, file.path)
    refused(file, "older copy")
    assert "older copy" in str(file.problem())


def test_a_copy_that_was_charged_elsewhere_is_refused(make: Make, monkeypatch, tmp_path) -> None:
    file = make()
    other = copy(file, "other.sqlite")
    charged(file)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
        charged(other)  # nothing tells: another user, or another machine
        charged(other)
    refused(other, "was charged apart from the one seen before")
    charged(file)


def test_a_file_that_others_charge_too_is_taken(make: Make, monkeypatch, tmp_path) -> None:
    """It only grows: nothing was forgotten."""
    file = make()
    charged(file)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
        charged(file)
    charged(file)
    assert len(file.read().releases) == 3


def test_a_new_file_is_known_before_its_first_charge(make: Make) -> None:
    file = make()
    edit(Path(file.path), "UPDATE terms SET epsilon = 100")
    refused(file, "charged apart")


def test_a_charge_of_another_process_meanwhile_is_no_problem(make: Make, monkeypatch) -> None:
    file, opened = make(), Seen.opened

    def late() -> object:
        monkeypatch.setattr(Seen, "opened", opened)
        charged(file)
        return opened()

    monkeypatch.setattr(Seen, "opened", late)
    assert file.problem() is None
    assert len(file.read().releases) == 1


def test_the_counter_is_not_ahead_of_the_file(make: Make, monkeypatch) -> None:
    """A crash between the two commits leaves the counter behind, so the file goes on."""
    file, opened = make(), Seen.opened

    @contextmanager
    def killed() -> Iterator[Seen]:
        with opened() as seen:
            yield seen
            raise KeyboardInterrupt

    with monkeypatch.context() as crash:
        crash.setattr(Seen, "opened", killed)
        with pytest.raises(KeyboardInterrupt):
            charged(file)
    assert len(file.read().releases) == 1  # spent, and nothing was drawn
    charged(file)
    assert len(file.read().releases) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_the_state_is_the_users_own(make: Make, state: Path) -> None:
    charged(make())
    folder = state / "dualquery"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_damaged_or_impossible_state_is_told(make: Make, state: Path, monkeypatch) -> None:
    file = make()
    charged(file)
    counter = state / "dualquery" / "budgets.sqlite"
    edit(counter, "CREATE TRIGGER full BEFORE INSERT ON seen BEGIN SELECT RAISE(FAIL, 'no'); END")
    refused(file, r"the counter of budget files .*\(no\)")
    counter.write_bytes(b"nonsense" * 1000)
    refused(file, r"the counter of budget files .* is damaged")
    blocked = state / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    refused(file, "set XDG_STATE_HOME")
    assert len(file.read().releases) == 1


def test_marks_are_keyed_and_only_compared_under_one_key(
    make: Make, tmp_path: Path, monkeypatch, state: Path
) -> None:
    (table := tmp_path / "t.csv").write_text("a\n0\n1\n")
    first = mark_of(str(table))
    assert first == mark_of(table)
    file = make()
    assert not is_new(first, file.read())  # no other table is known
    Charge(file).pay(TENTH, mechanism="x", mark=first)
    assert not is_new(first, file.read())
    table.write_text("a\n0\n1\n1\n")
    second = mark_of(table)
    assert is_new(second, file.read())
    assert mark_of("biased:10,4,1") == ""
    assert not is_new("", file.read())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    other = mark_of(table)
    assert {other[:16], other[17:]}.isdisjoint({second[:16], second[17:]})
    assert not is_new(other, file.read())  # another key: nothing can be said
    with closing(sqlite3.connect(state / "dualquery" / "budgets.sqlite")) as known:
        (key,) = known.execute("SELECT key FROM secret").fetchone()
    assert len(key) == 32
    assert key not in Path(file.path).read_bytes()
    with pytest.raises(BadInputError, match="there is no such file"):
        mark_of("none.csv")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_STATE_HOME": "/s"}, "/s/dualquery"),
        ("linux", {"XDG_STATE_HOME": "relative"}, "HOME/.local/state/dualquery"),
        ("darwin", {}, "HOME/Library/Application Support/dualquery"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/dualquery"),
    ],
)
def test_the_state_folder(monkeypatch, tmp_path: Path, platform, variables, expected) -> None:
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert state_folder() == Path(expected.replace("HOME", str(tmp_path)))


def test_without_a_home_the_user_is_told(monkeypatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("no home")))
    with pytest.raises(BadInputError, match="set XDG_STATE_HOME"):
        state_folder()
