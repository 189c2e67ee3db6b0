"""The shares of the records in the synthetic data, fitted to the draws that the game has shown.

**The likelihood.** After k records a draw shows query q with sign ``+-1`` with
probability ``exp(+-eta (k q(D) - S_q)) / Z``, where ``S_q`` counts the records on which q holds and
Z adds the same over all queries and signs. Everything here but the answers ``q(D)`` is public, so
the draws have a likelihood as a function of the answers. It is log-concave in them (an exponential
family), and answers of the records in shares are linear in the shares: the shares of largest
likelihood are the solution of a concave program. They are shrunk towards equal shares, which
Algorithm 1 takes, by `EQUALITY` times their Kullback-Leibler divergence. All of it is
post-processing.

**The method** is Fisher scoring: the likelihood is replaced by a quadratic function with the same
gradient, whose curvature is that of the exponential family without the part that the normaliser Z
takes away (so it is never too flat), and the penalised maximum of that is found in the space of
shares, by Newton's method. The gradient is exact. The curvature, which only guides the way there,
is estimated from `SKETCH` queries, chosen in proportion to what each adds to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.dualquery import shares_kernels as kernels
from dualquery.mechanisms.dualquery import sketch_kernels as sketch
from dualquery.mechanisms.dualquery.transcript import Transcript
from dualquery.models.mixture import apportion
from dualquery.runtime.progress import NO_PROGRESS
from dualquery.runtime.resources import workers

EQUALITY = 0.05  # weight of the divergence from equal shares, against a draw's log-likelihood
SCORING_STEPS = 3  # quadratic models that are maximised one after the other, at most
SKETCH = 1 << 15  # queries that the curvature is estimated from, heavy ones more than once
REPEATS = 40  # records of the release for each record played: so finely shares are rounded
MOST_CELLS = 1 << 27  # bits of the release, unless those of the records played are more
_PARTS = 8  # partial sums over the queries, fixed so that results do not depend on threads
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
"""Parts of a scoring step that are tried until one makes the draws likelier."""
_NEWTON_STEPS = 60
_LEAST_GAIN = 1e-4  # of a Newton step, as a share of what its slope promises
_FURTHEST = 10.0  # a share changes by a factor of at most ``exp`` of this in a step
_ACCURACY = 1e-9  # gain of a Newton step, in log-likelihood a draw, that is too small to go on

Float64 = NDArray[np.float64]


def likelihood_shares(
    transcript: Transcript,
    first: int = 0,
    threads: int = 1,
    progress: Callable[[int, int], None] = NO_PROGRESS.step,
) -> Float64:
    """Return shares of the records under which the draws are likelier, penalised.

    float64, shape ``(T - first,)``, positive, of sum 1; the ``first`` of the T records get none.
    They are never less likely than equal shares, and close to the likeliest for the policy's steps;
    above a step of about 5 not always. Where weights leave the range of floating point (steps of
    hundreds), they are equal. ``progress`` hears how many of the `SCORING_STEPS` are over.
    """
    likelihood = _Likelihood(transcript, first, threads)
    kept = len(transcript.records) - first
    reached = likelihood.at(np.full(kept, 1.0 / kept))
    for step in range(SCORING_STEPS):
        if not np.isfinite(reached.value):
            break
        best = _penalised_maximum(*likelihood.model(reached), reached.shares)
        # Far away the model may be wrong: then a part of the way is better.
        for length in _LENGTHS:
            found = likelihood.at((1.0 - length) * reached.shares + length * best)
            if found.value >= reached.value:
                reached = found
                break
        else:
            break
        progress(step + 1, SCORING_STEPS)
    return reached.shares


@dataclass(frozen=True, eq=False)
class _Point:
    """Some shares, the answers that they give, and how likely they make the draws."""

    shares: Float64
    answers: Float64
    totals: Float64  # all weights of each round but the first together, if the answers are true
    value: float  # penalised log-likelihood a draw, less a constant; ``-inf`` out of range


class _Likelihood:
    """The draws' likelihood as a function of the shares of the records that are kept."""

    def __init__(self, transcript: Transcript, first: int, threads: int) -> None:
        self._truths = transcript.truths
        self._kept = self._truths[first:]
        self._draws = np.array([len(each.queries) for each in transcript.samples], np.float64)
        self._step = transcript.step
        self._drawn = _drawn(transcript)
        self._padding = 8 * self._truths.shape[1] - len(transcript.queries)
        self._threads = threads

    def at(self, shares: Float64) -> _Point:
        """Return the value of some shares."""
        answers = np.zeros(8 * self._kept.shape[1])
        _in_parts(kernels.add_answers, self._kept, (shares,), [answers] * _PARTS, self._threads)
        answers = answers[: len(self._drawn)]
        totals = self._totals(answers)
        if totals.max(initial=0.0) >= kernels.LARGEST:
            return _Point(shares, answers, totals, -np.inf)
        likely = self._drawn @ answers - self._draws @ np.log(totals)
        uneven = shares @ np.log(shares * len(shares))
        value = likely / max(self._draws.sum(), 1.0) - EQUALITY * uneven
        return _Point(shares, answers, totals, float(value))

    def model(self, point: _Point) -> tuple[Float64, Float64]:
        """Return gradient ``(T,)`` and curvature ``(T, T)`` of the log-likelihood a draw."""
        expected, information = self._moments(point.answers, point.totals)
        sums = np.zeros((_PARTS, len(self._kept)))
        given = (np.pad(self._drawn - expected, (0, self._padding)),)
        _in_parts(kernels.add_sums, self._kept, given, sums, self._threads)
        draws = max(self._draws.sum(), 1.0)
        return sums.sum(axis=0) / draws, _curvature(self._kept, information / draws, self._threads)

    def _totals(self, answers: Float64) -> Float64:
        totals = np.zeros((_PARTS, len(self._draws)))
        given = self._step, np.pad(answers, (0, self._padding))
        _in_parts(kernels.add_totals, self._truths, given, totals, self._threads)
        # What pads the last byte holds on no record and has answer 0: its weight stays 1.
        return np.asarray(totals.sum(axis=0) - 2.0 * self._padding)

    def _moments(self, answers: Float64, totals: Float64) -> tuple[Float64, Float64]:
        """Return mean and second moments of `_drawn`, both ``(m,)``, if ``answers`` are true."""
        padded = np.pad(answers, (0, self._padding))
        expected, information = np.zeros(len(padded)), np.zeros(len(padded))
        given = self._draws / totals, self._step, padded, expected
        _in_parts(kernels.add_moments, self._truths, given, [information] * _PARTS, self._threads)
        return expected[: len(answers)], information[: len(answers)]


