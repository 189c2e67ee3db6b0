"""The shares of the records in the synthetic data, fitted to the draws that the game has shown.

**The likelihood.** After k records (of one step each) a draw shows query q with sign ``+-1`` with
probability ``exp(+-eta (k q(D) - S_q)) / Z``, where ``S_q`` counts the records on which q holds and
Z adds the same over all queries and signs. Everything here but the answers ``q(D)`` is public, so
the draws have a likelihood as a function of the answers. It is log-concave in them (an exponential
family), and answers of a mixture of the records are linear in the shares: the shares of largest
likelihood are the solution of a concave program. They are drawn towards equal shares, which
Algorithm 1 takes, by `EQUALITY` times their Kullback-Leibler divergence. All of it is
post-processing.

**The method** is Fisher scoring: the likelihood is replaced by a quadratic function with the same
gradient, whose curvature is that of the exponential family without the part that the normaliser Z
takes away (so it is never too flat), and the penalised maximum of that is found in the space of
shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dualquery.game.transcript import Transcript

EQUALITY = 0.2
"""Weight of the divergence from equal shares, against the mean log-likelihood of a draw. Found on
Adult, mushroom and groceries; anything from 0.03 to 0.3 gives errors within 10 percent."""
SCORING_STEPS = 2
REPEATS = 10
"""Records of the release for each record played: so finely shares are rounded."""
MOST_CELLS = 1 << 27
"""Wide records are repeated less often: the release holds at most so many bits, or every record
once."""
_BLOCK = 1 << 14
"""Queries whose answers on all records are unpacked at a time."""


def likelihood_shares(transcript: Transcript, first: int = 0) -> NDArray[np.float64]:
    """Return the shares of the records under which the draws are likeliest, penalised.

    Parameters
    ----------
    transcript
        A game of T rounds.
    first
        So many first records get no share; below T.

    Returns
    -------
    float64, shape ``(T - first,)``, positive, of sum 1.
    """
    kept = transcript.truths[first:]
    draws = sum(len(sample.queries) for sample in transcript.samples)
    shares = np.full(len(kept), 1.0 / len(kept))
    drawn = _drawn(transcript)
    for _ in range(SCORING_STEPS):
        expected, information = _moments(transcript, _answers(kept, shares, transcript.queries))
        gradient, curvature = _in_shares(kept, drawn - expected, information)
        shares = _penalised_maximum(gradient / draws, curvature / draws, shares)
    return shares


def in_shares(records: NDArray[np.uint8], shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return records repeated in proportion to their shares, rounded by largest remainder.

    Parameters
    ----------
    records
        uint8, shape ``(T, d)``.
    shares
        float64, shape ``(T,)``, of sum 1.

    Returns
    -------
    uint8, shape ``(r, d)``; r is about ``REPEATS`` T, less where records are wide.
    """
    rounds, bits = records.shape
    total = max(rounds, min(REPEATS * rounds, MOST_CELLS // bits))
    exact = shares * total
    copies = np.floor(exact).astype(np.int64)
    largest = np.argsort(copies - exact, kind="stable")[: total - int(copies.sum())]
    copies[largest] += 1
    return np.repeat(records, copies, axis=0)


def _drawn(transcript: Transcript) -> NDArray[np.float64]:
    """Return the derivative of the draws' log-weights in each query's answer: ``(m,)``."""
    total = np.zeros(transcript.queries)
    for steps, sample in zip(accumulate(transcript.multiples), transcript.samples, strict=False):
        signs = np.bincount(sample.queries, sample.signs, minlength=transcript.queries)
        total += transcript.step * steps * signs
    return total


def _moments(
    transcript: Transcript, answers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and second moments of `_drawn`, both ``(m,)``, if ``answers`` are true."""
    queries, step = len(answers), transcript.step
    expected, information = np.zeros(queries), np.zeros(queries)
    hits = np.zeros(queries)
    steps = 0
    for sample, truth, multiple in zip(
        transcript.samples, transcript.truths, transcript.multiples, strict=False
    ):
        steps += multiple
        hits += multiple * np.unpackbits(truth, count=queries)
        log_weight = step * (steps * answers - hits)
        largest = np.abs(log_weight).max()
        own, complement = np.exp(log_weight - largest), np.exp(-log_weight - largest)
        scale = len(sample.queries) * step * steps / (own.sum() + complement.sum())
        expected += scale * (own - complement)
        information += scale * step * steps * (own + complement)
    return expected, information


def _answers(
    truths: Sequence[NDArray[np.uint8]], shares: NDArray[np.float64], queries: int
) -> NDArray[np.float64]:
    """Return the answers of the mixture: ``(m,)``."""
    answers = np.zeros(queries)
    for truth, share in zip(truths, shares, strict=True):
        answers += share * np.unpackbits(truth, count=queries)
    return answers


def _in_shares(
    truths: Sequence[NDArray[np.uint8]],
    slope: NDArray[np.float64],
    information: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return gradient ``(T,)`` and curvature ``(T, T)`` in the shares from those in answers."""
    packed = np.stack(truths)
    gradient = np.zeros(len(truths))
    curvature = np.zeros((len(truths), len(truths)))
    for start in range(0, len(slope), _BLOCK):
        block = slice(start, start + _BLOCK)
        count = len(slope[block])
        bits = packed[:, start // 8 : start // 8 + -(-count // 8)]
        values = np.unpackbits(bits, axis=1, count=count).astype(np.float64)
        gradient += values @ slope[block]
        curvature += (values * information[block]) @ values.T
    return gradient, curvature


def _penalised_maximum(
    gradient: NDArray[np.float64], curvature: NDArray[np.float64], start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the shares that maximise the quadratic model less the penalty."""
    from scipy.optimize import minimize

    def shares_of(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.exp(parameters - parameters.max())
        return np.asarray(weights / weights.sum())

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        shares = shares_of(parameters)
        moved = shares - start
        bent = curvature @ moved
        uneven = np.log(np.maximum(shares * len(shares), 1e-300))
        value = gradient @ moved - 0.5 * (moved @ bent) - EQUALITY * (shares @ uneven)
        slope = gradient - bent - EQUALITY * (uneven + 1.0)
        return -float(value), -shares * (slope - shares @ slope)

    # The tolerances are those of the loss, a log-likelihood a draw, of the order of 0.1.
    options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-8}
    found = minimize(loss, np.log(start), jac=True, method="L-BFGS-B", options=options)
    return shares_of(found.x)
