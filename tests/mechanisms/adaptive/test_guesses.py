"""Guesses of measured queries: their literals' shares, and intervals that hold as often."""

import numpy as np
from scipy.stats import binom

from dualquery.data.domain import Domain, rows_of_values
from dualquery.estimates.intervals import bounded_interval
from dualquery.mechanisms.adaptive.evidence import Evidence
from dualquery.mechanisms.adaptive.expansion import Expansion
from dualquery.mechanisms.adaptive.measurement import FeatureMeasurement, plan_strategy
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import random_conjunctions, random_marginals

# Binary columns of one bit and of two, and wide ones.
DOMAIN = Domain(np.array([0, 1, 3, 6, 7, 11, 18]))


def workloads() -> list[Workload]:
    """Return queries whose columns are measured by indicators, by contrasts, and by both."""
    repeated = np.array([[7, 9, 0], [7, 9, -1], [7, 13, 0], [0, 4, -1], [3, 22, -1]], np.int32)
    return [
        random_conjunctions(DOMAIN, m=60, way=3, signed=True, seed=3),
        random_marginals(DOMAIN, count=4, way=3, max_cells=1_000, seed=1),
        Workload(repeated, DOMAIN),
    ]


def measured(work: Workload) -> FeatureMeasurement:
    """Return the measurement of a workload's features."""
    expansion = Expansion.of(work).in_blocks()
    strategy = plan_strategy(expansion, Neighbours.REPLACE_ONE, fitted=False)
    return FeatureMeasurement(expansion, strategy)


def records() -> np.ndarray:
    """Return records whose columns depend on each other: uint8, shape (500, bits)."""
    generator = np.random.default_rng(2)
    hidden, values = generator.random(500), []
    for size in DOMAIN.sizes:
        value = np.minimum((hidden / 4 + generator.random(500)) * (size + (size == 1)), 99)
        values.append(value.astype(int) % max(size, 2))
    return rows_of_values(np.stack(values, axis=1), DOMAIN)


def true_means(found: FeatureMeasurement, table: np.ndarray) -> np.ndarray:
    """Return the exact means of the features, from their definition."""
    features = found.strategy.features
    means = np.ones((len(table), len(features)))
    for place, bits in enumerate(features.bits):
        for slot, bit in enumerate(bits[bits >= 0]):
            size, held = int(features.values[place, slot]), table[:, bit].astype(float)
            means[:, place] *= 1 - size * held if features.contrasts[place, slot] else held
    return means.mean(axis=0)


def test_intervals_hold_as_often_as_they_say() -> None:
    """With noise drawn many times; no query is far off, and they are shorter than without."""
    draws, table, generator = 150, records(), np.random.default_rng(5)
    for work in workloads()[:2]:
        found = measured(work)
        means, deviations = true_means(found, table), found.scales * 0.02
        truth = found.answers(means)
        held, widths = np.zeros(len(work)), np.zeros(2)
        for _ in range(draws):
            drawn = Evidence(found, generator.normal(means, deviations), deviations)
            with_guess = drawn.intervals(work)
            usual = bounded_interval(drawn.unbiased, drawn.spread, 0.0, 1.0)
            held += (with_guess.lower <= truth + 1e-12) & (truth <= with_guess.upper + 1e-12)
            both = (with_guess.lower, with_guess.upper), usual
            widths += [(upper - lower).mean() for lower, upper in both]
        noisy = found.deviations(deviations) > 0
        few, many = binom.cdf(held, draws, 0.95), binom.sf(held - 1, draws, 0.95)
        assert (2 * np.minimum(few, many)[noisy] > 0.01 / noisy.sum()).all()
        assert 0.94 < (held / draws)[noisy].mean() < 0.96
        assert widths[0] < 0.97 * widths[1]
