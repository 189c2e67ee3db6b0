"""Every release is confirmed; a tampered one is not. Nothing of the program is used to say so."""

import ast
import json
import math
import os
import runpy
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product, repeat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery import verification
from dualquery.privacy.accountants.choice import choices
from dualquery.privacy.accountants.exact import ExactAccountant
from dualquery.privacy.events import GameSchedule, GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.releases.keep.folder import Release, load_release
from dualquery.releases.make.schema_learning import schema_of_table
from dualquery.verification import bounds, verify
from dualquery.verification.bounds import bound, events_of
from tests.mechanisms.test_mechanisms import CASES, Case
from tests.room.test_declared import AnyOf, release
from tests.tables import SCHEMA, homes, people, reseal

Stored = dict[str, Any]


def made(folder: Path, table: pl.DataFrame | None = None, **asked: Any) -> Path:
    asked = {"queries": 30, "way": 2, "schema": SCHEMA, **asked}
    return dualquery.release(people() if table is None else table, **asked).save(folder)


UNIT, ONE_ROW = ({"unit": dualquery.Unit("home", rows)} for rows in (3, 1))
WEIGHT = {"weight": dualquery.Weight("w", 5.0)}
MEANS = {"means": "age"}
FEW = {"samples": 3, "rounds": 6}
LARGEST: dict[str, Any] = {"mechanism": "mwem", "options": {"select": "noisy-max"}}
RULES = {"schema": replace(SCHEMA, rules=("flag => sex=Male", "age<25 => job=nurse"))}
BESIDES: list[dict[str, Any]] = [ONE_ROW,
    UNIT, WEIGHT, MEANS, RULES, UNIT | MEANS, WEIGHT | MEANS | RULES, UNIT | WEIGHT | MEANS | RULES
]  # fmt: skip


def own_family() -> Release:
    return release(AnyOf(4), mechanism="gaussian")


