"""The memory to expect, from public facts."""

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.mechanisms.registry import configure
from dualquery.queries.conjunctions import Workload
from dualquery.releases.make.making import Memory, bytes_on_disk, memory_needed


def task_of(domain: Domain, rows: int, queries: int = 50, way: int = 2) -> Task:
    rng = np.random.default_rng(1)
    columns = np.argsort(rng.random((queries, domain.columns)), axis=1)[:, :way]
    return Task(Workload(2 * domain.offsets[np.sort(columns, axis=1)], domain, repeats=True), rows)


def needed(task: Task, mechanism: str = "auto", **options: object) -> Memory:
    configured = configure(mechanism, options)
    return memory_needed(task, configured, configured.plan(task, Budget(1.0, 1e-6)))


def test_rows_of_many_items_may_be_full_and_those_of_a_table_cannot() -> None:
    items = needed(task_of(Domain.binary(8_000), 500_000), records=1)
    # A full row is packed, a byte for 8 items; one of 128 items is listed, below each item's head.
    listed = 2 * 128 + 6 * 8_000 / 4_096
    assert items.most - items.usual == pytest.approx(500_000 * (8_000 / 8 - listed), abs=2)
    assert items.text().endswith(" if rows have many 1s")
    assert items.text().startswith(f"memory: about {round(items.usual / (1 << 20)):,} MiB")
    table = needed(task_of(Domain(np.arange(0, 900, 30)), 100_000))
    assert table.usual == table.most
    assert table.text().endswith("with all rows in it")
    cut = needed(task_of(Domain(np.arange(8_001), max_ones=20), 500_000), "independent", records=1)
    assert cut.most < items.usual
    assert cut.most == cut.usual


def test_answers_alone_need_no_room_for_records() -> None:
    task, budget = task_of(Domain.binary(150), 1_000_000), Budget(1.0, 1e-6)
    plans = [configure(name, {}).plan(task, budget) for name in ("gaussian", "independent")]
    answers, with_records = (bytes_on_disk(task, plan) for plan in plans)
    assert answers < 1 << 20 < with_records
    assert needed(task, "gaussian").usual <= needed(task, "independent").usual - 3 * 150_000_000
