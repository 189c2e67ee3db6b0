"""What a run has drawn, kept outside its memory, so that a run that was interrupted can go on.

The ledger tells a journal that a draw begins, and afterwards what came of it. Both are on the disk
before anything depends on them. A run that goes on is the same run from its start: draws that have
a result get it from the journal, those that come after it are made with fresh randomness.

**Why this is private.** A journal holds results that were charged and drawn, and public values:
post-processing. Exact numbers are counted again, and no state of a generator is ever written. No
draw is made twice: that it begins is on the disk before it is made, and one that began and has no
result is *lost*, unless a budget file did not count it. A lost draw is charged as any other, for
what stopped the run may have depended on it (a solver that dies of a sample would else choose among
samples), and no later attempt makes it again. A mechanism of many rounds is a round shorter for it
(`Curator.cut_short`); any other draw is needed, and a run that lost one cannot go on. A signal that
asks to end waits until the draw has its result, so that few are lost.

So over all attempts every event of the schedule is drawn at most once, given the public past alone,
and the schedule's guarantee covers them all together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from dualquery.privacy.events import Event
from dualquery.room.ground import Ground

Public = Mapping[str, Any]
"""A public value: texts, numbers, None, lists of these, and arrays, by name."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A draw of an earlier attempt."""

    events: tuple[Event, ...]  # what it was charged as
    ground: Ground  # why that covers it
    result: NDArray[Any] | None  # what came of it; None if it was lost


class Journal:
    """Keeps draws and public values of a run, in their order; this one keeps nothing.

    A run with it cannot go on once it is interrupted; others override all of this.
    """

    @property
    def lost(self) -> int:
        """Number of draws of earlier attempts without a result."""
        return 0

    def recorded(self) -> Recorded | None:
        """Return the next draw of an earlier attempt that `take` has not passed; None if none."""
        return None

    def take(self) -> None:
        """Pass the draw that `recorded` returned."""

    def begin(self, events: tuple[Event, ...], ground: Ground, *, spare: bool) -> None:
        """Keep that a draw is about to be made. It is on the disk when this returns.

        ``spare`` says that the run can go on without it, should it be lost.
        """

    def end(self, result: NDArray[Any]) -> None:
        """Keep what came of the draw that began last. It is on the disk when this returns."""

    def recall(
        self,
        name: str,  # noqa: ARG002
        compute: Callable[[], Public],
        instead: Callable[[], Public],  # noqa: ARG002
    ) -> Public:
        """Return a public value: the one that was kept under a name, else a new one, kept.

        ``name`` is another one for every value of a run. ``compute`` makes it, and ``instead`` does
        where the process died of `compute` twice.
        """
        return compute()

    def same(self, what: str, value: Public) -> None:
        """Keep a fact about the run; `BadInputError` if an earlier attempt had another."""

    def make_room(self, size: int) -> None:
        """Make sure that this number of bytes can be written in the end; `BadInputError` if not."""

    def finish(self) -> None:
        """Keep that all is drawn. It is on the disk when this returns."""


NO_JOURNAL = Journal()
"""For runs that need not go on."""
