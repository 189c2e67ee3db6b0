"""What a learned schema costs, and what it can show: public, and known before a row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dualquery.data.learned import SURE
from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.accountants.zcdp import epsilon_from_rho, rho_for
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import Event, GaussianNoise, ThresholdedCounts
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.learning import shapes_sensitivity, threshold, values_sensitivity
from dualquery.runtime.errors import BadInputError

SHAPES_SHARE = 0.25
"""Of rho for shapes: as many rows of one kind must exceed `SURE` deviations there as texts must
exceed about 7 of values, and the sensitivity is sqrt(2) times as large."""

_MARGIN = 1e-5
"""Of the rest's rho, so that roundings of both calibrations stay within the whole budget."""

_MOST_LISTED = 0.25
"""A schema in which no value could be listed that is in fewer of the rows is refused beforehand."""


@dataclass(frozen=True)
class SchemaPrice:
    """The events that learn a schema.

    Parameters
    ----------
    rho
        Zero-concentrated differential privacy of both events.
    delta
        Of the threshold.
    columns
        How many columns are learned, or the most items of a row; at least 1.
    neighbours
        What neighbouring tables differ in.
    epsilon
        Of the guarantee that this is a part of.
    shapes
        Part of rho for shapes; 0 for items, which have none.
    """

    rho: float
    delta: float
    columns: int
    neighbours: Neighbours
    epsilon: float
    shapes: float = SHAPES_SHARE

    @staticmethod
    def part(
        epsilon: float,
        delta: float,
        share: float,
        columns: int,
        neighbours: Neighbours,
        shapes: float = SHAPES_SHARE,
    ) -> SchemaPrice:
        """Return the price of a share of a release's budget: of rho, and of delta.

        Raises
        ------
        BadInputError
            If delta is 0.
        """
        check_learnable(delta)
        rho = share * rho_for(epsilon, delta * (1.0 - share))
        return SchemaPrice(rho, share * delta, columns, neighbours, epsilon, shapes)

    @staticmethod
    def whole(epsilon: float, delta: float, columns: int, neighbours: Neighbours) -> SchemaPrice:
        """Return the price of a schema by itself: half of delta is the threshold's."""

        def price(rho: float) -> SchemaPrice:
            return SchemaPrice(rho, delta / 2, columns, neighbours, epsilon)

        check_learnable(delta)
        return price(calibrate_rho(lambda rho: price(rho).events, epsilon, delta))

    @property
    def shapes_scale(self) -> float:
        """Standard deviation of the noise in counts of shapes."""
        moved = shapes_sensitivity(self.columns, self.neighbours)
        return moved / math.sqrt(2.0 * self.shapes * self.rho) if self.shapes else 0.0

    @property
    def values_scale(self) -> float:
        """Standard deviation of the noise in counts of values."""
        moved = values_sensitivity(self.columns, self.neighbours)
        return moved / math.sqrt(2.0 * (1.0 - self.shapes) * self.rho)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in their order."""
        moved = shapes_sensitivity(self.columns, self.neighbours)
        shapes = (GaussianNoise(moved, self.shapes_scale),) if self.shapes else ()
        return (*shapes, self.listing)

    @property
    def listing(self) -> ThresholdedCounts:
        """The event of the values, or items, that are listed."""
        moved = values_sensitivity(self.columns, self.neighbours)
        return ThresholdedCounts(moved, self.values_scale, self.delta)

    @property
    def fewest(self) -> float:
        """How many rows must hold a value for it to be listed, half of the time."""
        return threshold(self.values_scale, self.columns, self.neighbours, self.delta)

    def own(self, delta: float) -> tuple[float, float]:
        """Return epsilon of both events at a delta, and this delta."""
        return best(self.events, delta)[1], delta

    def rest(self, budget: Budget, *, noise_alone: bool) -> Budget:
        """Return what the rest of a release may cost, so that all keeps within a budget.

        The squared ratios of sensitivity to scale add up, and their sum is fixed beforehand: for
        Gaussian noise alone that is fully adaptive composition (Smith and Thakurta 2022), for
        other draws it is a filter of approximate zCDP (Whitehouse et al. 2023).

        Parameters
        ----------
        budget
            Of schema and rest together.
        noise_alone
            Whether the rest draws Gaussian noise only.
        """
        delta = budget.delta - self.delta

        def noise(rho: float) -> tuple[Event, ...]:
            return (GaussianNoise(math.sqrt(2.0 * rho), 1.0),)

        if not noise_alone:
            rho = rho_for(budget.epsilon, delta) - self.rho
            epsilon = epsilon_from_rho(rho * (1.0 - _MARGIN), delta)
            return replace(budget, epsilon=epsilon, delta=delta, accountant="zcdp")
        rho = calibrate_rho(noise, budget.epsilon, delta, budget.accountant) - self.rho
        left = best(noise(rho * (1.0 - _MARGIN)), delta, budget.accountant)[1]
        return replace(budget, epsilon=left, delta=delta)

    def require_worth(self, rows: int | None) -> None:
        """Refuse where hardly any value could be listed; nothing is spent.

        Raises
        ------
        BadInputError
            If a value would have to be in a quarter of the rows, or a kind of cell in half.
        """
        if rows is None:
            return
        if self.fewest > _MOST_LISTED * rows or SURE * self.shapes_scale > 0.5 * rows:
            raise BadInputError(
                f"a schema cannot be learned from {rows:,} rows at this budget: a value would have "
                f"to be in {math.ceil(self.fewest):,} of them to be listed, for {self.columns:,} "
                "columns; describe the columns with --schema (what you say is not paid for), name "
                "fewer with --columns, or give a larger --epsilon or --schema-share"
            )


def check_learnable(delta: float | None) -> None:
    """Refuse a delta of 0.

    Raises
    ------
    BadInputError
        If delta is 0.
    """
    if delta == 0.0:
        raise BadInputError(
            "a schema is learned with a delta above 0, and --delta is 0 here; give a --delta, or "
            "declare a --schema"
        )
