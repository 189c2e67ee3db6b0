"""Who does the parts of a piece of work: threads, or the caller."""

import pytest

from dualquery.runtime.resources import workers


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_is_raised_where_the_result_is_asked_for(threads) -> None:
    with workers(threads) as pool:
        future = pool.submit(divmod, 1, 0)
        with pytest.raises(ZeroDivisionError):
            future.result()
