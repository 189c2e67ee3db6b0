"""Compiled inner loops of the exact accountant; :mod:`dualquery.privacy.accountants.exact` has the
proofs.

A privacy profile lives on the grid ``m * step``, m = first, ..., first + len - 1. For m >= 0 an
entry is delta(m * step); for m < 0 it is delta(m * step) - (1 - exp(m * step)), which is small
where delta is close to 1. Either way an entry is a sum of positive terms with no cancellation, so
its error is relative.
"""

import math

from dualquery.runtime.array_types import Array, kernel

_NEGLIGIBLE = 1e-34
"""Binomial terms below this share of the largest are bounded by a geometric series, not summed."""


@kernel("void(int64, float64, float64, float64, int64, float64[::1], float64[::1])")
def raise_to_two_point(
    draws: int, high: float, low: float, step: float, first: int, profile: Array, terms: Array
) -> None:
    """Raise ``profile`` in place to the profile of ``draws`` independent two-point pairs.

    ``high > 0 > low`` are the two privacy losses of one copy; ``step`` and ``first`` the profile's
    grid; ``terms`` is work space of ``draws + 1`` numbers.
    """
    width = high - low
    success = math.expm1(low) / math.expm1(-width)
    failure = math.exp(low) * math.expm1(-high) / math.expm1(-width)
    odds = success / failure
    shrink = math.exp(-width)
    gap = -math.expm1(-width)
    mode = min(int((draws + 1) * success), draws)

    # P(k) relative to P(mode), outward until the rest is negligible under P on the right (where
    # the loss is large) and under Q = P exp(-loss) on the left.
    terms[mode] = 1.0
    total = 1.0
    right = mode
    while right < draws and terms[right] > _NEGLIGIBLE:
        terms[right + 1] = terms[right] * odds * (draws - right) / (right + 1)
        right += 1
        total += terms[right]
    left = mode
    under_q = 1.0
    while left > 0 and under_q > _NEGLIGIBLE:
        ratio = left / ((draws - left + 1) * odds)
        terms[left - 1] = terms[left] * ratio
        under_q *= ratio / shrink
        left -= 1
        total += terms[left]

    beyond_right = 0.0
    if right < draws:
        ratio = odds * (draws - right) / (right + 1)
        beyond_right = terms[right] * ratio / (1.0 - ratio) / total
    beyond_left = 0.0
    if left > 0:
        ratio = left / ((draws - left + 1) * odds) / shrink
        loss = left * high + (draws - left) * low
        beyond_left = terms[left] * math.exp(-loss) * ratio / (1.0 - ratio) / total

    # Right to left: `above` is sum P (1 - exp(loss_k - loss)) over losses above loss_k, `mass` the
    # probability of losses >= loss_k.
    m = first + len(profile) - 1
    above = 0.0
    mass = 0.0
    k = right + 1
    while m >= 0:
        point = m * step
        while k > left and (k - 1) * high + (draws - k + 1) * low > point:
            above = gap * mass + shrink * above
            k -= 1
            mass += terms[k] / total
        value = beyond_right
        if k <= right:
            distance = point - (k * high + (draws - k) * low)
            value += -math.expm1(distance) * mass + math.exp(distance) * above
        if value > profile[m - first]:
            profile[m - first] = value
        m -= 1

    # Left to right: `below` is sum P (exp(loss_k - loss) - 1) over losses below loss_k.
    growth = math.expm1(width)
    below = 0.0
    mass = 0.0
    k = left - 1
    for m in range(first, 0):
        point = m * step
        while k < right and (k + 1) * high + (draws - k - 1) * low < point:
            below = growth * mass + (1.0 + growth) * below
            k += 1
            mass += terms[k] / total
        value = beyond_left * math.exp(point)
        if k >= left:
            distance = point - (k * high + (draws - k) * low)
            value += math.expm1(distance) * mass + math.exp(distance) * below
        if value > profile[m - first]:
            profile[m - first] = value


@kernel("void(int64, float64[::1], float64[::1], float64, int64, float64[::1], float64[::1])")
def raise_to_two_points(
    draws: int, highs: Array, lows: Array, step: float, first: int, profile: Array, terms: Array
) -> None:
    """Do as `raise_to_two_point` for one pair of losses after another: ``(pieces,)`` each."""
    for piece in range(len(highs)):
        raise_to_two_point(draws, highs[piece], lows[piece], step, first, profile, terms)


@kernel("void(float64[::1], float64, int64, int64, float64[::1])")
def _extend(values: Array, step: float, below: int, above: int, padded: Array) -> None:
    """Write ``values`` to ``padded`` after ``below`` and before ``above`` upper bounds of V."""
    # V is at most the chord from V(y = 0) = 1 below the grid, and at most its last value above.
    points = len(values)
    for i in range(below):
        padded[i] = 1.0 - (1.0 - values[0]) * math.exp((i - below) * step)
    for i in range(points):
        padded[below + i] = values[i]
    for i in range(above):
        padded[below + points + i] = values[points - 1]


