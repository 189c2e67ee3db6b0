"""What a learned schema costs, and what it can show: public, and known before a row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dualquery.data.drafts.drafting import SURE
from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.accountants.formulas import epsilon_from_rho
from dualquery.privacy.calibrate import calibrate_rho, rho_for
from dualquery.privacy.events import Event, GaussianNoise, ThresholdedCounts
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.learning import rows_of_unit, shapes_sensitivity, threshold, values_sensitivity
from dualquery.runtime.errors import BadInputError

SHAPES_SHARE = 0.25
"""Of rho for shapes: most cells of a column have one, so their counts may have more noise."""

_MARGIN = 1e-5
"""Of the rest's rho, so that roundings of both calibrations stay within the whole budget."""

_MOST_LISTED = 0.25
"""Part of the rows that a value may need to be listed; where it is more, nothing is spent."""


@dataclass(frozen=True)
class SchemaPrice:
    """The events that learn a schema."""

    rho: float  # zero-concentrated differential privacy of both events
    delta: float  # of the threshold
    neighbours: Neighbours
    sizes: tuple[int, int]  # columns, or items of a row, that are learned; how many have shapes to
    epsilon: float  # of the guarantee that this is a part of

    @staticmethod
    def part(
        epsilon: float, delta: float, share: float, neighbours: Neighbours, sizes: tuple[int, int]
    ) -> SchemaPrice:
        """Return the price of a share of a release's budget: of rho, and of delta, above 0."""
        check_learnable(delta)
        rho = share * rho_for(epsilon, delta * (1.0 - share))
        return SchemaPrice(rho, share * delta, neighbours, sizes, epsilon)

    @staticmethod
    def whole(
        epsilon: float, delta: float, neighbours: Neighbours, sizes: tuple[int, int]
    ) -> SchemaPrice:
        """Return the price of a schema by itself: half of delta is the threshold's."""
        check_learnable(delta)
        free = SchemaPrice(0.0, delta / 2.0, neighbours, sizes, epsilon)
        rho = calibrate_rho(lambda rho: replace(free, rho=rho).events, epsilon, delta)
        return replace(free, rho=rho)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in their order."""
        return (*([self.shapes] if self.sizes[1] else []), self.listing)

    @property
    def shapes(self) -> GaussianNoise:
        """The event of the counts of shapes."""
        moved = shapes_sensitivity(self.sizes[1], self.neighbours)
        return GaussianNoise(moved, moved / math.sqrt(2.0 * SHAPES_SHARE * self.rho))

    @property
    def listing(self) -> ThresholdedCounts:
        """The event of the values, or items, that are listed."""
        moved = values_sensitivity(self.sizes[0], self.neighbours)
        share = 1.0 - SHAPES_SHARE if self.sizes[1] else 1.0
        return ThresholdedCounts(moved, moved / math.sqrt(2.0 * share * self.rho), self.delta)

    @property
    def fewest(self) -> float:
        """How many rows must hold a value for it to be listed, half of the time."""
        return threshold(self.listing.scale, self.sizes[0], self.neighbours, self.delta)

    def text(self, rows: int | None) -> str:
        """Return how frequent a value must be, in words; ``rows`` is public, or None."""
        share = "" if rows is None else f" of {rows:,} ({self.fewest / rows:.2g} of them)"
        what = f"{self.sizes[0]:,} {'columns' if self.sizes[1] else 'values a row'}"
        return (
            f"a schema of {what} would be learned: a value is listed if about "
            f"{math.ceil(self.fewest):,} rows{share} hold it; what is rarer is (other). All else "
            "depends on that schema; --schema says what is public, and is not paid for"
        )

    def rest(self, budget: Budget, *, noise_alone: bool) -> Budget:
        """Return what the rest of a release may cost, so that schema and rest keep to a budget.

        The squared ratios of sensitivity to scale add up, and their sum is fixed beforehand: for
        Gaussian ``noise_alone`` that is fully adaptive composition (Smith and Thakurta 2022), for
        other draws it is a filter of approximate zCDP (Whitehouse et al. 2023).
        """
        delta = budget.delta - self.delta

        def noise(rho: float) -> tuple[Event, ...]:
            return (GaussianNoise(math.sqrt(2.0 * rho), 1.0),)

        if not noise_alone:
            if budget.accountant not in ("auto", "zcdp"):
                raise BadInputError("--accountant: with a learned schema it is zcdp here, or auto")
            rho = rho_for(budget.epsilon, delta) - self.rho
            epsilon = epsilon_from_rho(rho * (1.0 - _MARGIN), delta)
            return replace(budget, epsilon=epsilon, delta=delta, accountant="zcdp")
        rho = calibrate_rho(noise, budget.epsilon, delta, budget.accountant) - self.rho
        left = best(noise(rho * (1.0 - _MARGIN)), delta, budget.accountant)[1]
        return replace(budget, epsilon=left, delta=delta)

    def require_worth(self, rows: int | None) -> None:
        """Raise `BadInputError` where hardly any value of some rows, or units, could be seen."""
        noise = SURE * self.shapes.scale if self.sizes[1] else 0.0
        most = (rows or 0) * rows_of_unit(self.neighbours)
        if rows is not None and (self.fewest > _MOST_LISTED * most or noise > 0.5 * most):
            raise BadInputError(
                f"a schema cannot be learned from {rows:,} rows or units at this budget: a value "
                f"would have to be in {math.ceil(self.fewest):,}, for {self.sizes[0]:,} "
                "columns; describe the columns with --schema (what you say is not paid for), name "
                "fewer with --columns, or give a larger --epsilon or --schema-share"
            )


def check_learnable(delta: float | None) -> None:
    """Raise `BadInputError` if delta is 0: a threshold needs some."""
    if delta == 0.0:
        raise BadInputError(
            "a schema is learned with a delta above 0, and --delta is 0 here; give a --delta, or "
            "declare a --schema"
        )
