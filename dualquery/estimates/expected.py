"""The error to expect of a mechanism, from public facts, before any budget is spent."""

import math
from dataclasses import dataclass

_EULER = 0.5772156649015329


@dataclass(frozen=True)
class Estimate:
    """An error and the range in which it is expected, in units of answers; low <= about <= high."""

    low: float
    about: float
    high: float

    def text(self) -> str:
        """Return for example ``0.030 (0.018 to 0.050)``."""
        return f"{self.about:.2g} ({self.low:.2g} to {self.high:.2g})"


@dataclass(frozen=True)
class ExpectedError:
    """The errors to expect of the released answers, over the workload; what this rests on."""

    max_error: Estimate
    mean_error: Estimate
    basis: str

    def text(self) -> str:
        """Return one line for a person."""
        largest, mean = self.max_error.text(), self.mean_error.text()
        return f"expected max error {largest}, mean {mean}; {self.basis}"


def noise_error(noise: str, scale: float, queries: int, spread: float) -> ExpectedError:
    """Return the error of independent ``gaussian`` or ``discrete laplace`` noise on m answers.

    Scale and ``spread``, the length of the range they are clipped to, are in units of answers.
    """
    if noise == "gaussian":
        # The Gumbel mean of the largest of m magnitudes, in standard deviations.
        from scipy.special import ndtri

        largest = -float(ndtri(min(math.exp(-_EULER) / (2 * queries), 0.25)))
        mean = math.sqrt(2.0 / math.pi)
    else:
        largest, mean = math.log(queries) + _EULER, 1.0
    most, average = min(scale * largest, spread), min(scale * mean, spread)
    # Clipping halves the error of answers at the end of their range, and never adds any.
    return ExpectedError(
        Estimate(0.6 * most, most, min(1.3 * most, spread)),
        Estimate(0.25 * average, 0.75 * average, min(1.1 * average, spread)),
        "by the formula of independent noise; clipping takes up to half of it",
    )