@kernel("void(float64[::1], int64, float64, float64[::1])")
def profile_to_losses(profile: Array, first: int, step: float, weights: Array) -> None:
    """Turn a profile into the loss distribution that has it, linear in exp(epsilon) between points.

    The grid has ``first < 0`` and its last point above 0. ``weights`` gets the probability of each
    loss on it; what is missing to 1 is that of an infinite loss, ``profile[-1]``.
    """
    points = len(profile)
    spread = math.expm1(step)
    # Slopes in y = exp(epsilon) times y. Left of the first point delta is 1 - y + slope * y.
    previous = profile[0]
    for i in range(points):
        m = first + i
        slope = 0.0
        if i + 1 < points:
            slope = (profile[i + 1] - profile[i]) / spread
        weight = slope - previous
        if m == 0:
            # Left of 0 the stored entries are measured from 1 - y, whose slope is -1.
            weight += 1.0
        weights[i] = max(weight, 0.0)
        previous = slope * math.exp(step)


@kernel("void(float64[::1], float64, float64[::1], int64, float64, float64[::1], float64[::1])")
def expect(
    values: Array, step: float, weights: Array, first: int, infinite: float, before: Array,
    padded: Array,
) -> None:  # fmt: skip
    """Write the mean of ``values`` after one random loss to ``before``.

    ``values`` is V on consecutive points of a grid of spacing ``step``. The loss is
    ``(first + i) * step`` with probability ``weights[i]``, infinite with ``infinite``: ``before``
    is ``infinite + sum_i weights[i] * V(point - (first + i) * step)``. ``padded`` is work space of
    ``points + len(weights) - 1`` numbers.
    """
    points = len(values)
    kernel = len(weights)
    _extend(values, step, first + kernel - 1, -first, padded)
    for j in range(points):
        before[j] = infinite
    for i in range(kernel):
        weight = weights[i]
        shifted = padded[kernel - 1 - i : kernel - 1 - i + points]
        for j in range(points):
            before[j] += weight * shifted[j]


@kernel("void(float64[::1], float64, float64, float64[::1], float64[::1])", error_model="numpy")
def best_single_draw(
    values: Array, step: float, width: float, before: Array, padded: Array
) -> None:
    """Write V before one draw of bounded range, for the adversary's best t, to ``before``.

    With y = 1 at the grid point in question, the chord of V between a = exp(-t) and a R is taken at
    1, R = exp(width). As t runs from 0 to ``width``, a and a R cross grid points; between two
    crossings both ends of V are linear and the best a is in closed form. ``values`` is V on
    consecutive points of a grid of spacing ``step``; ``padded`` is work space of ``points + 2 *
    (ceil(width / step) + 2)`` numbers.
    """
    points = len(values)
    margin = math.ceil(width / step) + 2
    _extend(values, step, margin, margin, padded)
    growth = math.expm1(width)
    ratio = 1.0 + growth
    for j in range(points):
        before[j] = values[j]
    # a lies between the grid points -lower - 1 and -lower, a R between upper and upper + 1.
    lower = 0
    upper = math.floor(width / step)
    t = 0.0
    while t < width:
        end = min((lower + 1) * step, width - upper * step, width)
        if end > t:
            largest, smallest = math.exp(-t), math.exp(-end)
            a_near, a_far = math.exp(-lower * step), math.exp(-(lower + 1) * step)
            b_near, b_far = math.exp(upper * step), math.exp((upper + 1) * step)
            a_points = padded[margin - lower - 1 : margin - lower + points]
            b_points = padded[margin + upper : margin + upper + points + 1]
            a_unit, b_unit = 1.0 / (a_near - a_far), 1.0 / (b_far - b_near)
            for j in range(points):
                a_slope = (a_points[j + 1] - a_points[j]) * a_unit
                b_slope = (b_points[j + 1] - b_points[j]) * b_unit
                # The chord's value is a constant - (linear a + inverse / a) / (R - 1), both >= 0
                # but for rounding; written without branches so that it compiles to vectors.
                linear = max(ratio * (b_slope - a_slope), 1e-300)
                inverse = (a_points[j + 1] - a_slope * a_near) - (b_points[j] - b_slope * b_near)
                a = min(max(math.sqrt(max(inverse, 0.0) / linear), smallest), largest)
                v_a = a_points[j + 1] + a_slope * (a - a_near)
                v_b = b_points[j] + b_slope * (a * ratio - b_near)
                chance = (a * ratio - 1.0) / (a * growth)
                before[j] = max(before[j], v_b + chance * (v_a - v_b))
        t = max(t, end)
        if end >= width:
            break
        if (lower + 1) * step <= t:
            lower += 1
        if upper > 0 and width - upper * step <= t:
            upper -= 1
