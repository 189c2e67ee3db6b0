"""What the events of a release cost, computed anew: nothing of the program is used.

``zcdp`` (Canonne et al. 2020, Corollary 13), ``advanced`` (Dwork et al. 2010, Theorem III.3) and
``paper`` (Gaboardi et al. 2014, Theorem 4.1) are as printed. By others Gaussian noise alone has a
closed form (Balle and Wang 2018, Theorem 8), all else `_recursion`. All are upper bounds.
"""

import math
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_EVENTS, MOST_DRAWS = 1 << 22, 1_000_000
FEW_DRAWS, MOST_STEPS, GRIDS = 16, 2_000, (1, 2, 4)
Floats = NDArray[np.float64]
Event = tuple[str, float, int]  # kind; range (draws), sensitivity / scale, or epsilon; how often


def events_of(schedule: list[dict[str, Any]]) -> Iterator[Event]:
    """Return the events in their order."""
    left = MOST_EVENTS
    for run in schedule:
        entries = [*islice(run["events"], left + 1)]
        own = [*islice(chain.from_iterable(map(_expanded, entries)), left + 1)]
        left -= max(len(own), len(entries)) * run["times"]
        if left < 0 or run["times"] < 1:
            raise ValueError("too many events, or a run of none")
        yield from own * run["times"]


def _expanded(event: dict[str, Any]) -> Iterator[Event]:
    if (kind := event["kind"]) == "game":
        # A record seen moves log-weights by step / rows, up and down if replaced; 2^-42: rounding.
        own = {"replace-one": 2, "add-remove": 1}[event["neighbours"]]
        each = own * max(1, event.get("rows_per_unit", 1)) * event["step"]
        for seen in range(1, min(event["rounds"], MOST_EVENTS + 2)):
            yield _event("draws", each * seen / event["rows"] + 2.0**-42, event["samples"])
    elif kind == "draws":
        yield _event(kind, event["range"], event["draws"])
    elif kind in ("gaussian", "thresholded"):
        yield _event("gaussian", event["sensitivity"] / event["scale"], 1)
    else:
        yield _event({"pure": "pure", "report": "pure"}[kind], event["epsilon"], 1)


def _event(kind: str, cost: float, draws: int) -> Event:
    if not 0 < cost < math.inf or type(draws) is not int or not 1 <= draws <= MOST_DRAWS:
        raise ValueError(f"{kind} of {cost!r}, {draws!r} times")
    return kind, cost, draws


def bound(
    events: list[Event], schedule: list[dict[str, Any]], name: str, delta: float, aim: float
) -> float:
    """Return an epsilon proven at ``delta`` by ``name``; grids get finer to reach ``aim``."""
    if not 0 <= delta < 1:
        raise ValueError(f"delta {delta!r}")
    pure = math.fsum(math.inf if kind == "gaussian" else e * s for kind, e, s in events)
    if not events or delta == 0 or (name == "advanced" and pure == math.inf):
        return pure
    if name == "advanced":
        drift = math.fsum(s * e * math.expm1(min(e, 700)) for _, e, s in events)
        squares = math.fsum(s * e * e for _, e, s in events)
        return min(pure, drift + math.sqrt(-2 * math.log(delta) * squares))
    rho = math.fsum((1 / 8 if kind == "draws" else 1 / 2) * e * e * s for kind, e, s in events)
    if name == "zcdp" or (name == "exact" and delta < 1e-30):
        return _zcdp(rho, delta)
    if name == "paper":
        ((game,),) = (run["events"] for run in schedule)
        draws, root = game["samples"] * game["rounds"], math.sqrt(-2 * math.log(delta))
        each = 2 * game["step"] * game["rounds"] / game["rows"]
        if math.sqrt(draws) * math.expm1(min(each, 700)) > root or events[-1][1] > each:
            raise ValueError("Theorem 4.1 does not follow from Lemma 2.3 for this game")
        return float(2 * each * math.sqrt(draws) * root)
    if len(events) > 5_000 or rho > 50 or delta < 1e-30:
        return min(pure, _zcdp(rho, delta))  # beyond the recursion
    # Gaussian noise is drawn on a grid, which costs 2^-35 of epsilon and 2^-48 of delta.
    noisy = sum(kind == "gaussian" for kind, _, _ in events)
    slack, left = 2.0**-35 * noisy, delta / (1 + 2.0**-48 * noisy) - 1e-300 * (noisy > 0)
    if noisy == len(events):
        return slack + _one_gaussian(math.sqrt(2 * rho), left)
    for fine in GRIDS:
        found = min(pure, slack + _recursion(events, rho, pure, left, fine))
        if found <= aim or found > 1.02 * aim:
            break
    return found


