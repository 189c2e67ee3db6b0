"""How many rows a release takes the table to have: known, bought with noise, or assumed.

When one record is replaced, the number of rows n is public. When one is added or removed, or a unit
of several is replaced, added or removed, it is private, and everything outside the room uses a
public number N in its place. Unless the user states one, N is bought: n plus integer Laplace noise
(Dwork, McSherry, Nissim and Smith 2006), for `COUNT_SHARE` of epsilon; a unit moves n by at most
its K rows, so the noise is K times as large. The rest of the run is planned once N is known, with
the rest of epsilon. (Replaced units of one row each need no noise: N is the number of units.)

**Why the costs add up.** Let the count be e-private, and the rest of the run, whatever N turned out
to be, (e', delta)-private with e' and delta fixed beforehand. For neighbours with primes, and any
set of results, ``P(N) P(S | N) <= P(N) (exp(e') P'(S | N) + delta)
<= exp(e + e') P'(N) P'(S | N) + delta P(N)``; the sum over N is (e + e', delta) (adaptive basic
composition; Dwork and Roth 2014, Theorem B.1). Delta may not depend on N: it has to be given.

This module is part of the private room: it reads the number of rows.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.events import Event, LaplaceNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.ground import Ground
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.ledger import Ledger
from dualquery.room.randomness import randomness
from dualquery.rows.row_sums import Rows
from dualquery.runtime.errors import BadInputError

COUNT_SHARE = 0.04
"""Share of epsilon for the number of rows: noise of scale 25 K / epsilon rows."""

_FEWEST_SCALES = 2.0
"""A noisy count below this many scales of its noise says nothing."""


@dataclass(frozen=True)
class RowCount:
    """The public number of rows, and what it cost."""

    n: int  # the number that everything public uses, >= 2
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    epsilon: float = 0.0  # spent on it; 0 if it is known or assumed
    units: int | None = None  # number of units, or weighted rows, where public: one is replaced
    measured: bool = False  # whether the run measures the true one, where the user stated another

    @property
    def is_exact(self) -> bool:
        """Whether it is the true number, which is public."""
        return self.neighbours.rows_public or self._of_units

    @property
    def is_stated(self) -> bool:
        """Whether it is only what the user stated: to plan with, until the true one is measured."""
        return self.epsilon == 0 and not self.is_exact

    @property
    def protected(self) -> int:
        """How many there are of what the guarantee protects, or a public number in its place."""
        return self.n if self.units is None else self.units

    def rest(self, epsilon: float) -> float:
        """Return the epsilon that is left for the run."""
        return epsilon if self.epsilon == 0 else math.nextafter(epsilon - self.epsilon, 0.0)

    @property
    def noise_scale(self) -> float:
        """Scale of the noise in a bought number, in rows."""
        return laplace_scale(self.epsilon, float(self.neighbours.steps))

    @property
    def events(self) -> tuple[Event, ...]:
        """The private draw behind the number, if there was one."""
        return (LaplaceNoise(self.epsilon),) if self.epsilon > 0 else ()

    @contextmanager
    def cost_told(self, *, learned: bool = False) -> Iterator[None]:
        """Say in a `BadInputError` raised within what is spent: on a schema, on this number."""
        try:
            yield
        except BadInputError as error:
            told = ["a schema has been learned, and its cost is spent"] if learned else []
            if self.epsilon > 0:
                number = f"the noisy {_counted(self.neighbours)}, {self._amount}, has been drawn"
                told.append(f"{number} by now, and has cost epsilon {self.epsilon:.3g}")
            error.args = (f"{error} ({'; '.join(told)})",) if told else error.args
            raise

    @property
    def _amount(self) -> str:
        return f"{self.n * self.neighbours.of_copy:,.15g}"

    @property
    def relation(self) -> str:
        """The neighbouring relation for the printed guarantee."""
        if self.neighbours.rows_public:
            return "replace one record, n public"
        unit, weight = self.neighbours.unit, self.neighbours.weight
        one = "one record"
        public = "n public"
        number = f"{self.n:,}"
        if unit is not None:
            rows = "1 row" if unit.max_rows == 1 else f"{unit.max_rows:,} rows"
            one = f"one unit of column {unit.column!r} with at most {rows}"
            public = "the number of units public"
        if weight is not None:
            one += f", weighted by column {weight.column!r} up to {weight.max:g}"
            number = f"{self.n * weight.of_copy:.6g}"
        noisy = self.epsilon > 0 or self.measured
        how = "that of units" if self._of_units else f"assumed to be {number}"
        how = "released with noise" if noisy else how
        moved = f"replace {one}, {public}" if self.neighbours.replaces else f"add or remove {one}"
        return f"{moved}, the {_counted(self.neighbours)} {how}"

    @property
    def _of_units(self) -> bool:
        """Whether it is the number of units of one row each, which is public."""
        return self.units == self.n and _is_free(self.neighbours)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences for the statement."""
        if self.neighbours.rows_public:
            return ()
        if self._of_units:
            number = (
                f"A unit has one row at most, so the number of units, {self.n:,}, which is public, "
                "stands for that of the rows."
            )
        elif self.epsilon == 0:
            true = "is measured with noise" if self.measured else "was not looked up"
            number = (
                f"The {_counted(self.neighbours)} was stated by the user, as {self._amount}, to "
                f"plan with; the true one {true}, and the guarantee holds whatever it is."
            )
        else:
            number = (
                f"The {_counted(self.neighbours)} was released with integer Laplace noise at "
                f"epsilon {self.epsilon:.6g}, and the rest planned on the noisy number: their "
                "epsilons add up (Dwork and Roth 2014, Theorem B.1)."
            )
        return number, "Tables of no rows are outside the guarantee: they are refused."