def test_the_check_imports_nothing_of_the_program() -> None:
    """But for its own two parts: neither at the top nor within a function."""
    allowed = {"numpy", "scipy", "pyarrow", "cryptography", "__future__"}
    for path in Path(verification.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            for name in names:
                first = name.partition(".")[0]
                own = name.startswith("dualquery.verification.")
                assert own or first in allowed | sys.stdlib_module_names, (path.name, name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {case.options}")
def test_a_release_of_every_mechanism_is_confirmed(case: Case, tmp_path) -> None:
    # Randomized response is refused there: its reports give away their number.
    both = {"laplace", "dualquery", "mwem", "independent"}
    relation = "add-remove" if case.name in both else "replace-one"
    delta = 0.0 if relation == "add-remove" and case.runs_at_delta_0 else 1e-5
    folder = made(
        tmp_path / "out", mechanism=case.name, options=dict(case.options), neighbours=relation,
        epsilon=2.0, delta=delta, signed=case.name != "barak",
    )  # fmt: skip
    report = verify(folder)
    assert report.faults == ()
    assert report.recomputed <= 2.0


@pytest.mark.parametrize(
    "asked",
    [
        *({"accountant": name, "options": FEW} for name in ("advanced", "zcdp", "exact")),
        {"accountant": "exact", "options": {"samples": 40, "rounds": 300}},
        {"mechanism": "uniform"},
        {"accountant": "exact", "mechanism": "mwem", "options": {"iterations": 30}},
        {"delta": 1e-28, "mechanism": "mwem", "options": {"iterations": 30}, "epsilon": 20.0},
        {"delta": 1e-28, "options": {"samples": 200, "rounds": 60}, "epsilon": 5.0},
        {"neighbours": "add-remove", "rows": 310, "options": FEW},
        {"epsilon": 0.001, "mechanism": "gaussian"},
        {"epsilon": 100.0, "mechanism": "gaussian"},
    ],
    ids=str,
)
def test_every_accountant_is_confirmed(asked, tmp_path) -> None:
    folder = made(tmp_path / "out", **{"delta": 1e-5, **asked})
    assert verify(folder).faults == ()
    for path in (("privacy", "accountant"), ("proof", "accountant", "name")):
        edit(folder, put(*path, "own"), seal=True)  # of the user's own, which may be looser
    assert verify(folder).faults == ()
    edit(folder, put("proof", "accountant", "epsilon", lambda epsilon: epsilon / 99), seal=True)
    assert verify(folder).refuted or asked == {"mechanism": "uniform"}


@pytest.mark.parametrize("mechanism", ["matrix", "mwem", "dualquery"])
@pytest.mark.parametrize("besides", BESIDES, ids=lambda each: " and ".join(each))
def test_what_a_table_may_have_besides_is_confirmed(besides, mechanism, tmp_path) -> None:
    relation = "add-remove" if mechanism == "mwem" else "replace-one"
    options = {"mwem": {"iterations": 3}, "dualquery": {"rounds": 9, "samples": 9}}
    released = dualquery.release(
        homes(), queries=30, way=2, mechanism=mechanism, options=options.get(mechanism, {}),
        epsilon=9.0, delta=1e-6, accountant="zcdp" if "weight" in besides else "auto",
        neighbours=relation, **{"schema": SCHEMA, **besides},
    )  # fmt: skip
    assert released.privacy.private
    report = verify(released.save(tmp_path / "out"))
    assert report.faults == ()
    assert report.recomputed <= 9.0


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("high", [100.0, 1e6], ids=["alike", "another need"])
def test_means_of_several_columns_are_confirmed(mechanism, high, tmp_path) -> None:
    income = replace(SCHEMA.columns[0], name="income", edges=(0.0, 25.0, 50.0, 75.0, high))
    schema = replace(SCHEMA, columns=(*SCHEMA.columns, income))
    released = dualquery.release(
        people().with_columns(income="age"), schema=schema, queries=30, way=2, means="age,income",
        mechanism=mechanism, delta=0.0 if mechanism == "laplace" else 1e-6,
    )  # fmt: skip
    folder = released.save(tmp_path / "out")
    assert verify(folder).faults == ()
    edit(folder, put("means", 1, "scale", less), seal=True)
    assert verify(folder).refuted == ("the mean of 'income' has other noise than its sum",)


def game_of(rounds: int, samples: int, rho: float) -> tuple[GameSchedule, list[Stored]]:
    """Return a game that costs about ``rho``, and how a record describes it."""
    n = 30_000
    step = n * math.sqrt(2 * rho / (samples * sum(seen * seen for seen in range(1, rounds))))
    event = {
        "kind": "game", "neighbours": "replace-one", "step": step, "rows": n, "rounds": rounds,
        "samples": samples,
    }  # fmt: skip
    return GameSchedule(rounds, samples, step, n), [{"times": 1, "events": [event]}]


@pytest.mark.parametrize(
    ("rounds", "samples", "rho", "delta"),
    [
        (100, 1, 5.0, 1e-9),
        (300, 1, 20.0, 1e-6),
        (300, 1, 1e-4, 1e-12),
        (100, 40, 0.01, 1e-9),
        pytest.param(4_999, 10, 1.0, 1e-5, marks=pytest.mark.slow),
    ],
)
def test_the_bound_of_a_long_game_is_close_below_the_program_s(rounds, samples, rho, delta) -> None:
    """Both are upper bounds; this one has to be the smaller, for nothing above it is confirmed."""
    game, stored = game_of(rounds, samples, rho)
    own = choices("exact")[0].epsilon(game, delta)
    assert 0.985 < bound(list(events_of(stored)), stored, "exact", delta, own) / own <= 1.0


@pytest.mark.parametrize("name", ["zcdp", "advanced"])
def test_the_longest_games_are_confirmed_by_closed_forms(name) -> None:
    game, stored = game_of(20_000, 3, 0.05)
    assert choices("exact")[0].supports(game, 1e-9) is not None
    own = choices(name)[0].epsilon(game, 1e-9)
    assert 1.0 - 1e-5 < bound(list(events_of(stored)), stored, name, 1e-9, own) / own <= 1.0


def test_a_family_of_the_user_s_own_is_confirmed_under_its_condition(tmp_path) -> None:
    released = own_family()
    assert released.privacy.condition is not None
    found = verify(released.save(tmp_path / "out"))
    assert (found.faults, found.condition) == ((), released.privacy.condition)


@pytest.mark.parametrize(
    "why", [{"seed": 1}, {"schema": None, "schema_from_data": True}], ids=["seed", "no schema"]
)
def test_without_a_guarantee_there_is_nothing_to_confirm(why, tmp_path) -> None:
    report = verify(made(tmp_path / "out", mechanism="gaussian", **why))
    (fault,) = report.faults
    assert fault.startswith("the release states no guarantee: ")
    assert report.damaged == ()


def test_libraries_do_not_take_a_path_for_another(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("~/out", os.fsdecode(b"d\xe9/out"))[: 1 + (sys.platform == "linux")]:
        folder = made(Path(name), mechanism="gaussian")
        assert verify(folder).faults == ()
        assert len(load_release(folder).answers) == 30


def test_an_older_folder_has_no_proof(tmp_path) -> None:
    folder = made(tmp_path / "out", mechanism="zero")
    edit(folder, lambda stored: [stored.update(format_version=1), stored.pop("proof")])
    assert verify(folder).faults == ("format 1; only 2 can be verified",)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("releases")
    return {
        "gaussian": made(root / "gaussian", mechanism="gaussian"),
        "game": made(root / "game", options={"samples": 20, "rounds": 12}),
        "bought": made(
            root / "bought", mechanism="laplace", neighbours="add-remove", delta=0.0, epsilon=2.0
        ),
        "mwem": made(root / "mwem", **LARGEST),
        "family": own_family().save(root / "family"),
        "means": made(root / "means", mechanism="gaussian", means="age"),
        "pure means": made(root / "pure", mechanism="laplace", means="age", delta=0.0),
        "units": made(root / "units", homes(), mechanism="gaussian", epsilon=4.0, **UNIT),
        "weights": made(root / "weights", homes(), mechanism="gaussian", epsilon=4.0, **WEIGHT),
        "complete": made(root / "complete", schema=COMPLETE, queries=9),
        "given": made(root / "given", schema=schema_of_table(people(), 30.0).schema),
        "later": made(root / "later", schema=None, epsilon=30.0, options={"rounds": 9}),
        "last": made(root / "last", schema=None, epsilon=30.0, delta=1e-6, **LARGEST),
        "learned": dualquery.release(homes(), queries=30, epsilon=9.0).save(root / "learned"),
    }


def edit(folder: Path, change: Callable[[Stored], object], *, seal: bool = False) -> None:
    """Change release.json; with ``seal`` compute all digests anew, as a careful forger does."""
    path = folder / "release.json"
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    if seal:
        reseal(folder)


def test_the_check_runs_alone_and_ends_well(released, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["check", str(released["gaussian"])])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(Path(verification.__file__).with_name("check.py")), run_name="__main__")
    assert ended.value.code == 0


def less(number: Any) -> Any:
    return number * 0.9


KEYS = [
    "format_version", "mechanism", "parameters", "options", "privacy", "rows", "bits", "queries",
    "way", "workload", "synthetic_records", "solver", "intervals", "notes", "versions", "created",
    "schema", "proof", "measurements", "model", "means", "written_as", "total",
]  # fmt: skip
"""Of release.json. Each is public; add one here only if it is, too."""


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("how", ["dropped", "added to"])
def test_a_release_json_with_any_part_changed_is_refused(key, how, released, tmp_path) -> None:
    folder = shutil.copytree(released["gaussian"], tmp_path / "out")
    assert json.loads((folder / "release.json").read_text()).keys() == {*KEYS}

    def change(stored: Stored) -> None:
        if how == "dropped":
            del stored[key]
        else:
            stored[key] = [stored[key], "more"]

    edit(folder, change)
    assert verify(folder).faults


FILES: dict[str, Callable[[Path], object]] = {
    "an extra file": lambda f: (f / "more.txt").write_text("more"),
    "no answers": lambda f: (f / "answers.parquet").unlink(),
    "no records": lambda f: (f / "synthetic.parquet").unlink(),
    "no release.json": lambda f: (f / "release.json").unlink(),
    "other answers": lambda f: answers(f, pl.col("answer") * 0.5),
    "an answer less": lambda f: answers(f, pl.all(), 29),
    "swapped files": lambda f: swap(f / "answers.parquet", f / "trace.parquet"),
    "truncated answers": lambda f: cut(f / "answers.parquet"),
    "truncated records": lambda f: cut(f / "synthetic.parquet"),
    "truncated release.json": lambda f: cut(f / "release.json"),
    "a list": lambda f: (f / "release.json").write_text("[]"),
    "deep JSON": lambda f: (f / "release.json").write_text("[" * 100_000),
    "a key twice": lambda f: twice(f / "release.json"),
    "a byte more": lambda f: (f / "trace.parquet").open("ab").write(b" "),
}


def answers(folder: Path, change: pl.Expr, rows: int = 30) -> None:
    path = folder / "answers.parquet"
    pl.read_parquet(path).with_columns(change).head(rows).write_parquet(path)


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def twice(path: Path) -> None:
    path.write_text(path.read_text().replace('"rows"', '"rows": 1, "rows"', 1))


@pytest.mark.parametrize("how", FILES)
def test_a_folder_with_other_files_is_refused(how, released, tmp_path) -> None:
    folder = shutil.copytree(released["game"], tmp_path / "out")
    FILES[how](folder)
    assert verify(folder).damaged


def test_a_link_in_the_place_of_a_file_is_refused(released, tmp_path) -> None:
    folder = shutil.copytree(released["game"], tmp_path / "out")
    shutil.move(folder / "trace.parquet", tmp_path / "elsewhere")
    (folder / "trace.parquet").symlink_to(tmp_path / "elsewhere")
    assert verify(folder).damaged == ("'trace.parquet' is not a plain file",)


def put(*path: Any) -> Callable[[Stored], object]:
    """Return a change: the last item is put where the others lead; a function changes what is."""
    *keys, last, value = path

    def change(stored: Any) -> None:
        for key in keys:
            stored = stored[key]
        stored[last] = value(stored[last]) if callable(value) else value

    return change


def restated(value: Any, *paths: tuple[Any, ...]) -> Callable[[Stored], object]:
    """Return a change after which the stated epsilon is what the changed events add up to."""

    def change(stored: Stored) -> None:
        for path in paths:
            put(*path, value)(stored)
        proof, events = stored["proof"], [*events_of(stored["proof"]["schedule"])]
        named, bought = proof["accountant"], proof["rows"]["bought"] or {"epsilon": 0.0}
        deltas = [each.get("delta", 0.0) for run in proof["schedule"] for each in run["events"]]
        left = named["delta"] - sum(deltas)
        named["epsilon"] = bound(events, proof["schedule"], named["name"], left, 0.0)
        stored["options"]["epsilon"] = named["epsilon"] + bought["epsilon"]
        stored["privacy"]["epsilon"] = stored["options"]["epsilon"]
        stored["privacy"]["accountant"] = named["name"]

    return change


def halved(schedule: list[Stored]) -> list[Stored]:
    """Return a game round by round, and at half its cost."""
    (game,) = schedule[0]["events"]
    costs = [{"range": cost / 2, "draws": draws} for _, cost, draws in events_of(schedule)]
    return [{"times": 1, "events": [{**game, "kind": "draws", **each} for each in costs]}]


def unconditional(stored: Stored) -> None:
    """Drop the condition wherever it is said."""
    stored["privacy"]["condition"] = stored["proof"]["condition"] = None


COMPLETE = replace(SCHEMA, columns=SCHEMA.columns[2:], drop_incomplete=True)
EVENT, THRESHOLD = (("proof", "schedule", place, "events", 0) for place in (0, 1))
NOISE, SCALE, ROWS = (*EVENT, "ground", "scale"), (*EVENT, "scale"), ("proof", "rows", "bought")
FORGED: list[tuple[str, str, Callable[[Stored], object]]] = [
    ("epsilon just smaller", "gaussian", put("privacy", "epsilon", lambda e: e * (1 - 1e-6))),
    ("epsilon larger", "gaussian", put("privacy", "epsilon", 2.0)),
    ("epsilon a text", "gaussian", put("privacy", "epsilon", "1.0")),
    ("delta smaller", "gaussian", put("privacy", "delta", less)),
    ("delta zero", "gaussian", put("privacy", "delta", 0.0)),
    ("delta asked", "gaussian", put("options", "delta", less)),
    ("result smaller", "gaussian", put("proof", "accountant", "epsilon", less)),
    ("accountant renamed", "gaussian", put("privacy", "accountant", "zcdp")),
    ("accountant renamed in the proof", "gaussian", put("proof", "accountant", "name", "zcdp")),
    ("relation", "gaussian", put("proof", "neighbours", "add-remove")),
    ("relation in words", "gaussian", put("privacy", "neighbours", "add or remove one record")),
    ("scale smaller", "gaussian", put(*EVENT, "scale", less)),
    ("sensitivity smaller", "gaussian", put(*EVENT, "sensitivity", less)),
    ("less noise than charged", "gaussian", put(*EVENT, "ground", "scale", less)),
    ("more moved than charged", "gaussian", put(*EVENT, "ground", "sensitivity", lambda s: 2 * s)),
    ("another lemma", "gaussian", put(*EVENT, "ground", "lemma", "dualquery.room.weights")),
    ("another kind", "gaussian", put(*EVENT, "kind", "pure")),
    ("no events", "gaussian", put("proof", "schedule", [])),
    ("an event twice", "gaussian", put("proof", "schedule", 0, "times", 2)),
    ("an event without end", "gaussian", put("proof", "schedule", 0, "times", 10**18)),
    ("games of no draw, without end", "game", lambda stored: [
        put(*EVENT, "rounds", 1)(stored), put("proof", "schedule", 0, "times", 10**18)(stored)
    ]),
    ("a seed", "gaussian", put("options", "seed", 7)),
    ("schema not declared", "gaussian", put("schema", "declared", False)),
    ("no limit on rows", "gaussian", put("proof", "limits", "max_ones_per_row", 3)),
    ("number of queries", "gaussian", put("queries", 29)),
    ("number of rows", "gaussian", put("rows", 301)),
    ("number of intervals", "gaussian", put("intervals", "answers", 29)),
    ("level of intervals", "gaussian", put("intervals", "level", 0.99)),
    ("a condition more", "gaussian", put("privacy", "condition", "good weather")),
    ("condition dropped", "family", lambda s: s["privacy"].pop("condition")),
    ("weights without condition", "weights", unconditional),
    ("a schema learned for nothing", "given", unconditional),
    ("units that are none", "gaussian", put("options", "unit", {"column": "h", "max_rows": 5})),
    ("weights that are none", "units", put("options", "weight", {"column": "w", "max": 2.0})),
    ("complete rows without condition", "complete", unconditional),
    ("another total", "gaussian", put("total", "copies", 301)),
    ("another weight of a copy", "weights", put("total", "of_copy", 2.0)),
    ("a weight of copies", "gaussian", put("total", "of_copy", 2.0)),
    ("rounds fewer", "game", put(*EVENT, "rounds", 10)),
    ("samples fewer", "game", put(*EVENT, "samples", 10)),
    ("step smaller", "game", put(*EVENT, "step", less)),
    ("rows of the game", "game", put(*EVENT, "rows", 3000)),
    ("neighbours of the game", "game", put(*EVENT, "neighbours", "add-remove")),
    ("more draws than rounds", "game", put(*EVENT, "drawn", 12)),
    ("records more", "game", put("synthetic_records", lambda r: r + 1)),
    ("rows not bought", "bought", put("proof", "rows", "bought", None)),
    ("rows for less", "bought", put("proof", "rows", "bought", "epsilon", less)),
    ("rows with less noise", "bought", put("proof", "rows", "bought", "scale", less)),
    ("rows stated", "bought", put("options", "rows", 300)),
    ("replace-one told", "bought", put("privacy", "neighbours", "replace one record, n public")),
    ("Laplace noise smaller", "bought", put(*EVENT, "ground", "scale", less)),
    ("a selection for less", "mwem", put(*EVENT, "epsilon", less)),
    ("rounds dropped", "mwem", put("proof", "schedule", 0, "times", 2)),
    ("a round of another kind", "mwem", put(*EVENT, "kind", "report")),
    ("a mean with less noise", "means", put("means", 0, "scale", less)),
    ("a mean with other noise", "means", put("means", 0, "noise", "discrete laplace")),
    ("a mean of another range", "means", put("means", 0, "high", lambda high: 2 * high)),
    ("no means", "means", put("means", [])),
    ("a mean that was not bought", "gaussian", put("means", [{"column": "age"}])),
    ("sums with less noise", "means", put(*EVENT, "ground", "scale", less)),
    ("a unit of fewer rows", "units", put("proof", "unit", "max_rows", 1)),
    ("a row in the place of a unit", "units", put("proof", "unit", None)),
    ("a threshold renamed", "learned", put(*THRESHOLD, "kind", "gaussian")),
    ("scales below 0", "units", restated(-99.0, NOISE, (*EVENT, "sensitivity"), SCALE)),
    ("another scale than was drawn", "units", restated(99.0, NOISE, SCALE)),
    ("scores without noise", "mwem", restated(None, NOISE)),
    ("scores as answers", "mwem", put(*EVENT, "ground", "lemma", "dualquery.room.noise.laplace")),
    ("rows that give back", "bought", restated(-1.0, (*ROWS, "scale"), ("total", "scale"))),
    ("a game in rounds", "game", restated(halved, ("proof", "schedule"))),
    ("another rule after a schema", "later", restated("exact", ("proof", "accountant", "name"))),
    ("pure noise after a schema", "last", restated("exact", ("proof", "accountant", "name"))),
    ("a schema of less noise", "given", put("schema", "learned", "events", 0, "scale", less)),
    ("scores with less noise", "mwem", put(*NOISE, less)),
    ("a game of fewer samples", "game", restated(10, (*EVENT, "samples"))),
    ("a threshold that gives back", "learned", put(*THRESHOLD, "delta", lambda d: -d)),
]  # fmt: skip


def test_events_beyond_the_most_are_not_all_made(monkeypatch) -> None:
    monkeypatch.setattr(bounds, "MOST_EVENTS", 100)
    many = repeat({"kind": "pure", "epsilon": 1.0}, 10_000)
    with pytest.raises(ValueError, match="too many events"):
        list(events_of([{"times": 1, "events": many}]))
    assert len([*many]) == 10_000 - 101


@pytest.mark.parametrize(("what", "base", "change"), FORGED, ids=[name for name, *_ in FORGED])
def test_a_forgery_with_digests_contradicts_itself(what, base, change, released, tmp_path) -> None:
    folder = shutil.copytree(released[base], tmp_path / "out")
    edit(folder, lambda stored: None, seal=True)
    assert verify(folder).faults == ()
    edit(folder, change, seal=True)
    assert verify(folder).refuted or verify(folder).damaged
    plain = shutil.copytree(released[base], tmp_path / "plain")
    edit(plain, change)
    assert verify(plain).damaged


def test_intervals_of_another_width_contradict_the_noise(released, tmp_path) -> None:
    folder = shutil.copytree(released["gaussian"], tmp_path / "out")
    middle = (pl.col("interval_low") + pl.col("interval_high")) / 2
    answers(folder, (middle - (middle - pl.col("interval_low")) * 0.8).alias("interval_low"))
    edit(folder, lambda stored: None, seal=True)
    assert verify(folder).refuted == ("the intervals have another width than the noise gives them",)


def thinner(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("deviation") * 0.9)


MEASURED: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "all with less noise": thinner,
    "one with less noise": lambda t: pl.concat([thinner(t[:1]), t[1:]]),
    "one with less noise, one with more": lambda t: t.with_columns(
        deviation=pl.Series([t["deviation"][0] / 1.1, t["deviation"][1] * 1.1, *t["deviation"][2:]])
    ),
    "one less": lambda t: t[1:],
    "one twice": lambda t: pl.concat([t[:1], t]),
}


@pytest.mark.parametrize(
    "mechanism", ["gaussian", "laplace", "staged", "probed", "mwem", "mwem-sampled", "barak"]
)
def test_other_noise_than_was_drawn_is_refused(mechanism, tmp_path) -> None:
    """`measurements.parquet` holds what the record says was drawn, event by event."""
    options = {"mwem": {"iterations": 4}, "mwem-sampled": {"rounds": 4, "population": 500}}
    folder = made(
        tmp_path / "out", mechanism=mechanism, options=options.get(mechanism, {}), delta=1e-5,
        signed=mechanism != "barak",
    )  # fmt: skip
    assert verify(folder).faults == ()
    path = folder / "measurements.parquet"
    table, changes = pl.read_parquet(path), dict(MEASURED)
    if mechanism in ("staged", "probed", "mwem-sampled"):
        changes["one event's noise in another's place"] = lambda t: t.with_columns(
            deviation=t["deviation"].reverse()
        )
    for change in changes.values():
        changed = change(table)
        changed.write_parquet(path)

        def count(stored: Stored, numbers: int = len(changed)) -> None:
            stored["measurements"]["numbers"] = numbers

        edit(folder, count, seal=True)
        assert verify(folder).refuted


def test_the_recursion_is_above_the_truth_and_close_to_the_program() -> None:
    """Random schedules: at most the program's bound, and at least 97% of it."""
    rng = np.random.default_rng(3)
    for _ in range(12):
        plain = []
        for kind in rng.choice(["draws", "pure", "gaussian"], rng.integers(1, 12)).tolist():
            draws = int(rng.choice([1, 2, 40])) if kind == "draws" else 1
            plain.append((kind, float(rng.uniform(0.02, 0.4)) / np.sqrt(draws), draws))
        make = {
            "draws": SampledQueries,
            "pure": lambda epsilon, _: LaplaceNoise(epsilon),
            "gaussian": lambda shift, _: GaussianNoise(shift, 1.0),
        }
        events = [make[kind](size, draws) for kind, size, draws in plain]
        delta = float(10.0 ** rng.uniform(-9, -3))
        program = ExactAccountant().epsilon(tuple(events), delta)
        assert 0.97 * program <= bound(plain, [], "exact", delta, program) <= program
    assert bound([("gaussian", 1e-9, 1)] * 4, [], "exact", 1e-6, 1.0) == 4 * 2.0**-35  # of grids


def test_one_draw_is_priced_no_lower_than_its_own_curve() -> None:
    """delta(epsilon) of one draw of range r: the largest over t of a two-point pair, exactly."""
    for width, delta in product((0.1, 1.0, 3.0), (1e-2, 1e-5)):
        found = bound([("draws", width, 1)], [], "exact", delta, math.inf)
        t = np.linspace(1e-6, width - 1e-6, 10_001)
        chance = np.expm1(t - width) / np.expm1(-width)
        assert (chance * np.maximum(0.0, -np.expm1(found - t))).max() <= delta * (1 + 1e-9)
