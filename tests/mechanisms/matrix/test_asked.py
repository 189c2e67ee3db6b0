"""A second look at the queries themselves: when, at what cost, and what is believed of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.noise import plan_noisy_counts
from dualquery.mechanisms.matrix.asked import independent
from dualquery.mechanisms.matrix.looks import scale_for
from dualquery.mechanisms.matrix.scale_mixture import SCALES, shrunk
from dualquery.mechanisms.matrix.staged import Staged
from dualquery.mechanisms.protocol import Budget, Outcome, Session, Task
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.random import random_conjunctions
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.randomness import SeededRandomness
from dualquery.room.sensitivity import moves
from dualquery.room.sensitivity.bounds import Bound, complemented
from dualquery.room.statistics import SomeQueries
from tests.mechanisms.matrix.test_staged import SMALL, legal_records, packed

COLUMNS, QUERIES = 1_200, 600


@pytest.fixture
def no_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound how many queries differ by their number: proofs of less take most of the time."""
    for name in ("differing_queries", "contributing_queries"):
        monkeypatch.setattr(moves, name, lambda asked: Bound(len(asked), "queries"))


def table(rows: int, most: float) -> np.ndarray:
    """Return a table of columns whose shares lie evenly below one."""
    generator = np.random.default_rng(6)
    return generator.random((rows, COLUMNS)) < most * generator.random(COLUMNS)


