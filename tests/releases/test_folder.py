"""A release on disk: the same when it comes back, whole or not there at all, and all public."""

import datetime
import errno
import hashlib
import json
import os
import re
from dataclasses import fields, replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.releases.keep.folder import FORMAT_VERSION, Release, load_release
from dualquery.releases.keep.reservation import reserve
from dualquery.releases.keep.stored import canonical
from dualquery.room.draws.exact_draws import Sample
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, names, people, release_people, reseal
from tests.verification.test_verify import KEYS, edit, put

FILES = {"release.json", "answers.parquet", "trace.parquet", "synthetic.parquet"}


@pytest.fixture(scope="module")
def made() -> Release:
    return release_people(queries=40, way=2, options={"rounds": 6, "samples": 5})


@pytest.fixture(scope="module")
def answers_only() -> Release:
    return release_people(queries=10, way=1, mechanism="zero")


@pytest.fixture
def saved(made, tmp_path) -> Path:
    return made.save(tmp_path / "out")


def assert_equal(one: Release, other: Release) -> None:
    """Compare every field; a new one must be compared somehow too."""
    np.testing.assert_array_equal(one.answers, other.answers)
    np.testing.assert_array_equal(one.workload.literals, other.workload.literals)
    np.testing.assert_array_equal(one.workload.domain.offsets, other.workload.domain.offsets)
    assert dict(one.workload.description) == dict(other.workload.description)
    if one.records is None:
        assert other.records is None
    else:
        np.testing.assert_array_equal(one.records, other.records)
        assert one.records.dtype == other.records.dtype
    for name in {field.name for field in fields(Release)} - {"answers", "records", "workload"}:
        assert getattr(one, name) == getattr(other, name), name


def test_what_is_saved_comes_back_in_every_field(made, tmp_path) -> None:
    assert made.save(tmp_path / "out") == tmp_path / "out"
    assert names(tmp_path / "out") == FILES
    assert names(tmp_path) == {"out"}
    assert_equal(made, load_release(tmp_path / "out"))


def test_a_release_without_records_or_rounds_comes_back(answers_only, tmp_path) -> None:
    assert names(answers_only.save(tmp_path / "out")) == FILES - {"synthetic.parquet"}
    back = load_release(tmp_path / "out")
    assert_equal(answers_only, back)
    assert back.synthetic is None
    trace = pl.read_parquet(tmp_path / "out" / "trace.parquet")
    assert trace.columns == ["round"]
    assert trace.height == 0


@pytest.mark.parametrize("bits", [300, 10_001])
def test_many_items_come_back_in_short_and_long_form(bits, tmp_path) -> None:
    """Above 10,000 bits a record is one list of its items, and nobody who loads it can tell."""
    table = (np.random.default_rng(0).random((60, bits)) < 3 / bits).astype(np.uint8)
    made = dualquery.release(table, queries=30, way=2, options={"rounds": 5, "samples": 5})
    assert_equal(made, load_release(made.save(tmp_path / "out")))
    written = pl.read_parquet(tmp_path / "out" / "synthetic.parquet")
    if bits > 10_000:
        assert written.schema == {"items": pl.List(pl.Int32)}
        # A schema as ranges, not a list of all items.
        assert (tmp_path / "out" / "release.json").stat().st_size < 10_000
    else:
        assert written.width == bits


def test_columns_of_every_kind_come_back(tmp_path) -> None:
    """Missing values, awkward names and awkward values included."""
    table = pl.DataFrame(
        {
            "a & b": ["x=1", 'say "hi"', "[bold]", None] * 10,
            'quo"te': [1.5, float("nan"), -2.0, 7.25] * 10,
            "!bang": [True, False, True, True] * 10,
            "items": ["p", "q", "p", "q"] * 10,
        }
    )
    made = dualquery.release(
        table, queries=20, way=2, options={"rounds": 8, "samples": 5}, schema_from_data=True
    )
    back = load_release(made.save(tmp_path / "out"))
    assert_equal(made, back)
    assert back.synthetic.equals(made.synthetic)
    assert back.synthetic.columns == table.columns


