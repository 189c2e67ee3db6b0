"""Remembered draws and fitted shares, on games small enough to do both by hand."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery import shares as mixture
from dualquery.mechanisms.dualquery import shares_kernels as kernels
from dualquery.mechanisms.dualquery.best_response import Problems
from dualquery.mechanisms.dualquery.game_forecast import game_bytes
from dualquery.mechanisms.dualquery.shares import EQUALITY, in_shares, likelihood_shares
from dualquery.mechanisms.dualquery.transcript import GRAIN, Transcript
from dualquery.privacy.events import GameSchedule
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import disjunctions_of
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.room.draws.exact_draws import Sample

DOMAIN = Domain.binary(3)
QUERIES = disjunctions_of(Workload(np.array([[0], [2], [4]], np.int32), DOMAIN))
M = len(QUERIES)
STEP = 0.7


def sample(*drawn: tuple[int, int]) -> Sample:
    queries, signs = zip(*drawn, strict=True)
    return Sample(np.array(queries, np.int64), np.array(signs, np.int8))


def game(rounds: int = 8, draws: int = 40, seed: int = 0, remembered: int = 4) -> Transcript:
    """Play random records against draws that say "bit 0 is 1" more often than not."""
    rng, transcript = np.random.default_rng(seed), Transcript(QUERIES, STEP, remembered, 20)
    for number in range(rounds):
        transcript.play(rng.integers(0, 2, 3, dtype=np.uint8))
        if number < rounds - 1:
            queries = rng.integers(0, M, draws)
            signs = np.where(rng.random(draws) < np.where(queries == 0, 0.9, 0.5), 1, -1)
            transcript.show(Sample(queries, signs.astype(np.int8)))
    return transcript


def test_without_memory_the_problem_is_the_paper_s() -> None:
    transcript = Transcript(QUERIES, STEP, remembered_rounds=1, rounds=20)
    for drawn in (sample((0, 1), (0, 1), (1, -1)), sample((2, 1), (1, -1))):
        transcript.play(np.zeros(3, np.uint8))
        transcript.show(drawn)
        problem = transcript.best_response()
        plain = Problems(QUERIES).of(drawn.queries, drawn.signs)
        for record in np.eye(3, dtype=np.uint8):
            assert problem.value(record) == plain.value(record)


def test_a_remembered_draw_counts_as_the_weights_have_moved() -> None:
    """By hand: one record with bit 0 after the draws of query 0 and of query 1's complement."""
    remembered = 3
    transcript = Transcript(QUERIES, STEP, remembered, 20)
    transcript.play(np.array([0, 1, 0], np.uint8))
    transcript.show(sample((0, 1), (1, -1)))
    transcript.play(np.array([1, 1, 0], np.uint8))
    transcript.show(sample((2, 1)))
    average = np.array([2, 3, 0]) / 3  # shares 1/3 and 2/3
    ratio = np.exp(STEP * np.array([average[0] - 1, -(average[1] - 1)]))
    worth = (1 - 1 / remembered) * ratio / ratio.mean()
    value = transcript.best_response().value
    base = value(np.zeros(3, np.uint8))
    assert value(np.array([1, 0, 0], np.uint8)) - base == np.rint(GRAIN * worth[0])
    assert value(np.array([0, 1, 0], np.uint8)) - base == -np.rint(GRAIN * worth[1])
    assert value(np.array([0, 0, 1], np.uint8)) - base == GRAIN


def test_draws_beyond_the_memory_are_forgotten() -> None:
    transcript = Transcript(QUERIES, STEP, remembered_rounds=2, rounds=20)
    for query in (0, 1, 2):
        transcript.play(np.zeros(3, np.uint8))
        transcript.show(sample((query, 1)))
    assert {*(transcript.best_response().terms >> 1).ravel().tolist()} == {1, 2}


def log_likelihood(transcript: Transcript, answers: np.ndarray) -> float:
    """The definition, with loops."""
    total, hits = 0.0, np.zeros(M)
    played = zip(transcript.records, transcript.samples, strict=False)
    for rounds, (record, drawn) in enumerate(played, 1):
        hits += QUERIES.on_record(record)
        weights = STEP * (rounds * answers - hits)
        normaliser = np.log(np.exp(weights).sum() + np.exp(-weights).sum())
        for query, sign in zip(drawn.queries, drawn.signs, strict=True):
            total += sign * weights[query] - normaliser
    return total


def objective(transcript: Transcript, shares: np.ndarray) -> float:
    truths = np.stack([QUERIES.on_record(record) for record in transcript.records])
    draws = sum(len(each.queries) for each in transcript.samples)
    uneven = float(shares @ np.log(shares * len(shares)))
    return log_likelihood(transcript, shares @ truths) / draws - EQUALITY * uneven


@pytest.mark.parametrize("seed", range(2))
def test_shares_are_likelier_than_equal_ones_and_close_to_the_best(seed) -> None:
    transcript = game(seed=seed)
    shares = likelihood_shares(transcript)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()
    reached, rounds = objective(transcript, shares), len(shares)
    equal = objective(transcript, np.full(rounds, 1 / rounds))
    rng = np.random.default_rng(seed)
    best = max(objective(transcript, rng.dirichlet(np.ones(rounds))) for _ in range(3000))
    assert reached >= equal + 0.8 * max(best - equal, 0.0)


