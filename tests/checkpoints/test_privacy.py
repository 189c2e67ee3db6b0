"""A tiny game that is stopped and goes on, enumerated: the charge covers all that it shows."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dualquery.checkpoints.checkpoint import Checkpoint
from dualquery.privacy.accountants.choice import ACCOUNTANTS
from dualquery.privacy.events import GameSchedule
from dualquery.room.curator import Curator
from dualquery.room.draws.exact_draws import Sample
from dualquery.room.randomness import SeededRandomness
from dualquery.room.weights import QueryWeights
from tests.cases import records_of
from tests.room.test_curator import (
    CLASSES,
    ROWS,
    WORKLOAD,
    best_response,
    true_delta,
    weights_of_classes,
)

SCHEDULE = GameSchedule(rounds=3, samples=1, step=1.0, n=3)
DRAWS = SCHEDULE.rounds - 1


class Scripted:
    """Draws what a script says, and multiplies up the exact chance of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script: list[int] = []
        self.chance = Fraction(1)
        monkeypatch.setattr(QueryWeights, "sample", lambda weights, *_: self.draw(weights))

    def draw(self, weights: QueryWeights) -> Sample:
        integers = weights_of_classes(weights, SCHEDULE.step / SCHEDULE.n)
        drawn = self.script.pop(0)
        self.chance *= Fraction(integers[drawn], sum(integers))
        query, sign = CLASSES[drawn]
        return Sample(np.array([query]), np.array([sign], np.int8))


class StoppedError(Exception):
    """Stands for the end of the process."""


def attempt(path, rows, stop: tuple[int, str] | None) -> None:
    """Play the game on a checkpoint, as the mechanism does; it may end before or after a draw."""
    kept = Checkpoint(path)
    begin, end = kept.begin, kept.end

    def ends(result: np.ndarray) -> None:
        if stop == (kept.draws, "in"):
            raise StoppedError
        end(result)
        if stop == (kept.draws, "after"):
            raise StoppedError

    def begins(*arguments, spare: bool) -> None:
        if stop == (kept.draws + 1, "before"):
            raise StoppedError
        begin(*arguments, spare=spare)

    kept.begin, kept.end = begins, ends  # type: ignore[method-assign]
    room = Curator(records_of(rows), WORKLOAD, SCHEDULE, SeededRandomness(0), journal=kept)
    room.begin_game(SCHEDULE.step)
    record = ROWS[0]
    try:
        for _ in range(DRAWS):
            if room.cut_short():
                break
            room.reweight(record)
            shown = room.sample_queries(1)
            record = best_response((CLASSES.index((int(shown.queries[0]), int(shown.signs[0]))),))
    finally:
        kept.close()


def transcripts(folder, scripted, rows, stop: tuple[int, str] | None) -> dict[tuple, Fraction]:
    """Return the chance of every list of draws, those that were lost among them."""
    found: dict[tuple, Fraction] = {}
    for number, script in enumerate(itertools.product(range(len(CLASSES)), repeat=DRAWS)):
        scripted.script, scripted.chance = list(script), Fraction(1)
        path = folder / f"journal-{number}"
        path.unlink(missing_ok=True)
        if stop is not None:
            with pytest.raises(StoppedError):
                attempt(path, rows, stop)
        attempt(path, rows, None)
        assert scripted.script == []  # each event of the schedule is drawn once, over both attempts
        found[script] = scripted.chance
    assert sum(found.values()) == 1
    return found


STOPS = [(number, when) for number in range(1, DRAWS + 1) for when in ("before", "in", "after")]


def test_a_game_that_goes_on_shows_what_one_not_stopped_shows(tmp_path, monkeypatch) -> None:
    scripted = Scripted(monkeypatch)
    whole = transcripts(tmp_path, scripted, ROWS, None)
    for stop in STOPS:
        if stop[1] != "in":
            assert transcripts(tmp_path, scripted, ROWS, stop) == whole


def test_the_charge_covers_both_attempts_and_the_draw_that_was_lost(tmp_path, monkeypatch) -> None:
    """Whoever sees all draws, the lost one too, learns no more than the accountants state."""
    scripted = Scripted(monkeypatch)
    other = ROWS.copy()
    other[0] = [0, 0, 0, 0, 1]
    checked = 0
    for stop in STOPS:
        if stop[1] != "in":
            continue
        ours, theirs = (transcripts(tmp_path, scripted, rows, stop) for rows in (ROWS, other))
        for epsilon in (0.0, 0.1, 0.4, 1.6):
            truth = max(true_delta(ours, theirs, epsilon), true_delta(theirs, ours, epsilon))
            for accountant in ACCOUNTANTS:
                if accountant.supports(SCHEDULE, max(truth, 1e-9)) is None:
                    assert accountant.delta(SCHEDULE, epsilon) >= truth
                    checked += truth > 0
    assert checked > 10
