"""What a comparison says: a line a solver."""

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
_WRONG = 1e-5  # relative shortfall at which a bound counts as wrong


@dataclass(frozen=True)
class SolverSummary:
    """One solver over all problems.

    Times are geometric means shifted by 10 ms, over all problems that any solver has a record of;
    None if it got there on no problem. One where the solver never got there counts with the longest
    limit, so that no solver gains by failing on the hard ones. Counts are of problems: ``solved``
    as well as the best known, ``failed`` without a record of its own, ``wrong`` where some record
    beats the bound that it stated. ``gap`` and ``bound_gap`` are mean distances from the best known
    objective at the full limit, as shares of it, 1 without a record or bound of its own.
    ``overrun_seconds`` is the most that a call took beyond its limit.
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

    The primal integral of Berthold ("Measuring the impact of primal heuristics", 2013) of one
    solver's calls on one problem, as a share of the limit: 1 before the first record, then the
    distance of the best record so far. Records are seen where a call ended with them, so this is an
    upper bound.
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
    known = {key: run for key, run in runs.items() if key in best}
    first, exact, close = (
        [time_to(run, best[key], share) for key, run in known.items()]
        for share in (math.inf, EXACT, CLOSE)
    )
    proofs = [proof_time(run) for run in known.values()]
    bounds = [(run[-1].bound, best[key]) for key, run in known.items()]
    gaps = [
        distance(run[-1].objective, best[key]) if run[-1].status in OWN else 1.0
        for key, run in known.items()
    ]
    bounded = any(math.isfinite(bound) for bound, _ in bounds)
    return SolverSummary(
        solver=name,
        instances=len(runs),
        solved=_count(exact),
        within_1_percent=_count(close),
        proven=_count(proofs),
        failed=sum(run[-1].status not in OWN for run in runs.values()),
        wrong=sum(bound < value - _WRONG * abs(value) for bound, value in bounds),
        first_seconds=_mean_time(first, limit),
        incumbent_seconds=_mean_time(exact, limit),
        close_seconds=_mean_time(close, limit),
        proof_seconds=_mean_time(proofs, limit),
        gap=fmean(gaps) if gaps else 1.0,
        bound_gap=fmean(distance(*each) for each in bounds) if bounded else None,
        overrun_seconds=max([0.0, *(c.seconds - c.limit for c in calls if c.seconds < math.inf)]),
    )


def _count(times: list[float | None]) -> int:
    return sum(time is not None for time in times)


def _mean_time(times: list[float | None], limit: float) -> float | None:
    """Return the shifted geometric mean, what is missing counted as the limit."""
    if not _count(times):
        return None
    logarithms = [math.log1p((limit if t is None else t) / SHIFT_SECONDS) for t in times]
    return SHIFT_SECONDS * math.expm1(fmean(logarithms))