def _one_gaussian(shift: float, delta: float) -> float:
    """Return the epsilon of one Gaussian, to which Gaussian noises alone compose."""
    from scipy.special import log_ndtr

    def curve(epsilon: float) -> float:
        here, there = (log_ndtr(half - epsilon / shift) for half in (shift / 2, -shift / 2))
        return math.exp(here) * -math.expm1(min(0.0, epsilon + there - here))

    low, high = 0.0, shift * (shift / 2 + math.sqrt(-2 * math.log(delta)))
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return high if curve(0.0) > delta else 0.0


def _zcdp(rho: float, delta: float) -> float:
    """Return the smallest epsilon that rho-zCDP implies at ``delta``; orders are 1 + exp(u)."""
    from scipy.optimize import minimize_scalar

    def epsilon(u: float) -> float:
        order, above = 1 + math.exp(u), math.exp(u)
        return order * rho + math.log1p(-1 / order) - math.log(delta * order) / above

    guess = 0.5 * math.log(-math.log(delta) / rho)
    found = minimize_scalar(epsilon, bounds=(guess - 8, guess + 8), options={"xatol": 1e-9})
    return max(0.0, float(found.fun))


def _recursion(events: list[Event], rho: float, pure: float, delta: float, fine: int) -> float:
    """Return an epsilon of events that an adversary chooses one after the other."""
    # V(e) is the residual delta at threshold e: 1 - exp(e), at least 0, after the last event;
    # before one, the largest mean of V(e - loss) over pairs it may have (dominating ones compose
    # adaptively: Zhu, Dong and Wang 2022, Theorem 10). Each V is convex and falls in exp(e), so a
    # loss between two grid points may be split between them, keeping the means of 1 and exp(-loss):
    # that raises V. A draw of range r has losses t and t - r for a t that the adversary chooses
    # (Dong, Durfee and Rogers 2020): anew for each of a few draws, else once for all, where t in
    # [a, b] is no worse than the losses b and a - r. ``rho``, the cost in zCDP, sets the grid.
    draws = [draws for kind, _, draws in events if kind == "draws"]
    few = FEW_DRAWS if sum(each for each in draws if each < FEW_DRAWS) <= MOST_STEPS else 0
    steps = sum(each if each < few else 1 for _, _, each in events)
    points = max(300.0 if min(draws, default=few) < few else 100.0, math.sqrt(50 * steps))
    deviation = math.sqrt(2 * rho)
    step = deviation / points / fine
    far = min(pure, rho + deviation * math.sqrt(2 * math.log(1e4 / delta)))
    first, last = -math.ceil(min(4 * deviation, pure) / step) - 1, math.ceil(far / step) + 1
    grid, cuts = step * np.arange(first, last + 1), _cuts(sum(draws), fine)
    values = -np.expm1(np.minimum(grid, 0.0))
    for kind, cost, times in reversed(events):
        if kind == "gaussian":
            values = _before(values, step, *_gaussian(cost, step))
        elif kind == "draws" and times < few:
            for _ in range(times):
                values = _before_one(values, step, cost * (1 + 1e-12))
        else:
            # A pure mechanism is one draw of twice the range whose t is in the middle.
            width, own = (cost, cuts) if kind == "draws" else (2 * cost, np.array([0.5, 0.5]))
            values = _before(values, step, *_losses(width * (1 + 1e-12), times, own, step))
    values = values[-first:] * (1 + 1e-9)
    if not values[-1] <= delta < values[0]:
        return 0.0 if delta >= values[0] else math.inf
    right = int(np.argmax(values <= delta))
    share = (values[right - 1] - delta) / (values[right - 1] - values[right])
    return step * (right - 1) + math.log1p(share * math.expm1(step))


def _before_one(values: Floats, step: float, width: float) -> Floats:
    """Return V before one draw. With a = exp(-t), R = exp(width), V is linear in a at both ends."""
    # So its mean is C - A a - B / a between two places where t or width - t passes a grid point,
    # with A = R (right slope - left slope) / (R - 1) and B = (left - right intercept) / (R - 1),
    # both at least 0 as V is convex: it is largest at a = sqrt(B / A), or at an end.
    size, points = math.ceil(width / step) + 2, len(values)
    padded = _padded(values, step, size, size)
    marks = step * np.arange(1, math.ceil(width / step))
    ends = np.unique(np.concatenate(([0.0, width], marks, width - marks)).clip(0.0, width))
    best, slopes = values, np.diff(padded)
    for low, high in pairwise(ends):
        middle = (low + high) / 2
        left, right = -math.floor(middle / step) - 1, math.floor((width - middle) / step)
        near, far = math.exp(left * step), math.exp(right * step)
        steep, flat = (slopes[size + at :][:points] for at in (left, right))
        steep, flat = steep / (near * math.expm1(step)), flat / (far * math.expm1(step))
        start, goal = (padded[size + at :][:points] for at in (left, right))
        gap = np.maximum(math.exp(width) * (flat - steep), 1e-300)
        apart = np.maximum((start - steep * near) - (goal - flat * far), 0.0)
        t = np.clip(-0.5 * np.log(np.maximum(apart / gap, 1e-300)), low, high)
        here, there = start + steep * (np.exp(-t) - near), goal + flat * (np.exp(width - t) - far)
        best = np.maximum(best, there + np.expm1(t - width) / math.expm1(-width) * (here - there))
    return np.asarray(np.minimum(1.0, best))