def _counted(neighbours: Neighbours) -> str:
    return "number of rows" if neighbours.weight is None else "total weight"


def bought_epsilon(neighbours: Neighbours, stated: int | None, epsilon: float) -> float:
    """Return the part of ``epsilon`` that the number of rows costs: 0 if it is not bought."""
    return 0.0 if _is_free(neighbours) or stated is not None else COUNT_SHARE * epsilon


def _is_free(neighbours: Neighbours) -> bool:
    """Return whether a public number is that of the rows: of units of one row each, if of units."""
    return neighbours.replaces and neighbours.steps == 1 and neighbours.weight is None


def buy_row_count(
    records: Rows,
    epsilon: float,
    seed: int | None,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    units: int | None = None,
    pay: Callable[[LaplaceNoise], None] = lambda _: None,
    journal: Journal = NO_JOURNAL,
) -> RowCount:
    """Release a noisy number of rows for a share of a whole release's ``epsilon`` > 0.

    ``neighbours`` make the number of ``records`` private; ``units`` is that of units, where public.
    ``seed`` is as for `randomness`. ``pay`` is called with the event before it is drawn; what it
    raises keeps it from being drawn. ``journal`` keeps the draw, or has it from an earlier attempt.
    `BadInputError` if the noisy number is too small to plan with; the share is spent then.
    """
    share = COUNT_SHARE * epsilon
    move = float(neighbours.steps)
    scale = laplace_scale(share, move)
    ground = Ground(__name__, "number of rows", move, scale, "definition")
    pay(LaplaceNoise(share))
    # A seeded run draws its other noise from the seed itself.
    source = randomness(None if seed is None else seed + 2**64)
    ledger = Ledger((LaplaceNoise(share),), journal)
    event = LaplaceNoise(move / scale)
    drawn = ledger.draw(event, ground, lambda: records.n + source.discrete_laplace(scale, 1), (1,))
    noisy = int(drawn[0])
    fewest = max(2, math.ceil(_FEWEST_SCALES * scale))
    if noisy < fewest:
        what, one = _counted(neighbours), neighbours.of_copy
        raise BadInputError(
            f"the {what} is private: the noisy {what} is {noisy * one:,.15g} (scale of the noise "
            f"{scale * one:.3g}), below {fewest * one:,.15g}, too few to go by; this look has "
            f"cost epsilon {share:.3g}. Ask for a larger --epsilon, or state it with --rows"
        )
    return RowCount(noisy, neighbours, share, units)
