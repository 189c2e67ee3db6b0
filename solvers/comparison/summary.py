"""What a comparison says: a line a solver, and one paragraph."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from solvers.comparison.runs import Measurement

OWN = ("optimal", "feasible")
"""The statuses with a record of the solver's own."""
EXACT, CLOSE = 1e-9, 0.01
"""Shares of the best known objective within which a record is as good, or within one per cent."""
SHIFT_SECONDS = 0.01
"""Shift of the geometric means of times: differences far below it do not count."""
_WRONG = 1e-5
"""By how much of the best known objective a bound below it is wrong, and no matter of rounding."""


@dataclass(frozen=True)
class SolverSummary:
    """One solver over all problems.

    Times are geometric means shifted by 10 ms, over all problems that any solver has a record of.
    One where the solver never got there counts with the longest limit, so that no solver gains by
    failing on the hard ones.

    Parameters
    ----------
    solver
        Its name.
    instances
        How many problems it was run on.
    solved
        On how many it found a record as good as the best known.
    within_1_percent
        On how many its record's objective came within 1% of the best known.
    proven
        On how many it proved its record optimal.
    failed
        On how many it had no record of its own, refused, crashed or did not come back.
    wrong
        On how many some record beats the bound that it stated.
    first_seconds, incumbent_seconds, close_seconds, proof_seconds
        Seconds to the first record that was seen, to the best known objective, to within 1% of it,
        and to the proof; None if it got there on no problem.
    gap
        Mean distance from the best known objective at the full limit, as a share of it. A problem
        without a record of its own counts as 1.
    bound_gap
        Mean distance of the bound from the best known objective, as a share of it. A problem
        without a bound counts as 1; None if there never was one.
    memory_mib
        The most that its process grew in a call; None if unknown.
    overrun_seconds
        The most that a call took beyond its limit.
    """

    solver: str
    instances: int
    solved: int
    within_1_percent: int
    proven: int
    failed: int
    wrong: int
    first_seconds: float | None
    incumbent_seconds: float | None
    close_seconds: float | None
    proof_seconds: float | None
    gap: float
    bound_gap: float | None
    memory_mib: float | None
    overrun_seconds: float


