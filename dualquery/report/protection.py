"""What is protected, how strongly, and how far to trust what is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dualquery.estimates.intervals import of_cut
from dualquery.privacy.guarantee import round_up
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.report.facts import Widths, widths
from dualquery.report.markup import Html, element, joined, key_figures
from dualquery.runtime.escaping import share

if TYPE_CHECKING:
    from dualquery.releases.compare.evaluation import Errors, Evaluation
    from dualquery.releases.keep.folder import Release


def in_short(release: Release, compared: Evaluation | None) -> Html:
    """What a reader must know who reads no further."""
    privacy, strength = release.privacy, "None: this release is not private."
    if privacy.private and privacy.epsilon == 0:
        learned = getattr(release.schema, "learned", None)
        strength = f"No row was looked at{', but for the schema' if learned else ''}."
    elif privacy.private:
        assert privacy.epsilon is not None
        unit = Neighbours.of_options(release.options).unit
        one = "row" if unit is None else f"unit of {unit.column!r}"
        strength = (
            f"Noise was added to protect every {one}: who knows all the others, and thinks a fact "
            f"about this one as likely as not, can be {_sure(release)} from the release. That is "
            f"epsilon {round_up(privacy.epsilon, 4)} (with delta {round_up(privacy.delta, 2)}); "
            "smaller numbers protect more."
        )
    content = f"{len(release.workload):,} answers"
    if release.records is not None and len(release.records):
        content += (
            f" and {len(release.records):,} synthetic records. A record describes nobody: only "
            "what many of them have in common says something"
        )
    lines = {
        "Content": f"{content}.",
        "Protection": strength,
        "Precision": _precision(release, widths(release)),
    }
    if compared is not None:
        lines["Truth"] = _distance(release, compared.errors)
    return element(
        "ul",
        *(element("li", element("strong", f"{name}. "), text) for name, text in lines.items()),
        class_="short",
    )


def _distance(release: Release, errors: Errors) -> str:
    mean, largest, points = errors.mean_error, errors.max_error, ""
    if conjunctions_of(release.workload) is not None:
        mean, largest, points = 100 * mean, 100 * largest, " percentage points"
    return f"The answers are {mean:.2g}{points} from the truth in the mean, {largest:.2g} at most."


def _precision(release: Release, found: Sequence[Widths]) -> str:
    known = [each for each in found if not math.isnan(each.half[0])]
    if not known:
        return (
            "The answers come without intervals: dualquery answer says what is known of their "
            "errors; else the holder of the table can tell."
        )
    most = max(known, key=lambda each: each.known)
    largest = max(each.half[1] for each in known)
    if conjunctions_of(release.workload) is None:
        return f"The intervals of answers reach {share(most.half[0])} to both sides, by the median."
    points, furthest = (f"{100 * value:.2g}" for value in (most.half[0], largest))
    with_interval, all_answers = (sum(getattr(e, of) for e in found) for of in ("known", "queries"))
    if with_interval < all_answers / 2:
        return (
            f"Only {with_interval:,} of {all_answers:,} answers have an interval, about {points} "
            "percentage points to both sides. The others come from a fit to these, and the release "
            "cannot tell how far they are from the truth."
        )
    rows = math.ceil(float(round_up(max(largest * release.base.amount, 1.0), 2)))
    cut = of_cut(release.schema.max_ones_per_row, Neighbours.of_options(release.options))
    return (
        f"Typical answers are known to about {points} percentage points, the least certain ones "
        f"to {furthest}. What is said of fewer than about {rows:,} {release.base.name} "
        "may be noise alone." + f" All is said{cut[1:].replace(';', ',')}." * bool(cut)
    )


def guarantee(release: Release) -> Html:
    """What is protected, how strongly, in words and figures."""
    privacy = release.privacy
    if not privacy.private:
        reasons = element("ul", *(element("li", each) for each in privacy.reasons_not_private))
        return joined([element("p", "This release is NOT PRIVATE:", class_="alarm"), reasons])
    epsilon, delta = privacy.epsilon, privacy.delta
    assert epsilon is not None
    times = round_up(math.exp(epsilon), 3) if epsilon < 99 else f"e^{epsilon:.15g}"
    relation = Neighbours.of_options(release.options)
    one = "another" if relation.replaces else "added or removed"
    each, others = "row", "A person with several rows"
    told = "Each row of the table is protected."
    if relation.unit is not None:
        name, most = relation.unit.column, relation.unit.max_rows
        each = "unit"
        others = f"A person who has a part in several units of {name!r}"
        told = (
            f"Units are protected: all rows with the same value of {name!r} together; at "
            f"most {most:,} counted."
        )
    if relation.weight is not None:
        told += f" Rows count by their weight in {relation.weight.column!r}."
    beyond = f", plus a chance of {_chance(delta)}" if delta else ""
    words = [
        f"{told} Had any one {each} been {one}, everything in the release would have come out "
        f"about as likely: any set of results at most {times} times as likely{beyond}.",
        f"Somebody who knows all other {each}s, and thinks a fact about one {each} as likely as "
        f"not, can be {_sure(release)} after reading the release.",
        f"Not protected: what is true of many {each}s at once. {others} is protected less, and "
        "other releases from the same table add up with this one.",
    ]
    figures = {
        "epsilon": round_up(epsilon, 4),
        "delta": round_up(delta, 3),
        "neighbours": privacy.neighbours,
        "accountant": str(privacy.accountant),
    }
    rests = element("summary", "What the guarantee rests on"), element("p", privacy.text())
    said = [element("p", each) for each in words]
    return joined([*said, key_figures(figures), element("details", *rests)])


def _sure(release: Release) -> str:
    """Return how sure somebody may become of what was as likely as not, rounded up."""
    privacy, replaces = release.privacy, Neighbours.of_options(release.options).replaces
    assert privacy.epsilon is not None
    # Where the fact is another, so is the row: one is removed, and one added.
    odds = math.exp(-privacy.epsilon * (1 if replaces else 2))
    rare = " (but for rare results, which delta limits)" if privacy.delta else ""
    return f"at most {math.ceil(1000 / (1 + odds)) / 10:g}% sure of it{rare}"


def _chance(value: float) -> str:
    """Return a small chance as a person says it, rounded up."""
    return round_up(value, 2) if value >= 0.001 else f"1 in {_rounded(1 / value):,}"


def _rounded(value: float) -> int:
    """Return a number above 0, rounded down to two digits and a whole number."""
    step: int = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return int(value * (1.0 + 1e-9) // step) * step
