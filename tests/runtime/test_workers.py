"""Who does the parts of a piece of work: threads, or the caller."""

from __future__ import annotations

import threading

import pytest

from dualquery.runtime.workers import workers


def _name(_: int) -> str:
    return threading.current_thread().name


@pytest.mark.parametrize(("threads", "parts"), [(1, None), (1, 5), (4, 1), (4, 0)])
def test_a_single_worker_is_the_caller(threads, parts) -> None:
    with workers(threads, parts) as pool:
        assert {*pool.map(_name, range(5))} == {threading.current_thread().name}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_is_raised_where_the_result_is_asked_for(threads) -> None:
    with workers(threads) as pool:
        future = pool.submit(divmod, 1, 0)
        with pytest.raises(ZeroDivisionError):
            future.result()
