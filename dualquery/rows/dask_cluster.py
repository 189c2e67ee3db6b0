"""Rows that the workers of a Dask cluster read: one partition, one task (extra ``distributed``).

A statistic is a sum of whole numbers over rows, so the partitions' totals add up to what one
machine counts, bit for bit, in whatever order they come. Nothing is kept on a worker between the
passes: when one is lost, Dask gives its tasks to another. Exact, hence private, totals travel
between the machines of the cluster, which must all be the operator's.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.readers.source import Source
from dualquery.data.schema.any_schema import Schema
from dualquery.rows.row_sums import LocalRowSum, RowSum
from dualquery.rows.streamed import StreamedRows, stream_rows
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import __version__

CONNECT_SECONDS = 20.0
"""How long the scheduler and a first worker are waited for."""

_LOST = "the connection to the Dask scheduler was lost; run again when it is back"
_SUMMED_AT_ONCE = 8
_LOGS = ("distributed", "distributed.client", "distributed.core", "asyncio")


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Yield a client of a running scheduler whose workers have our version."""
    if find_spec("distributed") is None:
        raise BadInputError("--engine dask needs Dask: install dualquery[distributed]")
    import dask
    import distributed

    # The queries are sent once, as a task; Dask would warn of their size.
    quiet = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"})
    with _quiet_logs(), quiet:
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, RuntimeError) as fault:  # its TimeoutError is an OSError
            reason = " ".join(str(fault).split()) or type(fault).__name__
            raise BadInputError(
                f"--scheduler {address}: no Dask scheduler answers there ({reason}); start one "
                "with 'dask scheduler' and give its address"
            ) from None
        with client:
            try:
                client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            except TimeoutError:
                raise BadInputError(
                    f"--scheduler {address}: the scheduler has no worker; start some with "
                    f"'dask worker {address}'"
                ) from None
            _check_versions(client)
            yield client


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep tracebacks of Dask off the terminal: what matters of them becomes our errors."""
    levels = {name: logging.getLogger(name).level for name in _LOGS}
    try:
        for name in _LOGS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def _check_versions(client: Any) -> None:
    """Check that all present workers count as we do."""
    try:
        found = client.run(_version)
    except Exception as fault:
        raise BadInputError(
            f"a worker cannot import dualquery ({fault}); install it there"
        ) from None
    for worker, version in found.items():
        if version != __version__:
            raise BadInputError(
                f"worker {worker} has dualquery {version}, and here it is {__version__}; install "
                "one version on all machines"
            )


def _version() -> str:
    return __version__


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """Rows in partitions that each worker reads for itself (made by `cluster_rows`)."""

    client: Any  # of Dask
    parts: Sequence[Source]  # their paths must mean the same files on every worker
    schema: Schema  # what the bits mean
    counts: Sequence[int]  # rows of each partition
    n: int  # of all

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self.schema.record_bits

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Return a statistic of all rows; the workers' own threads count, not ours."""
        if isinstance(statistic, LocalRowSum):
            raise BadInputError("this mechanism needs all rows in one place; use --engine memory")
        if self.client.status != "running":
            raise BadInputError(_LOST)
        # As the result of a task it is made again when the workers that hold it are lost.
        shared = self.client.submit(_same, statistic, self.schema, pure=False)
        totals = self.client.map(_part_total, self.parts, self.counts, shared=shared, pure=False)
        while len(totals) > 1:
            totals = [
                self.client.submit(_sum, totals[start : start + _SUMMED_AT_ONCE], pure=False)
                for start in range(0, len(totals), _SUMMED_AT_ONCE)
            ]
        return np.asarray(_result(totals[0].result))


def cluster_rows(client: Any, parts: Sequence[Source], schema: Schema) -> ClusterRows:
    """Return partitions as rows, counted by the workers, who refuse what they cannot read."""
    shared = client.submit(_same, None, schema, pure=False)
    found = client.map(_part_rows, parts, shared=shared, pure=False)
    counts = _result(lambda: client.gather(found))
    return ClusterRows(client, parts, schema, counts, sum(counts))


def _result(wait: Callable[[], Any]) -> Any:
    """Wait for a result; make the cluster's own faults clear errors."""
    import distributed

    try:
        return wait()
    except distributed.KilledWorker as fault:
        raise BadInputError(
            f"several workers died while they read the same partition ({fault}); give them "
            "more memory, or write smaller partitions"
        ) from None
    except (distributed.CancelledError, OSError) as fault:
        raise BadInputError(f"{_LOST} ({fault})") from None


def _same(*values: Any) -> Any:
    return values


def _part_rows(part: Source, shared: tuple[None, Schema]) -> int:
    return stream_rows(part, shared[1]).n


def _part_total(part: Source, n: int, shared: tuple[RowSum, Schema]) -> NDArray[np.int64]:
    statistic, schema = shared
    return StreamedRows(part, schema, n).total(statistic, 1)  # or refuses a part that has changed


def _sum(totals: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.asarray(np.sum(totals, axis=0, dtype=np.int64))