def wide_game(step: float, rounds=12, queries=1500, draws=60, seed=3) -> Transcript:
    """Play random records of 40 bits; draws follow the private weights of random answers."""
    rng = np.random.default_rng(seed)
    workload = random_conjunctions(Domain.binary(40), queries, 3)
    transcript = Transcript(disjunctions_of(workload), step, 4, rounds)
    truth, score = rng.random(queries), np.zeros(queries)
    for number in range(rounds):
        record = rng.integers(0, 2, 40, dtype=np.uint8)
        transcript.play(record)
        score += truth - workload.on_record(record)
        if number < rounds - 1:
            weights = np.exp(step * np.concatenate((score, -score)) - step * np.abs(score).max())
            drawn = rng.choice(2 * queries, draws, p=weights / weights.sum())
            signs = np.where(drawn < queries, 1, -1).astype(np.int8)
            transcript.show(Sample(drawn % queries, signs))
    return transcript


def test_threads_do_not_change_the_shares() -> None:
    transcript = wide_game(0.5)
    alone = likelihood_shares(transcript)
    assert likelihood_shares(transcript, threads=3) == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("game", [(0.05,), (2.0,), (20.0,), (1e6,), (3e3, 3, 4, 3, 80)])
@pytest.mark.parametrize("first", [0, 4])
def test_shares_are_never_less_likely_than_equal_ones(game, first) -> None:
    """A game that is paid for must not be lost, whatever step the user gives."""
    transcript = wide_game(*game)
    first = min(first, len(transcript.records) - 1)
    shares = likelihood_shares(transcript, first)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0).all()
    likelihood = mixture._Likelihood(transcript, first, threads=1)
    equal = likelihood.at(np.full(len(shares), 1.0 / len(shares)))
    assert likelihood.at(shares).value >= equal.value
    if game[0] <= 20.0:
        assert likelihood.at(shares).value > equal.value


@pytest.mark.parametrize("queries", [1, 8, 509, 1100])
def test_kernels_against_their_definitions(queries) -> None:
    rng = np.random.default_rng(queries)
    holds = rng.integers(0, 2, (7, queries), np.uint8)
    truths = np.packbits(holds, axis=1)
    shares, values = rng.dirichlet(np.ones(7)), rng.normal(size=queries)
    size = 8 * truths.shape[1]
    answers, sums = np.zeros(size), np.zeros(7)
    kernels.add_answers(truths, 0, size, shares, answers)
    kernels.add_sums(truths, 0, size, np.pad(values, (0, size - queries)), sums)
    assert answers[:queries] == pytest.approx(shares @ holds)
    assert sums == pytest.approx(holds @ values)


def test_records_are_repeated_in_their_shares() -> None:
    records = np.eye(3, dtype=np.uint8)
    assert in_shares(records, np.array([0.51, 0.34, 0.15])).sum(axis=0).tolist() == [61, 41, 18]


@given(
    seed=st.integers(0, 2**32 - 1),
    rounds=st.integers(1, 60),
    evenness=st.sampled_from([0.05, 1.0, 100.0]),
)
def test_copies_of_any_run_of_records_are_off_by_less_than_one(seed, rounds, evenness) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.full(rounds, evenness))
    copies = in_shares(np.eye(rounds, dtype=np.uint8), shares).sum(axis=0)
    assert copies.sum() == mixture.REPEATS * rounds
    assert np.abs(np.cumsum(copies - shares * mixture.REPEATS * rounds)).max() <= 0.5 + 1e-9


def test_wide_records_are_not_repeated(monkeypatch) -> None:
    monkeypatch.setattr(mixture, "MOST_CELLS", 10)
    found = in_shares(np.eye(4, dtype=np.uint8), np.array([0.7, 0.3, 0.0, 0.0]))
    assert found.sum(axis=0).tolist() == [3, 1, 0, 0]


def test_the_fit_takes_no_more_memory_than_is_said_beforehand() -> None:
    """Of many rounds it takes some matrices of rounds by rounds; a release is told before it."""
    rounds, rng = 1_000, np.random.default_rng(1)
    queries = random_conjunctions(Domain.binary(20), 500, 3, True, 0)
    played = Transcript(disjunctions_of(queries), 0.01, 1, rounds)
    for _ in range(rounds - 1):
        played.play(rng.integers(0, 2, 20, dtype=np.uint8))
        played.show(Sample(rng.integers(0, 500, 2), np.array([1, -1], np.int8)))
    played.play(rng.integers(0, 2, 20, dtype=np.uint8))
    likelihood_shares(played)  # what is loaded at first use is loaded
    tracemalloc.start()
    shares = likelihood_shares(played)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(np.unique(shares)) > 1
    game = GameSchedule(rounds, 2, 0.01, 10_000)
    fit = [game_bytes(queries, game, 1, fitted=fitted) for fitted in (True, False)]
    assert 0.4 < peak / (fit[0] - fit[1]) < 1.0