def _cuts(draws: int, fine: int) -> Floats:
    """Return where [0, 1], the places of t, is cut: finely in the middle, where t costs most."""
    excess, longest = 0.002 / fine**2, max(0.001, 1e-4 * draws**0.5) / fine
    right = [(math.sqrt(1 + excess) - 1) / 2]
    while (x := right[-1]) < 0.5:
        right.append(min(0.5, x + min((excess / 4 + x * x / 4) / (0.5 - x), longest)))
    return np.array([*(0.5 - x for x in reversed(right)), *(0.5 + x for x in right)])


def _losses(width: float, draws: int, cuts: Floats, step: float) -> tuple[Floats, int, float]:
    """Return the chances of losses on the grid, a row a piece; the first point; what is beyond."""
    from scipy.special import gammaln

    high, low = cuts[1:, None] * width, (cuts[:-1, None] - 1) * width
    chance = np.expm1(low) / np.expm1(low - high)
    # What is beyond 16 deviations counts as an infinite loss (Hoeffding's inequality).
    reach = min(draws, math.ceil(8 * math.sqrt(draws)) + 1)
    wide = min(draws, 2 * reach) + 1
    k = np.clip(np.floor(draws * chance) - reach, 0, draws - wide + 1) + np.arange(wide)
    log = k * np.log(chance) + (draws - k) * np.log1p(-chance) - gammaln(k + 1)
    chances = np.exp(log - gammaln(draws - k + 1) + gammaln(draws + 1))
    chances /= chances.sum(axis=1, keepdims=True)
    loss = (k * high + (draws - k) * low) / step
    point = np.floor(loss)
    upper = chances * (np.expm1((point - loss) * step) / math.expm1(-step))
    first, size = int(point.min()), int(point.max() - point.min()) + 2
    at = ((point - first) + size * np.arange(len(k))[:, None]).astype(np.int64).ravel()
    both: Floats = np.bincount(at, (chances - upper).ravel(), size * len(k)).astype(float)
    both += np.bincount(at + 1, upper.ravel(), size * len(k))
    return both.reshape(-1, size), first, math.exp(-127) if wide <= draws else 0.0


def _gaussian(shift: float, step: float) -> tuple[Floats, int, float]:
    """Return the same of Gaussian noise: its losses have mean shift^2 / 2 and deviation shift."""
    from scipy.special import ndtr

    first, last = (math.floor(shift * (shift / 2 + end) / step) for end in (-16, 16))
    ends = step * np.arange(first, last + 2)
    # Chances of the cells by both laws, exact in the tail on the right, where losses are large.
    own, other = (-np.diff(ndtr(-ends / shift + half)) for half in (shift / 2, -shift / 2))
    upper = np.clip((own - other * np.exp(ends[:-1])) / -math.expm1(-step), 0.0, own)
    return (np.append(own - upper, 0.0) + np.append(0.0, upper))[None], first, math.exp(-127)


def _padded(values: Floats, step: float, below: int, above: int) -> Floats:
    """Return V on more points: left of the grid it is the chord from 1, right of it the last."""
    chord = 1 - (1 - values[0]) * np.exp(step * np.arange(-below, 0))
    return np.concatenate((chord, values, np.full(above, values[-1])))


def _before(values: Floats, step: float, chances: Floats, first: int, rest: float) -> Floats:
    """Return V before an event with one of some distributions of losses."""
    size, last = chances.shape[1], first + chances.shape[1] - 1
    below = max(last, 0)
    padded = _padded(values, step, below, max(-first, 0))
    padded = padded[below - last : below - first + len(values)]
    if len(chances) == 1:
        return np.minimum(1.0, np.convolve(padded, chances[0], "valid") + rest)
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(padded, size))
    return np.asarray(np.minimum(1.0, (windows @ chances[:, ::-1].T).max(axis=1) + rest))