def test_loading_an_older_format_needs_no_upgrade(made, saved) -> None:
    assert json.loads((saved / "release.json").read_text())["format_version"] == FORMAT_VERSION == 2
    edit(saved, lambda stored: [stored.update(format_version=1), stored.pop("proof")])
    assert load_release(saved).proof == {}
    assert_equal(replace(made, proof={}), load_release(saved))


def test_each_file_has_its_digest_and_a_saved_copy_computes_them_anew(saved, tmp_path) -> None:
    for folder in (saved, load_release(saved).save(tmp_path / "copy")):
        stored = json.loads((folder / "release.json").read_text())
        digests = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}
        del digests["release.json"]
        assert stored["proof"]["files"] == digests
        assert stored["proof"].pop("content") == hashlib.sha256(canonical(stored)).hexdigest()


OPTIONS = {
    "csv", "epsilon", "delta", "accountant", "neighbours", "rows", "seed", "records", "budget_file",
    "mechanism", "unit", "weight",
}  # fmt: skip
PRIVACY = {
    "private", "epsilon", "delta", "neighbours", "accountant", "assumptions",
    "numerical_assumptions", "together",
}  # fmt: skip


def test_release_json_holds_listed_keys_only(saved) -> None:
    stored = json.loads((saved / "release.json").read_text())
    assert stored.keys() == {*KEYS}
    assert stored["options"].keys() == OPTIONS
    assert stored["solver"].keys() == {"rounds", "seconds", "slowest_seconds"}
    assert stored["privacy"].keys() == PRIVACY
    assert pl.read_parquet(saved / "answers.parquet").columns == [
        "query", "answer", "literal_1", "literal_2", "interval_low", "interval_high",
    ]  # fmt: skip


class _SameDraws:
    """Randomness that always says the same: what differs then comes from the rows."""

    def words(self, count):
        return np.full(count, 2**62, np.uint64) * np.arange(count, dtype=np.uint64) // np.uint64(7)

    def discrete_gaussian(self, scale, count):
        return np.full(count, 10**6)

    def discrete_laplace(self, scale, count):
        return np.full(count, 10**6)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "independent"])
def test_two_tables_with_equal_draws_give_equal_folders(mechanism, tmp_path, monkeypatch) -> None:
    """Noise that drowns every count leaves nothing of the rows but n, in any file."""
    monkeypatch.setattr("dualquery.releases.make.making.randomness", lambda seed: _SameDraws())
    monkeypatch.setattr(
        "dualquery.mechanisms.baselines.independent.np.random.default_rng",
        lambda seed=None: np.random.Generator(np.random.PCG64(0)),
    )
    found = []
    for seed in (1, 2):
        made = dualquery.release(
            people(200, seed), schema=SCHEMA, queries=20, way=2, mechanism=mechanism
        )
        replace(made, created="2026-01-01T00:00:00+00:00").save(tmp_path / str(seed))
        found.append({p.name: p.read_bytes() for p in (tmp_path / str(seed)).iterdir()})
    assert found[0] == found[1]


def test_a_game_that_draws_the_same_leaves_the_same_but_for_time(tmp_path, monkeypatch) -> None:
    """With the samples equal, the whole release is equal: all else is public."""

    def sample(self, draws, randomness):
        return Sample(np.arange(draws, dtype=np.int64), np.ones(draws, np.int8))

    monkeypatch.setattr("dualquery.room.weights.QueryWeights.sample", sample)
    found = []
    for seed in (1, 2):
        made = dualquery.release(
            people(200, seed), schema=SCHEMA, queries=20, way=2,
            options={"rounds": 6, "samples": 5, "free": "zeros"}, seed=0,
        )  # fmt: skip
        summary = made.summary()
        for timing in ("seconds", "slowest_seconds"):
            del summary["solver"][timing]
        del summary["created"]
        trace = [
            {k: v for k, v in line.items() if k not in ("seconds", "incumbent_seconds")}
            for line in made.trace
        ]
        found.append((summary, trace, made.answers.tolist(), made.records.tolist()))
    assert found[0] == found[1]


