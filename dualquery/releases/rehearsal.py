"""How long a release will take: its mechanism is tried on a few made-up rows, and not to the end.

What depends on the queries takes as long on made-up rows as on private ones: noise for every
number, and the steps of a fit or the rounds of a game, of which the first ones tell how long all
take. What depends on the rows grows with their number. So no private row is needed, and the time is
about right where steps cost the same: a game whose problems get harder takes longer.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.protocol import Mechanism, Plan, Task
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.making import run
from dualquery.rows.dataset import Dataset
from dualquery.rows.packed import Records, RecordsBuilder
from dualquery.rows.protocol import BLOCK_ROWS, RowSum

if TYPE_CHECKING:
    from dualquery.data.domain import Domain
    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.table import TableSchema

_BLOCKS = 4
"""Blocks of made-up rows, at most."""

_ONES = 32
"""1s that a made-up row has in binary columns, about; wide tables have few."""

_KINDS, _ALIKE = 4, 0.7
"""Kinds of made-up rows, and how likely a row has its kind's value in a column. So columns are tied
together, and a mechanism whose first look decides what is worth measuring takes its longer way."""

_WATCHED, _FEWEST, _LONGEST = 2.0, 3, 10.0
"""Seconds to watch steps for, the fewest of them, and seconds after which fewer will do."""

_START = 2.0
"""Seconds to load the libraries."""

_CELL_READ = 1.5e-7
_CELL_MADE = 1.5e-8
"""Seconds to read a cell of a table, and to draw and write a bit of a record: on one core of a
common server of 2023, with CSV files. The rest is measured where it runs."""


class _Enough(Exception):  # noqa: N818  # no error
    """The rehearsal has seen enough steps."""


@dataclass
class _Watch:
    """Listens to a run until it is clear how long its steps take."""

    started: float = 0.0
    first: float | None = None
    before: int = 0
    done: int = 0
    left: float = 0.0

    def phase(self, name: str) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""

    def step(self, done: int, total: int) -> None:
        """Time the steps from the first one on, which may prepare something."""
        now = time.perf_counter()
        if self.first is None:
            self.first, self.before = now, done
        seen = done - self.before
        if seen:
            self.left = (now - self.first) / seen * (total - done)
        if now - self.first > (_WATCHED if seen >= _FEWEST else _LONGEST):
            raise _Enough


@dataclass(frozen=True, eq=False)
class _PartOfRows(Records):
    """Made-up records, of which a part stands for all; it notes how long passes over them take."""

    part: Records
    seconds: list[float]

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
        """Return a statistic of the part, as of all rows, and note the time."""
        start = time.perf_counter()
        found = self.part.total(statistic, threads)
        self.seconds.append(time.perf_counter() - start)
        return self._of_all(found)

    def ones(self) -> NDArray[np.int64]:
        """Return in how many rows each bit is 1."""
        return self._of_all(self.part.ones())

    def _of_all(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        whole: NDArray[np.int64] = np.rint(found * (self.n / self.part.n)).astype(np.int64)
        return whole


def expected_seconds(
    task: Task,
    mechanism: Mechanism[Any],
    plan: Plan[Any],
    schema: TableSchema | ItemSchema,
    neighbours: Neighbours,
    threads: int,
) -> float:
    """Return about how many seconds a release takes besides planning: reading, running, writing.

    Takes some seconds itself, and a block or so of made-up rows in memory. Nothing private is read
    or charged. Kernels that have never run are compiled here, once, so that a second call tells
    more.
    """
    domain = schema.domain
    part = _made_up(domain, min(task.n, _BLOCKS * BLOCK_ROWS))
    records = _PartOfRows(task.n, part.bits, part.stored, part, [])
    data: Dataset[Any] = Dataset(records, schema, "made-up rows")
    watch = _Watch()
    start = time.perf_counter()
    with contextlib.suppress(_Enough):
        # Without a seed: exact noise takes far longer than that of an experiment.
        run(data, task, mechanism, plan, None, threads, watch, neighbours)
    took = time.perf_counter() - start
    passes = sum(records.seconds) * (task.n / part.n - 1.0)
    made = task.default_records * domain.bits
    rows_alone = _CELL_READ * _cells(task, domain) + _CELL_MADE * made
    return _START + took + passes + watch.left + rows_alone


def _cells(task: Task, domain: Domain) -> float:
    """Return how many values a table has: one a column, but few of the items of a row."""
    binary = int((domain.sizes == 1).sum())
    return task.rows * (domain.columns - binary + min(binary, _ONES))


def _made_up(domain: Domain, rows: int) -> Records:
    """Return legal records of a few kinds: a value of each column, few 1s in binary columns."""
    generator = np.random.default_rng(0)
    starts, sizes = domain.offsets[:-1], domain.sizes
    groups, binary = starts[sizes > 1], starts[sizes == 1]
    ones = min(_ONES, -(-len(binary) // 2))

    def drawn(count: int) -> NDArray[np.int64]:
        values = groups + generator.integers(0, sizes[sizes > 1], (count, len(groups)))
        # A bit that is drawn twice counts once.
        listed = binary[generator.integers(0, max(len(binary), 1), (count, ones))]
        return np.hstack((values, listed))

    kinds = drawn(_KINDS)[generator.integers(0, _KINDS, rows)]
    alike = generator.random(kinds.shape) < _ALIKE
    bits = np.where(alike, kinds, drawn(rows)).astype(np.int32)
    builder = RecordsBuilder(domain.bits)
    builder.append_ones(np.arange(rows + 1) * bits.shape[1], bits.ravel())
    return builder.build()