def about_all(queries: int, way: int = 3, *, signed: bool = True) -> Workload:
    """Return random queries about all columns, or as many as there can be."""
    generator = np.random.default_rng(7)
    rounds = -(-queries * way // COLUMNS)
    orders = np.concatenate([generator.permutation(COLUMNS) for _ in range(rounds)])
    bits = np.sort(orders[: queries * way].reshape(queries, way), axis=1)
    negated = generator.integers(0, 2, bits.shape) * signed
    return Workload((2 * bits + negated).astype(np.int32), Domain.binary(COLUMNS))


def released(
    records: np.ndarray,
    work: Workload,
    epsilon: float,
    seed: int = 1,
    relation: Neighbours = Neighbours.REPLACE_ONE,
) -> tuple[Outcome, np.ndarray]:
    """Return what a run gives, and the true answers; the schedule is spent."""
    rows, n = packed(records), len(records)
    asked, mechanism = Task(work, n), Staged(records=3)
    plan = mechanism.plan(asked, Budget(epsilon, 1e-3, neighbours=relation))
    room = Curator(
        rows, work, plan.schedule, SeededRandomness(seed), neighbours=relation, public_rows=n
    )
    outcome = mechanism.run(asked, plan, room, Session(public_seed=1))
    assert room._ledger.spent == len(plan.schedule) == 2
    return outcome, work.counts(rows, threads=1) / n


@pytest.mark.parametrize("relation", RELATIONS)
def test_whatever_queries_are_chosen_cost_the_planned_ratio_at_most(relation: Neighbours) -> None:
    """By enumeration: all sets of queries that an adversary may choose, all pairs of records."""
    work, ratio = random_conjunctions(SMALL, 12, 2, seed=3), 0.37
    records = packed(legal_records(SMALL))
    values = np.stack([work.on_record(row) for row in legal_records(SMALL)]).astype(float)
    if relation is Neighbours.ADD_REMOVE:
        # The room counts the rows on which queries without positive literals fail.
        values = np.where(complemented(work), 1.0 - values, values)
    sets = [set_ for size in (1, 2, 3, 12) for set_ in combinations(range(12), size)]
    for places in sets:
        asked = SomeQueries(np.array(places))
        scale = scale_for(asked.moves(work, relation).l2, ratio)
        own = values[:, places]
        moved = own if relation is Neighbours.ADD_REMOVE else own[:, None] - own[None]
        furthest = np.sqrt((moved**2).sum(axis=-1).max())
        assert furthest / scale <= ratio
    for factor in (1 - 1e-12, 1.0):
        room = Curator(
            records, work, (GaussianNoise(ratio, 1.0),), SeededRandomness(0),
            neighbours=relation, public_rows=records.n,
        )  # fmt: skip
        if factor < 1:
            with pytest.raises(RuntimeError, match="would cost more"):
                room.measure(asked, Gaussian(scale * factor))
        else:
            assert len(room.measure(asked, Gaussian(scale))) == 12


@pytest.mark.parametrize(
    ("relation", "fewer", "more"),
    [
        (Neighbours.REPLACE_ONE, about_all(600), about_all(1_300)),
        # A share moves by a half where a row is added, an answer by 1.
        (Neighbours.ADD_REMOVE, about_all(240, 5), about_all(600)),
    ],
)
@pytest.mark.usefixtures("no_proofs")
def test_queries_are_measured_where_they_are_few_and_columns_full(
    relation: Neighbours, fewer: Workload, more: Workload
) -> None:
    """Public facts say whether they may be; the noisy shares, whether columns are full."""
    budget = Budget(2.0, 1e-3, neighbours=relation)
    for work, few in ((fewer, True), (more, False), (about_all(200), False)):
        plan = Staged().plan(Task(work, 4_000), budget)
        assert plan.details.directly is plan.needs_answers is few
    for most, full in ((1.0, True), (0.02, False)):
        outcome, _ = released(table(4_000, most), fewer, 2.0, relation=relation)
        asked = outcome.trace[1]["queries"]
        assert (asked > 0) is full
        assert outcome.measurements is not None
        others = outcome.trace[1]["columns"] + outcome.trace[1]["products"]
        assert len(outcome.measurements) == COLUMNS + asked + others


@pytest.mark.usefixtures("no_proofs")
def test_answers_are_as_near_as_noise_on_all_of_them_and_nearer_in_the_mean() -> None:
    work = about_all(QUERIES)
    outcome, truth = released(table(4_000, 1.0), work, 1.0)
    noise = plan_noisy_counts(work, Budget(1.0, 1e-3)).details.noise.scale / 4_000
    off = np.abs(outcome.answers - truth)
    assert off.max() < 1.1 * 3.3 * noise
    assert off.mean() < 0.75 * 0.8 * noise


@pytest.mark.usefixtures("no_proofs")
def test_a_query_whose_columns_are_the_same_is_believed_as_it_was_measured() -> None:
    """Ten of six hundred: independent columns are off by a quarter."""
    work = about_all(QUERIES, signed=False)
    records = table(20_000, 1.0)
    ten = np.arange(10)
    first, second = work.literals[ten, :2].T >> 1
    records[:, second] = records[:, first]
    outcome, truth = released(records, work, 4.0)
    shares = records.mean(axis=0)
    apart = np.abs(shares[work.literals >> 1].prod(axis=1) - truth)
    assert apart[ten].max() > 0.1
    assert np.abs(outcome.answers - truth)[ten].max() < 0.03


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.usefixtures("no_proofs")
def test_intervals_cover_through_the_choice(signed: bool) -> None:
    """Each query's own share of 100 runs has a standard error of 0.022 at 0.95."""
    work, records = about_all(QUERIES, signed=signed), table(1_000, 1.0)
    covered = np.zeros(QUERIES)
    measured = 0
    for seed in range(100):
        outcome, truth = released(records, work, 1.0, seed)
        found = outcome.intervals
        assert found is not None
        covered += (found.lower <= truth) & (truth <= found.upper)
        measured += outcome.trace[1]["queries"]
    assert 0.1 < measured / (100 * QUERIES) < 0.9
    assert (covered / 100).mean() >= 0.95
    assert (covered / 100).min() >= 0.95 - 5 * 0.022


def test_independent_answers_and_what_they_may_be_off_are_products() -> None:
    domain = Domain.binary(3)
    work = Workload(np.array([[0, 2, 5], [0, 2, -1]], np.int32), domain)
    shares, uncertain = np.array([0.2, 0.5, 0.1]), np.array([0.01, 0.02, 0.03])
    answers, off = independent(work, shares, uncertain)
    np.testing.assert_allclose(answers, [0.2 * 0.5 * 0.9, 0.2 * 0.5])
    parts = 0.5 * 0.9 * 0.01, 0.2 * 0.9 * 0.02, 0.2 * 0.5 * 0.03
    first = np.linalg.norm(parts)
    np.testing.assert_allclose(off, [first, np.hypot(0.5 * 0.01, 0.2 * 0.02)])


def test_two_independent_looks_are_weighed_by_their_variances() -> None:
    """Where columns are independent: a prior known to be off by s, noise t: s^2 / (s^2 + t^2)."""
    noisy, nothing = np.array([0.5, -0.2]), np.zeros(2)
    prior = np.full(len(SCALES), 1.0 / len(SCALES))
    found, _ = shrunk(noisy, nothing, 0.01, prior, certain=np.array([0.03, 0.01]))
    np.testing.assert_allclose(found, [0.375, -0.1])
