"""Budget files that are not as they should be: one clear message, and nothing changed."""

import os
import random
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dualquery.budgets.budget_file import BudgetFile
from dualquery.budgets.charge import Charge
from dualquery.budgets.sqlite_files import connected
from dualquery.privacy.composition import Composition, Cost, PrivacyFilter
from dualquery.privacy.neighbours import Neighbours, Unit
from dualquery.runtime.errors import BadInputError
from tests.budgets.conftest import Make
from tests.budgets.test_charges import TENTH, charged, refused


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_a_file_says_what_it_was_made_with(make: Make) -> None:
    file = make(epsilon=2, delta=1e-5, composition="either", neighbours="add-remove", unit="user")
    terms = file.read().terms
    assert terms.filter == PrivacyFilter(2.0, 1e-5, Composition.EITHER)
    assert (terms.neighbours, terms.unit) == (Neighbours.ADD_REMOVE, "user")
    assert BudgetFile.of(str(file.path)).read() == BudgetFile.of(Path(file.path)).read()
    assert BudgetFile.of(file) is file
    assert make("small", epsilon=np.int64(2), delta=np.float32(0)).read().terms.filter.epsilon == 2
    with pytest.raises(BadInputError, match="unit"):
        make("unit", neighbours=Neighbours.parse("replace-one", Unit("user", 3)))
    with pytest.raises(BadInputError, match="of type int"):
        BudgetFile.of(3)  # type: ignore[arg-type]


def test_a_file_holds_no_journal_and_is_synced(make: Make) -> None:
    file = make()
    charged(file)
    with connected(Path(file.path), "the file") as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert [path.name for path in Path(file.path).parent.glob("budget*")] == ["budget.sqlite"]


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["UPDATE entries SET epsilon = 0.0001"], "entry 1 is not as it was written"),
        (["UPDATE entries SET kind = 'finish'"], "entry 1 is not as it was written"),
        (["UPDATE entries SET mechanism = char(27) || '[2J'"], "printable characters"),
        (["DELETE FROM entries WHERE number = 1"], "entry 1 is missing"),
        (["UPDATE entries SET number = 7 WHERE number = 2"], "entry 2 is missing"),
        (["DELETE FROM terms"], "is damaged"),
        (["UPDATE terms SET epsilon = 1000"], "entry 1 is not as it was written"),
        (["CREATE TABLE more (a)"], "its tables are not those"),
        (["CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END"],
         "its tables are not those"),
        (["PRAGMA user_version=3"], "has format 3; this version reads 2"),
        (["UPDATE claims SET begun = 5"], "the claim of release .* is not as it was written"),
        (["PRAGMA application_id=7"], "is no budget file"),
        (["PRAGMA journal_mode=WAL"], "changed by another program"),
    ],
)  # fmt: skip
def test_a_changed_file_is_refused(make: Make, statements, message) -> None:
    file = make()
    charged(file)
    charged(file).finish()
    edit(Path(file.path), *statements)
    with pytest.raises(BadInputError, match=message) as told:
        file.read()
    assert str(told.value).startswith(str(file.path))
    refused(file, message)


def test_what_is_no_budget_file_is_refused(make: Make, tmp_path: Path) -> None:
    texts = {
        b"": "is empty: .* stays spent",
        b"epsilon,delta\n1,1e-6\n" * 100: "is damaged, or not one at all",
        b"SQLite format 3\x00" + bytes(84): "damaged|no budget file",
    }
    for number, (content, message) in enumerate(texts.items()):
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(content)
        for look in (BudgetFile(path).read, lambda path=path: charged(BudgetFile(path))):
            with pytest.raises(BadInputError, match=message) as told:
                look()
            assert "remove it" not in str(told.value)
        assert path.read_bytes() == content
    edit(tmp_path / "other.sqlite", "CREATE TABLE notes (a)")
    with pytest.raises(BadInputError, match="is no budget file; make one"):
        BudgetFile(tmp_path / "other.sqlite").read()
    large = tmp_path / "large.sqlite"
    with large.open("wb") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(BadInputError, match="larger than 64 MiB"):
        BudgetFile(large).read()


