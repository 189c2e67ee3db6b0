"""Releases that are stopped and go on: what is drawn stays drawn, what is lost stays charged."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pytest

import dualquery
from dualquery.budgets.budget_file import BudgetFile
from dualquery.checkpoints.checkpoint import Checkpoint
from dualquery.mechanisms.dualquery.record_player import RecordPlayer
from dualquery.releases.keep.reservation import reserve, resume
from dualquery.room.randomness import SeededRandomness
from dualquery.rules.reading import rules_of
from dualquery.runtime.errors import BadInputError, InterruptedRun
from dualquery.verification import verify
from tests.tables import SCHEMA, people

ASKED = {"schema": SCHEMA, "queries": 40, "way": 2, "threads": 1}
GAME = {"mechanism": "dualquery", "options": {"rounds": 8, "samples": 4}, "accountant": "zcdp"}


@pytest.fixture(autouse=True)
def _draws_that_differ(monkeypatch) -> list[int]:
    """A source of its own for each attempt, so that a repeated draw would be seen."""
    made: list[int] = []

    def source(seed: int | None) -> SeededRandomness:
        assert seed is None
        made.append(len(made))
        return SeededRandomness(1000 + len(made))

    monkeypatch.setattr("dualquery.releases.make.making.randomness", source)
    return made


@contextmanager
def stopped_at(monkeypatch, draw: int, when: str) -> Iterator[None]:
    """Interrupt the run at its ``draw``-th draw of this attempt: before, in, or after it."""
    begun = 0
    begin, end = Checkpoint.begin, Checkpoint.end

    def counted_begin(self: Checkpoint, *arguments, spare: bool) -> None:
        nonlocal begun
        begun += 1
        if begun == draw and when == "before":
            raise KeyboardInterrupt
        begin(self, *arguments, spare=spare)
        if begun == draw and when == "in":
            raise KeyboardInterrupt

    def counted_end(self: Checkpoint, *arguments) -> None:
        end(self, *arguments)
        if begun == draw and when == "after":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "begin", counted_begin)
        patched.setattr(Checkpoint, "end", counted_end)
        yield


def make(place, **asked) -> dualquery.Release:
    place.hold_space()
    made = dualquery.release(people(), **{**ASKED, **asked}, checkpoint=place.checkpoint)
    place.write(made.write_files)
    return made


def stop(monkeypatch, out: Path, draw: int, when: str, **asked) -> Path:
    """Make a release that is interrupted; return the folder that it leaves."""
    with (
        stopped_at(monkeypatch, draw, when),
        pytest.raises((KeyboardInterrupt, InterruptedRun)),
        reserve(out) as place,
    ):
        make(place, **asked)
    return out.with_name(out.name + ".unfinished")


def draws_of(path: Path) -> list[bytes]:
    """Return the lines of draws that have a result, and of those that were lost."""
    kept, found = Checkpoint(path / "journal"), []
    while (each := kept.recorded()) is not None:
        found.append(b"" if each.result is None else each.result.tobytes())
        kept.take()
    kept.close()
    return found


MANY = {
    "game": GAME,
    "mwem": {"mechanism": "mwem", "options": {"iterations": 4}},
    "mwem, gaussian": {"mechanism": "mwem", "options": {"iterations": 4}, "delta": 1e-6},
    "mwem, noisy max": {
        "mechanism": "mwem",
        "options": {"iterations": 4, "select": "noisy-max", "noisy_init": True},
    },
    "sampled": {
        "mechanism": "mwem-sampled",
        "options": {"rounds": 4, "population": 500},
        "epsilon": 5.0,
    },
}


@pytest.mark.parametrize(
    ("name", "when"), [("game", "before"), ("game", "after"), *((name, "in") for name in MANY)]
)
def test_a_run_of_many_draws_goes_on(tmp_path, monkeypatch, name, when) -> None:
    asked = MANY[name]
    path = stop(monkeypatch, tmp_path / "out", 4, when, **asked)
    before = draws_of(path)
    assert len(before) == {"before": 3, "in": 4, "after": 4}[when]
    assert [not each for each in before].count(True) == (when == "in")
    with resume(path, no_other_copy=True) as place:
        made, kept = make(place, **asked), Checkpoint(path / "journal")
        after = draws_of(path)
        kept.close()
    # What was drawn stays, and is not drawn again.
    assert after[: len(before)] == before
    # Two rounds draw the same few queries now and then.
    assert name != "game" or len(set(after)) >= len(after) - 1
    assert made.privacy.private
    assert np.isfinite(made.answers).all()
    assert ("1 private draws were begun and lost" in " ".join(made.notes)) == (when == "in")
    np.testing.assert_array_equal(dualquery.load_release(tmp_path / "out").answers, made.answers)
    assert verify(tmp_path / "out").faults == ()
    assert not path.exists()


@pytest.mark.parametrize("name", ["game", "sampled"])
def test_a_run_that_goes_on_keeps_rules_and_buys_means(tmp_path, monkeypatch, name) -> None:
    """Stopped behind the mean, which is drawn first, and before the mechanism has drawn all."""
    ruled = replace(SCHEMA, rules=("age<25 => job=nurse", "constant=b => flag"))
    asked = {**MANY[name], "schema": ruled, "means": "age"}
    path = stop(monkeypatch, tmp_path / "out", 3, "after", **asked)
    before = draws_of(path)
    with resume(path, no_other_copy=True) as place:
        made = make(place, **asked)
        assert draws_of(path)[: len(before)] == before
    assert len(made.means) == 1
    assert (rules_of(ruled).broken(made.records) < 0).all()


@pytest.mark.parametrize("start", ["uniform", "independent"])
def test_the_only_iteration_may_be_lost(tmp_path, monkeypatch, start) -> None:
    asked = {"mechanism": "mwem", "options": {"iterations": 1, "start": start}}
    path = stop(monkeypatch, tmp_path / "out", 1 + (start == "independent"), "in", **asked)
    with resume(path, no_other_copy=True) as place:
        made = make(place, **asked)
    assert made.trace == ()
    assert (len(made.measurements) > 0) == (start == "independent")
    np.testing.assert_array_equal(dualquery.load_release(tmp_path / "out").answers, made.answers)
    assert verify(tmp_path / "out").faults == ()


DRAWS: dict[str, tuple[int, dict[str, str]]] = {
    "staged": (3, {"mechanism": "staged"}),
    "matrix, and a mean": (2, {"mechanism": "matrix", "means": "age"}),
}
"""How often they draw; `staged` chooses each draw by those before."""


@pytest.mark.parametrize(("name", "draw"), [(n, d + 1) for n in DRAWS for d in range(DRAWS[n][0])])
def test_a_run_goes_on_between_its_draws_not_from_within(tmp_path, monkeypatch, name, draw) -> None:
    draws, own = DRAWS[name]
    asked = {**own, "delta": 1e-4}
    for when in ("before", "after", "in"):
        out = tmp_path / when
        path = stop(monkeypatch, out, draw, when, **asked)
        if (draw, when) == (1, "before"):
            assert not path.exists()  # nothing was drawn
        elif when == "in":
            nobody_goes_on(path, f"private draws begun: {draw}")
        else:
            before = draws_of(path)
            assert len(before) == draw - (when == "before")
            with resume(path, no_other_copy=True) as place:
                made, after = make(place, **asked), draws_of(path)
            assert after[: len(before)] == before
            assert len(after) == draws
            assert made.privacy.private
            assert verify(out).faults == ()
            assert not path.exists()


def nobody_goes_on(path: Path, said: str) -> None:
    """Check that a folder is offered to nobody, and that no attempt draws."""
    before = draws_of(path)
    way_out = f"{said}; .* stays charged; .* cannot go on: delete {path} and make a new"
    for refused in (resume(path, no_other_copy=True), reserve(path.with_suffix(""))):
        with pytest.raises(BadInputError, match=way_out) as told, refused:
            pass
        assert "--resume" not in str(told.value)
        assert "(" not in str(told.value).replace(str(path), "")
    kept = Checkpoint(path / "journal")
    with pytest.raises(BadInputError, match="cannot go on"):
        dualquery.release(people(), **ASKED, checkpoint=kept)
    kept.close()
    assert draws_of(path) == before


def test_it_may_be_stopped_again_and_again(tmp_path, monkeypatch) -> None:
    path = stop(monkeypatch, tmp_path / "out", 2, "after", **GAME)
    for when in ("in", "before", "after", "in"):
        with (
            stopped_at(monkeypatch, 1, when),
            pytest.raises(InterruptedRun, match="release --resume"),
            resume(path, no_other_copy=True) as place,
        ):
            make(place, **GAME)
    assert [bool(each) for each in draws_of(path)] == [True, True, False, True, False]
    with resume(path, no_other_copy=True) as place:
        made = make(place, **GAME)
    assert len(made.trace) == 5


def test_best_responses_are_recalled_and_not_searched_again(tmp_path, monkeypatch) -> None:
    path = stop(monkeypatch, tmp_path / "out", 6, "before", **GAME)
    searched = create_autospec(RecordPlayer.respond, side_effect=RecordPlayer.respond)
    monkeypatch.setattr(RecordPlayer, "respond", searched)
    with resume(path, no_other_copy=True) as place:
        assert len(make(place, **GAME).trace) == 7
    assert searched.call_count == 2


OTHER = {
    "queries": ({"queries": 41}, "queries was 40 and is 41"),
    "epsilon": ({"epsilon": 2.0}, "epsilon was 1.0 and is 2.0"),
    "neighbours": ({"neighbours": "add-remove", "delta": 1e-6}, "another budget request"),
    "options": ({"options": {"rounds": 9, "samples": 4}}, "rounds was 8 and is 9"),
    "mechanism": ({"mechanism": "mwem", "options": {}}, "name was 'dualquery' and is 'mwem'"),
}


def test_what_differs_is_said(tmp_path, monkeypatch) -> None:
    path = stop(monkeypatch, tmp_path / "out", 3, "after", **GAME)
    before = draws_of(path)
    for other, said in OTHER.values():
        with pytest.raises(BadInputError, match=said), resume(path, no_other_copy=True) as place:
            make(place, **{**GAME, **other})
        assert draws_of(path) == before


def test_other_rows_and_another_schema_are_refused(tmp_path, monkeypatch) -> None:
    table = tmp_path / "t.csv"
    people().write_csv(table)
    out, asked = tmp_path / "out", {**ASKED, **GAME}
    with stopped_at(monkeypatch, 3, "after"), pytest.raises(InterruptedRun), reserve(out) as place:
        dualquery.release(table, **asked, checkpoint=place.checkpoint)
    path, renamed = tmp_path / "out.unfinished", replace(SCHEMA, max_ones_per_row=None)
    fewer = {**asked, "schema": None, "schema_from_data": True}
    for seed, other, said in ((1, asked, "table: keyed hash was"), (0, fewer, "schema")):
        people(seed=seed).write_csv(table)
        with (
            pytest.raises(BadInputError, match=f"another {said}"),
            resume(path, no_other_copy=True) as place,
        ):
            dualquery.release(table, **other, checkpoint=place.checkpoint)
    with resume(path, no_other_copy=True) as place:
        dualquery.release(table, **{**asked, "schema": renamed}, checkpoint=place.checkpoint)


def test_where_nothing_tells_the_table_there_is_a_warning(tmp_path, monkeypatch, caplog) -> None:
    path = stop(monkeypatch, tmp_path / "out", 3, "after", **GAME)
    assert "nothing tells whether" not in caplog.text
    with resume(path, no_other_copy=True) as place:
        make(place, **GAME)
    assert "nothing tells whether this is the same table" in caplog.text


def test_without_a_budget_file_the_operator_s_word_is_needed(tmp_path, monkeypatch) -> None:
    path = stop(monkeypatch, tmp_path / "out", 3, "after", **GAME)
    with pytest.raises(BadInputError, match="--no-other-copy"), resume(path) as place:
        make(place, **GAME)


def test_a_release_that_was_stopped_before_it_was_written(tmp_path) -> None:
    """All is drawn: it is given out without another draw or word, as it was, by another path."""
    BudgetFile.create(tmp_path / "budget", epsilon=2.0, delta=0.1, neighbours="replace-one")
    asked = {**ASKED, "mechanism": "independent", "budget": tmp_path / "budget"}
    asked |= {"schema": replace(SCHEMA, rules=("age<25 => job=nurse",))}
    with pytest.raises(InterruptedRun), reserve(tmp_path / "out") as place:  # noqa: PT012
        made = dualquery.release(people(), **asked, checkpoint=place.checkpoint)
        place.checkpoint.claim(place.checkpoint.claims[-1], tmp_path / "out")
        raise KeyboardInterrupt
    (tmp_path / "link").symlink_to(tmp_path)
    with resume(tmp_path / "link" / "out.unfinished") as place:
        again = make(place, **asked)
    np.testing.assert_array_equal(again.records, made.records)
    np.testing.assert_array_equal(again.answers, made.answers)


def test_a_run_with_a_seed_keeps_nothing(tmp_path) -> None:
    """It can be made again; its draws may not be continued by the same seed."""
    with pytest.raises(KeyboardInterrupt), reserve(tmp_path / "out") as place:  # noqa: PT012
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("dualquery.releases.make.making.randomness", SeededRandomness)
            dualquery.release(people(), **ASKED, **GAME, seed=1, checkpoint=place.checkpoint)
        raise KeyboardInterrupt
    assert [*tmp_path.iterdir()] == []
