"""Queries made between the stages: what they cost, what is released, and that intervals cover."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.cli.commands.dry_run import plan_without_rows
from dualquery.data.domain import Domain
from dualquery.data.given_table import Table
from dualquery.data.schema.items import ItemSchema
from dualquery.mechanisms.adaptive import mechanism
from dualquery.mechanisms.adaptive.mechanism import Staged
from dualquery.mechanisms.adaptive.stage_planner import ColumnEvidence
from dualquery.mechanisms.protocol import Budget, Session, Task
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.generate.frequent import FrequentItems
from dualquery.releases.compare.evaluation import GIVEN_QUERIES, evaluate
from dualquery.requests import BudgetRequest, ReleaseSpec, WorkloadRequest
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, records_of, values_on

TINY = Domain.binary(4)
BASKETS = np.random.default_rng(3).random((3_000, 30)) < 0.5 / (1 + np.arange(30))
BASKETS[:, 4] |= BASKETS[:, 1]
SCHEMA = ItemSchema.numbered(30, "baskets")


def task_of(frequent: FrequentItems, rows: int) -> Task:
    return Task(frequent.stand_in, rows, frequent=frequent)


@pytest.mark.parametrize("relation", RELATIONS)
def test_whatever_items_the_noise_chooses_both_stages_cost_what_was_planned(
    relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By enumeration: every choice of items that noise can make, every pair of records."""
    asked = task_of(FrequentItems.of("top:3", TINY, 2, None), 16)
    plan = Staged(records=2).plan(asked, Budget(1.0, 1e-3, neighbours=relation))
    ratios = [event.sensitivity / event.scale for event in plan.schedule]
    records = all_records(TINY)
    measured: list[tuple[object, float]] = []
    look = mechanism.sums_of

    def watched(strategy: object, curator: Curator, scale: float) -> np.ndarray:
        measured.append((strategy.features, scale))  # type: ignore[attr-defined]
        return look(strategy, curator, scale)  # type: ignore[arg-type]

    monkeypatch.setattr(mechanism, "sums_of", watched)
    monkeypatch.setattr(
        ColumnEvidence, "worth_measuring", lambda self: np.arange(len(self.expansion.features))
    )
    monkeypatch.setattr(ColumnEvidence, "all_at_once", lambda *_, **__: None)
    for items in combinations(range(4), 3):
        # What the first stage may show, so that these are the items: the others seem empty.
        monkeypatch.setattr(FrequentItems, "choose", lambda *_, items=items: np.array(items))
        measured.clear()
        room = Curator(
            records_of(records), asked.workload, plan.schedule, SeededRandomness(0),
            neighbours=relation, public_rows=16,
        )  # fmt: skip
        outcome = Staged(records=2).run(asked, plan, room, Session(public_seed=1))
        assert (np.unique(outcome.workload.literals >> 1)).tolist() == list(items)
        for (features, scale), ratio in zip(measured, ratios, strict=True):
            own = values_on(features, records).astype(float)  # type: ignore[arg-type]
            moves = own if relation is Neighbours.ADD_REMOVE else own[:, None] - own[None]
            assert np.sqrt((moves**2).sum(axis=-1).max()) / scale <= ratio
        # The first measures every item, whichever is asked about in the end.
        assert [len(features) for features, _ in measured] == [4, 6]  # type: ignore[arg-type]
        assert room._ledger.spent == 2


