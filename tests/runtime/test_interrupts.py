"""Signals that ask a program to end: the first waits for what is too dear to be cut off."""

import signal
import threading

import pytest

from dualquery.cli.main import ending_signals_interrupt
from dualquery.runtime.files import finished_first

pytestmark = pytest.mark.usefixtures("_ctrl_c_is_heard")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_end_of_the_block(number: signal.Signals) -> None:
    finished = []
    with pytest.raises(KeyboardInterrupt), ending_signals_interrupt():  # noqa: PT012
        with finished_first():
            signal.raise_signal(number)
            finished.append(True)
        finished.append(False)
    assert finished == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_signal_does_not_wait() -> None:
    finished = []
    with pytest.raises(KeyboardInterrupt), finished_first():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        finished.append(True)
        signal.raise_signal(signal.SIGINT)
        finished.append(False)
    assert finished == [True]


def test_a_signal_is_heard_where_the_block_fails() -> None:
    with pytest.raises(KeyboardInterrupt), finished_first():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        raise ValueError


def test_other_threads_leave_signals_alone() -> None:
    seen = []

    def look() -> None:
        with finished_first():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