def in_shares(records: NDArray[np.uint8], shares: Float64) -> NDArray[np.uint8]:
    """Return records repeated in proportion to their shares, about ``REPEATS`` times on average.

    The copies of any run of records are off by at most one in all: rounding each share on its own
    errs ten times as much on the answers.
    """
    rounds, bits = records.shape
    total = max(rounds, min(REPEATS * rounds, MOST_CELLS // bits))
    return np.repeat(records, apportion(shares, total), axis=0)


def _drawn(transcript: Transcript) -> Float64:
    """Return the derivative of the draws' log-weights in each query's answer: ``(m,)``."""
    total = np.zeros(len(transcript.queries))
    for played, sample in enumerate(transcript.samples, 1):
        np.add.at(total, sample.queries, transcript.step * played * sample.signs)
    return total


def _in_parts(
    add: Callable[..., None],
    truths: NDArray[np.uint8],
    given: tuple[Any, ...],
    sums: Sequence[Float64] | Float64,
    threads: int,
) -> None:
    """Call ``add(truths, first, last, *given, sums[part])`` for parts that make up all queries."""
    ends = (8 * np.linspace(0, truths.shape[1], _PARTS + 1).round()).astype(np.int64).tolist()
    parts = zip(ends[:-1], ends[1:], sums, strict=True)
    _in_turn([partial(add, truths, a, b, *given, each) for a, b, each in parts], threads)


def _in_turn(calls: Sequence[Callable[[], None]], threads: int) -> None:
    """Make calls, as many at a time as there are threads."""
    with workers(threads, len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def _curvature(truths: NDArray[np.uint8], information: Float64, threads: int) -> Float64:
    """Estimate ``sum_q information_q v_q v_q'``, v being which records q holds on: ``(T, T)``."""
    records = len(truths)
    reached = np.cumsum(information)
    # At equal steps of the information, all that are taken weigh the same.
    wanted = (np.arange(SKETCH) + 0.5) * (reached[-1] / SKETCH)
    words = np.empty((records, SKETCH // sketch.WORD), np.uint64)
    sketch.gather_truths(truths, np.searchsorted(reached, wanted), words)
    together = np.empty((records, records))
    # The last tile has most to do.
    tiles = reversed(range(-(-records // sketch.TILE)))
    _in_turn([partial(sketch.count_together, words, tile, together) for tile in tiles], threads)
    together *= reached[-1] / SKETCH
    return together


def _penalised_maximum(gradient: Float64, curvature: Float64, start: Float64) -> Float64:
    """Return the shares that maximise the quadratic model less the penalty."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    shares, diagonal = start, np.diag_indices(len(start))

    def value(shares: Float64) -> float:
        moved = shares - start
        uneven = np.log(shares * len(shares))
        bent = 0.5 * (moved @ curvature @ moved)
        return float(gradient @ moved - bent - EQUALITY * (shares @ uneven))

    reached = value(shares)
    for _ in range(_NEWTON_STEPS):
        uneven = np.log(shares * len(shares))
        slope = gradient - curvature @ (shares - start) - EQUALITY * (uneven + 1.0)
        # In units of the shares' roots the penalty bends alike everywhere.
        roots = np.sqrt(shares)
        bend = np.outer(roots, roots)
        bend *= curvature
        bend[diagonal] += EQUALITY
        try:
            # It equals its transpose, whose order is LAPACK's: no copy is made.
            factor = cho_factor(bend.T, lower=True, overwrite_a=True)
        except LinAlgError:  # a huge curvature, whose rounding errors exceed the penalty
            break
        solved = cho_solve(factor, np.stack((slope * roots, roots), axis=1))
        free, constant = (solved * roots[:, None]).T
        move = free - constant * (free.sum() / constant.sum())
        gain = float(move @ slope)
        if gain < _ACCURACY:
            break
        # Steps are made in the shares' logarithms: none reaches 0, however far it goes.
        length = 1.0
        while (found := value(ahead := _moved(shares, length * move))) < (
            reached + _LEAST_GAIN * length * gain
        ):
            length *= 0.5
            if length < _ACCURACY:  # what it could gain is lost in rounding errors
                return shares
        shares, reached = ahead, found
    return shares


def _moved(shares: Float64, move: Float64) -> Float64:
    """Return shares after a step that in first order is ``move``, in their logarithms."""
    moved = shares * np.exp(np.clip(move / shares, -_FURTHEST, _FURTHEST))
    return np.asarray(moved / moved.sum())