def test_the_choice_sees_noisy_shares_only(monkeypatch: pytest.MonkeyPatch) -> None:
    frequent, seen = FrequentItems.of("top:2", TINY, 2, None), []
    choose = FrequentItems.choose
    monkeypatch.setattr(
        FrequentItems, "choose", lambda self, shares: seen.append(shares) or choose(self, shares)
    )
    asked = task_of(frequent, 16)
    plan = Staged(records=2).plan(asked, Budget(0.1, 1e-3))
    rows = records_of(all_records(TINY))
    room = Curator(rows, asked.workload, plan.schedule, SeededRandomness(5))
    Staged(records=2).run(asked, plan, room, Session(public_seed=1))
    (shares,) = seen
    assert plan.details.looked.sensitivity == pytest.approx(4.0)
    # Every true share is a half; noise of the planned scale hides that.
    assert (np.abs(shares - 0.5) > 1e-3).all()


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_release_stores_the_queries_that_it_made(relation: str, tmp_path) -> None:
    delta = {} if relation == "replace-one" else {"delta": 1e-6}
    made = dualquery.release(
        BASKETS.astype(np.uint8), schema=SCHEMA, query_items="top:6", way=2, epsilon=4.0,
        neighbours=relation, records=500, seed=4, **delta,
    )  # fmt: skip
    assert pl.DataFrame(BASKETS.astype(np.uint8)).shape == BASKETS.shape
    assert len(made.answers) == 15 == len(made.workload)
    assert made.chosen == "adaptive"
    assert any("noisy shares" in note for note in made.notes)
    made.save(tmp_path / "out")
    again = dualquery.load_release(tmp_path / "out")
    np.testing.assert_array_equal(again.workload.literals, made.workload.literals)
    assert again.workload.description["rule"] == "top:6"
    found = evaluate(again, BASKETS.astype(np.uint8))
    assert found["remark"] == GIVEN_QUERIES
    assert found["mean_error"] < found["baselines"]["zero"]["mean_error"]
    # Items that nobody asked about keep their shares in the records.
    assert made.records[:, 15:].any()
    assert {0, 1, 2, 4} <= set(np.unique(made.workload.literals >> 1).tolist())


def test_intervals_cover_although_noise_chose_what_is_asked() -> None:
    """Sixteen items alike and a few frequent ones: those that are chosen have lucky noise."""
    generator = np.random.default_rng(6)
    rows = generator.random((500, 20)) < np.append(np.full(16, 0.3), [0.6, 0.7, 0.8, 0.9])
    frequent = FrequentItems.of("top:8", Domain.binary(20), 1, None)
    asked, records = task_of(frequent, 500), records_of(rows)
    plan = Staged(records=1).plan(asked, Budget(0.5, 1e-3))
    truth, hit, all_ = rows.mean(axis=0), 0, 0
    for seed in range(60):
        room = Curator(records, asked.workload, plan.schedule, SeededRandomness(seed))
        found = Staged(records=1).run(asked, plan, room, Session(public_seed=0))
        exact = truth[found.workload.literals[:, 0] >> 1]
        hit += ((found.intervals.lower <= exact) & (exact <= found.intervals.upper)).sum()
        all_ += len(exact)
    assert hit / all_ >= 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "matrix"}, "cannot find frequent items"),
        ({"queries": 10}, "--query-items and --queries are two ways"),
        ({"marginals": 2}, "--query-items and --marginals are two ways"),
        ({"query_items": "some"}, "give top:N, the N most frequent items"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict, message: str) -> None:
    asked = {"query_items": "top:5", **options}
    with pytest.raises(BadInputError, match=message):
        dualquery.release(BASKETS.astype(np.uint8), schema=SCHEMA, **asked)


def test_a_release_of_undeclared_items_is_not_private() -> None:
    taken = ItemSchema(np.arange(30), declared=False)
    made = dualquery.release(
        BASKETS.astype(np.uint8), schema=taken, query_items="share>=0.2,top:5", way=2, records=10,
        epsilon=3.0,
    )  # fmt: skip
    assert not made.privacy.private
    assert len(np.unique(made.workload.literals)) <= 5


def test_what_is_said_beforehand_goes_by_the_most_items(tmp_path) -> None:
    """No row is read: the file holds none."""
    (tmp_path / "baskets.dat").write_text("no row", encoding="utf-8")
    spec = ReleaseSpec(
        table=Table(f"fimi:{tmp_path}/baskets.dat"),
        schema=SCHEMA,
        workload=WorkloadRequest(items="share>=0.1,top:8", way=2),
        budget=BudgetRequest(delta=1e-6),
    )
    _, planned = plan_without_rows(spec, 3_000)
    assert len(planned.task.queries) == 28
    assert planned.plan.mechanism == "adaptive"
    assert planned.expected is not None
