"""A table of the shape of the Netflix Prize data, which may not be passed on.

It is a model, not the data. It has their size, number of ratings, and quartiles of ratings by movie
and by user, as widely reported. Made up are 16 tastes of users: a log-normal factor of each movie
within each taste ties movies even among users of one activity.

A user of activity ``a`` rates a movie of rate ``r`` with probability ``1 - exp(-a r f)``, ``f``
being the movie's factor within the user's taste. The rates are fitted such that the expected number
of ratings of each movie is its share of the popularity curve.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.generated import kernels as generate_kernels
from dualquery.rows.generated.biased import check_shape
from dualquery.rows.row_sums import BLOCK_ROWS

USERS, MOVIES, RATINGS = 480_189, 17_770, 100_480_507

TASTES = 16
_TASTE_SPREAD = 0.9
"""Standard deviation of the logarithm of a movie's factor within a taste."""

_LARGEST_SHARE = 0.9
"""No movie is expected to be rated by more than this share of the users."""

# Streams of random words that are not a column's; columns stay below 2^30.
_ORDER_STREAM = np.uint64(2**32)
_TASTE_STREAM = np.uint64(2**32 + 1)
_FACTOR_STREAM = np.uint64(2**32 + 2)
_USER_STREAM = np.uint64(2**32 + 3)
"""The first of one stream a block."""


@dataclass(frozen=True)
class Curve:
    """A distribution by its smallest value, quartiles and largest value, with a given mean.

    Its quantile function is log-linear between these and one knot more, at ``upper_share``, which
    is placed such that the mean is right.
    """

    smallest: float
    lower: float
    median: float
    upper: float
    largest: float
    mean: float
    upper_share: float

    def quantiles(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values below which ``shares`` (in [0, 1]) of the distribution lie."""
        knots = [0.0, 0.25, 0.5, 0.75, self.upper_share, 1.0]
        values = [self.smallest, self.lower, self.median, self.upper, self._knot, self.largest]
        return np.exp(np.interp(shares, knots, np.log(values)))

    @cached_property
    def _knot(self) -> float:
        """The value at ``upper_share``: from the mean, by bisection."""
        low, high = np.log(self.upper), np.log(self.largest)
        for _ in range(50):
            middle = (low + high) / 2
            too_much = self._mean_with(float(np.exp(middle))) > self.mean
            low, high = (low, middle) if too_much else (middle, high)
        return float(np.exp(low))

    def _mean_with(self, knot: float) -> float:
        """Integrate the quantile function: an exponential on each of its pieces."""
        values = np.array(
            [self.smallest, self.lower, self.median, self.upper, knot, self.largest], np.float64
        )
        lengths = np.diff([0.0, 0.25, 0.5, 0.75, self.upper_share, 1.0])
        return float(lengths @ (np.diff(values) / np.diff(np.log(values))))


POPULARITY = Curve(3, 192, 561, 2668, 232_944, RATINGS / MOVIES, upper_share=0.95)
"""Ratings of a movie."""

ACTIVITY = Curve(1, 39, 96, 259, 17_653, RATINGS / USERS, upper_share=0.999)
"""Ratings of a user."""


@dataclass(frozen=True, eq=False)
class NetflixLike:
    """The generator (see `dualquery.rows.generated.biased.Generator`): row = user, bit = rated this
    movie.

    Raises `BadInputError` if a number is out of its range.
    """

    n: int = USERS  # number of users, at least 1
    bits: int = MOVIES  # number of movies, at least 1
    seed: int = 0  # 0 .. 2^64 - 1; the same seed gives the same records

    def __post_init__(self) -> None:
        check_shape(self.n, self.bits, self.seed)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Expected share of the users who rated each movie: float64, shape ``(bits,)``."""
        words = generate_kernels.hash_words(self._seed, _ORDER_STREAM, self.bits)
        ranks = np.argsort(np.argsort(words))
        curve = POPULARITY.quantiles((ranks + 0.5) / self.bits) / USERS
        density = RATINGS / (USERS * MOVIES)
        low, high = 0.0, 1.0 / curve.min()
        for _ in range(100):
            middle = (low + high) / 2
            too_much = np.minimum(curve * middle, _LARGEST_SHARE).mean() > density
            low, high = (low, middle) if too_much else (middle, high)
        return np.minimum(curve * low, _LARGEST_SHARE)

    def fill(self, block: int, columns: NDArray[np.int32], out: NDArray[np.uint64]) -> None:
        """Write some bits of a block."""
        rows = min(BLOCK_ROWS, self.n - block * BLOCK_ROWS)
        words = generate_kernels.uniforms(self._seed, _USER_STREAM + np.uint64(block), 3 * rows)
        # Each block has the same spread of activities, in an order of its own.
        ranks = np.argsort(np.argsort(words[:rows]))
        activity = ACTIVITY.quantiles((ranks + words[rows : 2 * rows]) / rows) / ACTIVITY.mean
        taste = np.searchsorted(np.cumsum(self._taste_shares)[:-1], words[2 * rows :])
        order = np.argsort(taste, kind="stable")
        generate_kernels.fill_ratings(
            self._seed,
            block,
            columns,
            self._rates,
            generate_kernels.Users(
                np.concatenate(([0.0], np.cumsum(activity[order]))),
                np.searchsorted(taste[order], np.arange(TASTES + 1)),
                order.astype(np.int32),
            ),
            out,
        )

    @property
    def _seed(self) -> np.uint64:
        return np.uint64(self.seed)

    @cached_property
    def _taste_shares(self) -> NDArray[np.float64]:
        """Share of the users of each taste: float64, shape ``(TASTES,)``."""
        sizes = 0.3 + generate_kernels.uniforms(self._seed, _TASTE_STREAM, TASTES)
        return np.asarray(sizes / sizes.sum())

    @cached_property
    def _rates(self) -> NDArray[np.float64]:
        """Hits a unit of activity of each movie in each taste: float64, ``(bits, TASTES)``."""
        from scipy.special import ndtri

        drawn = generate_kernels.uniforms(self._seed, _FACTOR_STREAM, self.bits * TASTES)
        factors = np.exp(_TASTE_SPREAD * ndtri(drawn)).reshape(self.bits, TASTES)
        # The share of users who rate a movie, by the logarithm of its rate.
        activity = ACTIVITY.quantiles((np.arange(4096) + 0.5) / 4096) / ACTIVITY.mean
        grid = np.linspace(np.log(1e-10), np.log(1e6), 2048)
        reached = -np.expm1(-np.exp(grid)[:, None] * activity).mean(axis=1)
        low = np.full(self.bits, grid[0])
        high = np.full(self.bits, grid[-1])
        for _ in range(40):
            middle = (low + high) / 2
            within = np.interp(middle[:, None] + np.log(factors), grid, reached)
            too_much = within @ self._taste_shares > self.shares
            low, high = np.where(too_much, low, middle), np.where(too_much, middle, high)
        return np.asarray(np.exp(low)[:, None] * factors)