def test_bytes_changed_at_random_are_found_or_do_no_harm(make: Make, tmp_path: Path) -> None:
    """Whatever bytes are changed: the same content, or a refusal; never another budget."""
    file = make()
    for _ in range(3):
        charged(file).finish()
    before, content = file.read(), Path(file.path).read_bytes()
    chance, harmless = random.Random(0), 0
    for number in range(200):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 1, 8))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        if number % 10 == 0:
            changed = changed[: chance.randrange(len(changed))]
        (path := tmp_path / "changed.sqlite").write_bytes(changed)
        try:
            assert BudgetFile(path).read() == before
            harmless += 1
        except BadInputError:
            continue
    assert 0 < harmless < 190


def test_places_that_cannot_be_written(make: Make, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="File exists"):
        make(Path(make("budget.sqlite").path).name)
    (tmp_path / "folder").mkdir()
    places = {"none/budget": "there is no folder", "n" * 300: "too long", "folder": "File exists"}
    for name, message in (places | {"n" * 300 + "/budget": "there is no folder"}).items():
        with pytest.raises(BadInputError, match=message):
            make(name)
    file = make("locked.sqlite")
    if os.name == "nt" or os.geteuid() == 0:
        return
    Path(file.path).chmod(stat.S_IRUSR)
    file.read()
    refused(file, "cannot be written")


def test_a_link_leads_to_the_file_and_a_second_name_is_refused(make: Make, tmp_path: Path) -> None:
    file = make()
    (tmp_path / "link.sqlite").symlink_to(file.path)
    charged(BudgetFile(tmp_path / "link.sqlite"))
    assert len(file.read().releases) == 1
    os.link(file.path, tmp_path / "second.sqlite")
    refused(file, "several names")


def test_a_file_that_another_process_holds_is_waited_for(make: Make, monkeypatch) -> None:
    file = make()
    monkeypatch.setattr("dualquery.budgets.sqlite_files.WAIT_SECONDS", 0.05)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        file.read()  # a reader need not wait
        refused(file, "another process has held it")
    charged(file)


def test_an_interrupted_change_is_undone(make: Make, tmp_path: Path) -> None:
    """What is left of a process killed within a commit: the file half written, and a journal."""
    file = make()
    charged(file)
    other = sqlite3.connect(file.path, isolation_level=None)
    other.execute("PRAGMA cache_spill=1")
    other.execute("PRAGMA cache_size=1")
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE entries SET mechanism = 'spilled'")
    # Enough pages to spill over into the file before the commit.
    other.execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM "
                  "n LIMIT 2000) SELECT hex(randomblob(100)) FROM n")  # fmt: skip
    (crashed := tmp_path / "crashed").mkdir()
    for path in Path(file.path).parent.glob("budget.sqlite*"):
        shutil.copy(path, crashed)
    other.close()
    assert (crashed / "budget.sqlite-journal").stat().st_size > 0
    assert (crashed / "budget.sqlite").stat().st_size > Path(file.path).stat().st_size
    assert BudgetFile(crashed / "budget.sqlite").read() == file.read()
    assert not (crashed / "budget.sqlite-journal").exists()


def test_a_failed_making_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("dualquery.budgets.budget_file._TABLES", {2: [("CREATE NONSENSE",)]})
    with pytest.raises(BadInputError):
        BudgetFile.create(tmp_path / "b.sqlite", epsilon=1.0, delta=0.0)
    assert not list(tmp_path.iterdir())


def test_the_clock_decides_nothing(make: Make, monkeypatch) -> None:
    """Entries keep their order and their cost whatever the clock says."""
    file, times = make(), ["2030-01-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00"]
    for number in range(10):
        Charge(file, begun=times[number % 2]).pay(TENTH, mechanism="x")
    with pytest.raises(BadInputError, match="has no room"):
        Charge(file, begun="1904-01-01T00:00:00+00:00").pay(Cost(0, 1e-9, 0), mechanism="x")
