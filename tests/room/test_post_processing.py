"""With every draw fixed, neighbours give the same release: draws are all that rows change."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.cli.main import main
from dualquery.room.ledger import Ledger
from tests.tables import SCHEMA, homes, write_people

N, COPIES = 310, 100_000  # the noisy number of rows, and of copies of rows

BESIDES = {"unit": dualquery.Unit("home", 3), "weight": dualquery.Weight("w", 5.0), "means": "age"}
TABLES: dict[str, dict[str, Any]] = {
    "rows replaced": {},
    "rows added or removed": {"neighbours": "add-remove"},
    "units of weighted rows replaced, with means": BESIDES,
}
MECHANISMS: dict[str, dict[str, Any]] = {
    "laplace": {"delta": 0.0, "accountant": "advanced"},
    "matrix": {"options": {"steps": 20}},
    "probed": {"options": {"records": 9}},
    "staged, what stands out": {"mechanism": "staged", "options": {"records": 9}},
    "staged, everything": {
        "mechanism": "staged", "options": {"records": 9}, "queries": 4, "query_columns": "flag,sex",
    },
    "independent": {},
    "barak": {"queries": 4, "query_columns": "flag,sex"},
    "mwem": {"options": {"iterations": 3, "start": "independent"}},
    "mwem-sampled": {"options": {"rounds": 2, "population": 300}},
    "dualquery": {"options": {"rounds": 4, "samples": 3, "solver": "local-search"}},
}  # fmt: skip


class Told:
    """Keeps all that a person who waits is told."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def phase(self, name: str) -> None:
        self.lines.append(name)

    def step(self, done: int, total: int) -> None:
        self.lines.append((done, total))

    def note(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def without_rows(monkeypatch) -> Any:
    """Return what fixes all draws, and public randomness, from the first draw on."""
    public = np.random.default_rng

    def fixed() -> None:
        drawn, selected = iter(range(10_000)), iter(range(10_000))

        def draw(self, event, ground, make, shape, times=1):
            self._enter((event,) * times, ground)
            generator = np.random.default_rng(next(drawn))
            if ground.statistic == "number of rows":
                return np.array([COPIES if ground.sensitivity > 1 else N])
            if shape == ():  # a selection: none is made twice
                return np.array(next(selected))
            kind = float if "gauss" in ground.lemma else int
            return generator.integers(0, 10, shape).astype(kind)

        monkeypatch.setattr(Ledger, "draw", draw)
        monkeypatch.setattr("dualquery.releases.make.making.secrets.randbits", lambda _: 7)
        monkeypatch.setattr(np.random, "default_rng", lambda seed=None: public(seed or 7))

    return fixed


def neighbour(table: pl.DataFrame, *, n_public: bool) -> pl.DataFrame:
    """Return a table with another row, and another number of rows if that is private."""
    changed = pl.int_range(pl.len()) == 100
    other = table.with_columns(
        age=pl.when(changed).then(99).otherwise("age"),
        flag=pl.when(changed).then(1 - pl.col("flag")).otherwise("flag"),
        w=pl.when(changed).then(6).otherwise("w"),
    )
    return other if n_public else other.slice(1)  # of home 0, as the other row


def shown(made: dualquery.Release) -> dict[str, Any]:
    """Return all of a release but times, which only public work takes."""
    whole = timeless({**made.summary(), "trace": list(made.trace)})
    arrays = {"answers": made.answers, "records": made.records}
    if made.intervals is not None:
        arrays |= {"lower": made.intervals.lower, "upper": made.intervals.upper}
    if made.measurements is not None:
        arrays |= {"values": made.measurements.values, "noise": made.measurements.deviations}
    return whole | {name: np.asarray(each).tolist() for name, each in arrays.items()}


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if "seconds" not in str(name)}
        return {name: timeless(each) for name, each in kept.items() if name != "created"}
    return [timeless(each) for each in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("tables", TABLES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_neighbours_differ_by_their_draws_alone(mechanism, tables, without_rows) -> None:
    asked = {
        "schema": SCHEMA, "queries": 30, "way": 2, "epsilon": 9.0, "delta": 1e-6, "threads": 1,
        "accountant": "zcdp", "mechanism": mechanism, **TABLES[tables], **MECHANISMS[mechanism],
    }  # fmt: skip
    found = []
    for table in (homes(), neighbour(homes(), n_public=not TABLES[tables])):
        without_rows()
        told = Told()
        made = dualquery.release(table, progress=told, **asked)
        assert made.privacy.private
        found.append(json.dumps([shown(made), told.lines], default=str))
    assert found[0] == found[1]


def test_the_command_line_tells_no_more(without_rows, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    table, schema = write_people(tmp_path)
    whole, found = homes().drop("home", "w"), []
    for rows in (whole, whole.slice(1)):
        rows.write_csv(table)
        without_rows()
        asked = [str(table), "--schema", str(schema), "--neighbours", "add-remove", "--json"]
        code = main(["release", *asked, "--delta", "1e-6", "--epsilon", "9", "--out", "o"])
        told = capsys.readouterr()
        files = {each.name: each.stat().st_size for each in (tmp_path / "o").iterdir()}
        del files["release.json"], files["trace.parquet"]  # they have times
        found.append((code, timeless(json.loads(told.out)), told.err, files))
        (tmp_path / "o").rename(tmp_path / f"of {len(rows)}")
    assert found[0] == found[1]
    assert found[0][0] == 0
