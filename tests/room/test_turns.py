"""One ledger, one verb at a time: copies, forks and threads of a mechanism spend nothing twice."""

from __future__ import annotations

import copy
import os
import pickle
import threading

import numpy as np
import pytest

from dualquery.privacy.events import GameSchedule, LaplaceNoise
from dualquery.queries.conjunctions import Workload
from dualquery.room.curator import Curator
from dualquery.room.noise.laplace import Laplace
from dualquery.room.randomness import SeededRandomness, SystemRandomness
from dualquery.room.statistics import AllQueries
from tests.cases import all_records, domain_of, records_of

DOMAIN = domain_of(1, 1, 3)
WORKLOAD = Workload(np.array([[0, 2], [1, 4], [3, 6]], np.int32), DOMAIN)
ROWS = all_records(DOMAIN)


class Interrupted(SeededRandomness):
    """Lets another thread act, if it can, between a charge and its draw."""

    def __init__(self) -> None:
        super().__init__(0)
        self.other = threading.Thread()
        self.waited: list[bool] = []

    def words(self, count):
        self._let_the_other_try()
        return super().words(count)

    def discrete_laplace(self, scale, count):
        self._let_the_other_try()
        return super().discrete_laplace(scale, count)

    def _let_the_other_try(self) -> None:
        if not self.waited:
            self.other.start()
            self.other.join(0.05)
            self.waited.append(self.other.is_alive())


def test_weights_do_not_change_between_a_charge_and_its_draw() -> None:
    """A round more would widen the range of the draw beyond what was charged."""
    source = Interrupted()
    schedule = GameSchedule(rounds=2, samples=4, step=0.7, n=len(ROWS))
    room = Curator(records_of(ROWS), WORKLOAD, schedule, source)
    room.begin_game(0.7)
    room.reweight(ROWS[0])
    source.other = threading.Thread(target=room.reweight, args=(ROWS[0],))
    room.sample_queries(4)
    source.other.join()
    assert source.waited == [True]


def test_threads_share_what_is_left() -> None:
    source, refused = Interrupted(), []
    room = Curator(records_of(ROWS), WORKLOAD, (LaplaceNoise(1.0),), source)
    noise = Laplace(float(AllQueries().moves(WORKLOAD, room._data.neighbours).l1))

    def measure_too() -> None:
        with pytest.raises(RuntimeError, match="the budget is spent"):
            room.measure(AllQueries(), noise)
        refused.append(True)

    source.other = threading.Thread(target=measure_too)
    room.measure(AllQueries(), noise)
    source.other.join()
    assert (source.waited, refused) == ([True], [True])


@pytest.mark.parametrize("source", [SeededRandomness(0), SystemRandomness()])
def test_a_room_cannot_be_copied(source) -> None:
    """A copy would have a ledger of its own."""
    room = Curator(records_of(ROWS), WORKLOAD, (LaplaceNoise(1.0),), source)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot pickle"):
            copied(room)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_spends_nothing() -> None:
    room = Curator(records_of(ROWS), WORKLOAD, (LaplaceNoise(1.0),), SystemRandomness())
    room.evaluate()
    noise = Laplace(float(AllQueries().moves(WORKLOAD, room._data.neighbours).l1))
    child = os.fork()
    if child == 0:
        try:
            room.measure(AllQueries(), noise)
        except RuntimeError as error:
            os._exit(0 if "forked process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(room.measure(AllQueries(), noise)) == len(WORKLOAD)