def test_times_of_files_tell_only_when_the_release_was_asked_for(made, saved) -> None:
    """A file's own time, less the time of the call, would be that of the passes over the rows."""
    created = datetime.datetime.fromisoformat(made.created).timestamp()
    assert all(path.stat().st_mtime == created for path in (saved, *saved.iterdir()))


def _break(monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException) -> None:
    """Make one step of writing fail, after part of the file was written."""
    write_parquet, write_text = pl.DataFrame.write_parquet, Path.write_text

    def parquet(self, file, *args, **options):
        write_parquet(self, file, *args, **options)
        if Path(file.name).name == step:
            raise error

    def text(self, *args, **options):
        count = write_text(self, *args, **options)
        if self.name == step:
            raise error
        return count

    monkeypatch.setattr(pl.DataFrame, "write_parquet", parquet)
    monkeypatch.setattr(Path, "write_text", text)
    for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "mkdir")):
        if step == name:
            monkeypatch.setattr(owner, name, Mock(side_effect=error))


STEPS = [*sorted(FILES), "fsync", "rename", "mkdir"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
    ],
)
def test_a_full_disk_or_ctrl_c_at_any_step_leaves_nothing(
    made, tmp_path, monkeypatch, step, error, said
) -> None:
    with monkeypatch.context() as patched:
        _break(patched, step, error)
        with pytest.raises(BadInputError) as raised:
            made.save(tmp_path / "new" / "deep" / "out")
    assert said in str(raised.value)
    assert str(tmp_path / "new" / "deep" / "out") in str(raised.value)
    _break(monkeypatch, step, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        made.save(tmp_path / "new" / "out")
    assert names(tmp_path) == set()


def test_existing_targets_are_left_alone(made, tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = names(tmp_path)
    for name in before:
        with pytest.raises(BadInputError, match="exists already; name another folder"):
            made.save(tmp_path / name)
    assert names(tmp_path) == before
    assert (tmp_path / "file").read_text() == "mine"
    assert names(tmp_path / "folder") == set()


def test_a_target_that_appears_meanwhile_is_left_alone(made, tmp_path) -> None:
    with reserve(tmp_path / "out") as folder:
        (tmp_path / "out").mkdir()
        with pytest.raises(BadInputError, match="appeared while the release was made"):
            folder.write(made.write_files)
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == set()


def refuse(folder: Path, message: str) -> None:
    with pytest.raises(BadInputError) as error:
        load_release(folder)
    assert message in str(error.value), error.value
    assert str(folder) in str(error.value)


def test_no_release_there(tmp_path) -> None:
    refuse(tmp_path / "nothing", "is not a release folder: release.json is missing")
    refuse(tmp_path, "is not a release folder")
    refuse(tmp_path / ("n" * 300), "too long")


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_was_changed_is_named(saved, name) -> None:
    """One value is another and the file is whole: only its digest tells."""
    if name == "release.json":
        edit(saved, put("rows", lambda rows: rows + 1))
    else:
        table = pl.read_parquet(saved / name)
        table.head(1).extend(table.slice(1).reverse()).write_parquet(saved / name)
    refuse(saved, f"{name} was changed or damaged after the release was written")
    reseal(saved)
    assert load_release(saved)


def test_a_newer_format_says_upgrade(saved) -> None:
    edit(saved, put("format_version", FORMAT_VERSION + 1), seal=True)
    refuse(saved, f"format {FORMAT_VERSION + 1} is newer than {FORMAT_VERSION}")


def test_notebooks_show_a_release_and_its_guarantee_and_escape_names() -> None:
    schema = TableSchema(
        (Categorical("<b>", (("<i>",), ("y",))), Binary("flag")), name="<s>", declared=True
    )
    table = pl.DataFrame({"<b>": ["<i>", "y"] * 20, "flag": [0, 1] * 20})
    made = dualquery.release(table, schema=schema, queries=5, way=2)
    for shown in (made, made.privacy):
        assert not {"<b>", "<i>", "<s>"} & set(re.findall("<[a-z]+>", shown._repr_html_()))
    assert "differentially private" in made._repr_html_()