def best_known(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Return the best objective of any call by problem; problems that nobody solved are left out.

    The local search that replaces a solver's missing record counts too: it is a record.
    """
    best: dict[str, float] = {}
    for each in measurements:
        if each.objective > best.get(each.instance, -math.inf):
            best[each.instance] = each.objective
    return best


def distance(objective: float, best: float) -> float:
    """Return how far an objective is from the best known one, as a share of that, at most 1."""
    if objective == best:
        return 0.0
    return min(abs(best - objective) / max(abs(best), 1e-300), 1.0)


def time_to(measurements: Iterable[Measurement], best: float, share: float) -> float | None:
    """Return the least seconds in which a record came within a share of the best known."""
    reached = [
        each.incumbent_seconds
        for each in measurements
        if each.status in OWN and distance(each.objective, best) <= share
    ]
    return min(reached, default=None)


def proof_time(measurements: Iterable[Measurement]) -> float | None:
    """Return the least seconds of a call that ended with a proof."""
    return min((each.seconds for each in measurements if each.status == "optimal"), default=None)


def primal_integral(measurements: Iterable[Measurement], best: float, limit: float) -> float:
    """Return the mean distance from the best known objective over the time limit, at most 1.

    The primal integral of Berthold ("Measuring the impact of primal heuristics", 2013) as a share
    of the limit: 1 before the first record, then the distance of the best record so far. Records
    are seen where a call ended with them, so this is an upper bound.

    Parameters
    ----------
    measurements
        One solver's calls on one problem.
    best
        The best known objective.
    limit
        Seconds.
    """
    found = sorted(
        (each.incumbent_seconds, distance(each.objective, best))
        for each in measurements
        if each.status in OWN
    )
    total, since, gap = 0.0, 0.0, 1.0
    for seconds, reached in found:
        until = min(seconds, limit)
        total += gap * (until - since)
        since, gap = until, min(gap, reached)
    return (total + gap * (limit - since)) / limit


def by_instance(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """Return one solver's calls by problem, the limits ascending."""
    found: dict[str, list[Measurement]] = defaultdict(list)
    for each in measurements:
        found[each.instance].append(each)
    return {name: sorted(each, key=lambda call: call.limit) for name, each in found.items()}


def summarise(measurements: Sequence[Measurement]) -> list[SolverSummary]:
    """Return one summary a solver, in the order in which they were run."""
    best = best_known(measurements)
    limit = max((each.limit for each in measurements), default=0.0)
    names = list(dict.fromkeys(each.solver for each in measurements))
    return [
        _summary(name, [each for each in measurements if each.solver == name], best, limit)
        for name in names
    ]


def _summary(
    name: str, calls: list[Measurement], best: dict[str, float], limit: float
) -> SolverSummary:
    runs = by_instance(calls)
    first = [time_to(run, best[key], math.inf) for key, run in runs.items() if key in best]
    exact = [time_to(run, best[key], EXACT) for key, run in runs.items() if key in best]
    close = [time_to(run, best[key], CLOSE) for key, run in runs.items() if key in best]
    proofs = [proof_time(run) for key, run in runs.items() if key in best]
    last = {key: run[-1] for key, run in runs.items()}
    bounds = {key: call.bound for key, call in last.items() if key in best}
    bounded = any(math.isfinite(bound) for bound in bounds.values())
    bound_gaps = [distance(bound, best[key]) for key, bound in bounds.items()]
    gaps = [
        distance(call.objective, best[key]) if call.status in OWN else 1.0
        for key, call in last.items()
        if key in best
    ]
    overruns = [call.seconds - call.limit for call in calls if math.isfinite(call.seconds)]
    return SolverSummary(
        solver=name,
        instances=len(runs),
        solved=_count(exact),
        within_1_percent=_count(close),
        proven=_count(proofs),
        failed=sum(call.status not in OWN for call in last.values()),
        wrong=sum(bound < best[key] - _WRONG * abs(best[key]) for key, bound in bounds.items()),
        first_seconds=_mean_time(first, limit),
        incumbent_seconds=_mean_time(exact, limit),
        close_seconds=_mean_time(close, limit),
        proof_seconds=_mean_time(proofs, limit),
        gap=fmean(gaps) if gaps else 1.0,
        bound_gap=fmean(bound_gaps) if bounded else None,
        memory_mib=max((c.memory_mib for c in calls if c.memory_mib is not None), default=None),
        overrun_seconds=max([0.0, *overruns]),
    )


def _count(times: list[float | None]) -> int:
    return sum(time is not None for time in times)


def _mean_time(times: list[float | None], limit: float) -> float | None:
    """Return the shifted geometric mean, what is missing counted as the limit."""
    if not _count(times):
        return None
    logarithms = [math.log(SHIFT_SECONDS + (limit if t is None else t)) for t in times]
    return math.exp(fmean(logarithms)) - SHIFT_SECONDS


def advice(summaries: Sequence[SolverSummary], limit: float) -> str:
    """Return one paragraph that says which solver to use when, from what was measured.

    Parameters
    ----------
    summaries
        One a solver.
    limit
        The longest time limit, seconds.
    """
    if not summaries:
        return "Nothing was measured."
    total = max(each.instances for each in summaries)
    prover = min(summaries, key=lambda s: (s.wrong, -s.proven, _or_inf(s.proof_seconds)))
    quick = min(summaries, key=lambda s: (-s.within_1_percent, _or_inf(s.close_seconds)))
    parts = [
        f"Measured on {total} problem{'s' * (total > 1)} with at most {limit:g} s a call; times "
        "are geometric means shifted by 10 ms, and what was not reached counts as the limit."
    ]
    if prover.proof_seconds is None:
        parts.append("No solver proved an optimum: raise the limit if proofs matter.")
    else:
        parts.append(
            f"For a proof take {prover.solver}: it proved {_of(prover.proven, total)}, in "
            f"{_seconds(prover.proof_seconds)} on average."
        )
    if quick.close_seconds is not None:
        parts.append(
            f"For a good record soon take {quick.solver}: it was within 1% of the best known on "
            f"{_of(quick.within_1_percent, total)}, after {_seconds(quick.close_seconds)} on "
            "average."
        )
    for each in summaries:
        if each.wrong:
            on = _of(each.wrong, each.instances)
            parts.append(
                f"Do not trust {each.solver}: on {on} a record beats the bound that it stated."
            )
        if each.failed:
            on = _of(each.failed, each.instances)
            parts.append(f"{each.solver} had no record of its own on {on}.")
        if each.overrun_seconds > max(0.5, 0.1 * limit):
            over = _seconds(each.overrun_seconds)
            parts.append(f"{each.solver} took up to {over} beyond its limit.")
    return " ".join(parts)


def _or_inf(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _of(count: int, total: int) -> str:
    return f"all {total}" if count == total > 1 else f"{count} of {total}"


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
