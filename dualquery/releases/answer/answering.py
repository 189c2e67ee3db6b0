"""Answers of questions from a finished release: post-processing, free of charge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dualquery.estimates.intervals import LEVEL, of_cut
from dualquery.estimates.means import BoughtMean
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.literals import print_queries
from dualquery.questions.compiler import Compiled, CompiledQuantile, CompiledQuestion, ask
from dualquery.questions.linear_form import Bounds
from dualquery.questions.plain_parser import read_question
from dualquery.questions.remarks import on_clipped_numbers
from dualquery.questions.syntax_tree import MEAN, SHARE, SUM, Question
from dualquery.releases.answer.bought import likely_mean
from dualquery.releases.answer.knowledge import Knowledge, Limits
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release

_NONE_SUCH = "no row of the schema can be like the given ones"
_NONE_LIKELY = "by the release's estimate no rows are like the given ones"
_NONE_KNOWN = "whether there are rows like the given ones is not known"
_ANOTHER = "in answers.parquet and the report it has its own measurement's interval"
_TEXTS = ("query", "answered", "source", "basis")
_COLUMNS = ("query", "answered", "answer", "low", "high", "level", "source", "basis")


class Answers(list[dict[str, Any]]):
    """Answers to questions, a line each as `answer_queries` says: it shows and saves itself."""

    def frame(self) -> pl.DataFrame:
        """Return the answers as a table, a row a question, without ``interval``."""
        kinds = {name: pl.String if name in _TEXTS else pl.Float64 for name in _COLUMNS}
        return pl.DataFrame([{name: line[name] for name in kinds} for line in self], schema=kinds)

    def _repr_html_(self) -> str:
        return self.frame()._repr_html_()

    def save(self, path: str | Path) -> Path:
        """Write a new CSV or Parquet file, by its ending; `BadInputError` if it cannot be whole."""
        from dualquery.releases.answer.table_files import check_target, write_frames

        target = Path(path)
        check_target(target)
        write_frames([self.frame()], target)
        return target


def answer_queries(
    release: Release, queries: Sequence[str], place: Callable[[int], str] | None = None
) -> Answers:
    """Answer questions given as text.

    Parameters
    ----------
    release, queries
        A release, and questions over its schema, as `dualquery.questions.parser` says:
        conjunctions such as ``age=30-35 & sex!=Female``, ranges, ``or``, means, ``given``.
    place
        How messages call entry i; None for what says enough for a question by itself.

    Returns
    -------
    Answers
        A list of dicts: ``query`` as given; ``answered``, the same in canonical form, where a value
        has become its bucket or category; ``answer``: a share of the rows, a number of rows, or a
        number of the column's, None where the given rows are none or nothing answers; ``low`` and
        ``high``: they hold the true answer with probability ``level``, over the noise, for each
        question by itself; all three None where that is not known; ``source``: ``released`` when
        the query is in the workload, or its parts are and nothing else tells, else ``model``,
        ``synthetic`` or ``measured`` (least squares), or ``rules`` where those of the schema leave
        one answer only; ``basis``: what the interval rests on, or why there is none. ``interval``,
        the pair of low and high, is kept for one release.

    Raises
    ------
    BadInputError
        If a question is no text or cannot be read, or there is nothing to answer it from.
    """
    if isinstance(queries, str):
        raise BadInputError(f"a list of questions is needed, found one: write [{queries!r}]")
    knowledge, found = Knowledge(release), Answers()
    for number, text in enumerate(queries):
        try:
            if not isinstance(text, str):
                raise BadInputError(f"a question is a text, such as 'age>=18', found {text!r}")
            question = read_question(text, release.schema)
            line = answer_question(knowledge, question, alone=len(queries) == 1)
            found.append({"query": text, **line})
        except BadInputError as error:
            if place is None:
                raise
            raise BadInputError(f"{place(number)}: {error}") from None
    return found


def answer_question(
    knowledge: Knowledge, question: Question, level: float = LEVEL, *, alone: bool = False
) -> dict[str, Any]:
    """Answer one question: as `answer_queries`, without ``query``; ``level`` is of the interval."""
    asked = ask(question, knowledge.schema)
    try:
        return _answer(knowledge, asked, level)
    except BadInputError as unanswered:
        if alone:  # of several, one that has no answer leaves the others
            raise
        return _line(asked, None, Limits(str(unanswered)), knowledge.source())


def _answer(knowledge: Knowledge, asked: Compiled, level: float) -> dict[str, Any]:
    schema, base = knowledge.schema, knowledge.base
    if asked.denominator is not None and not asked.denominator.high.terms:
        return _line(asked, None, Limits(_NONE_SUCH), knowledge.source())
    if knowledge.rules is not None:
        from dualquery.releases.answer.ruled import FORCED, NO_SUCH_ROWS, forced_share

        forced = forced_share(asked, schema, knowledge.rules)
        if forced is not None and math.isnan(forced):
            return _line(asked, None, Limits(NO_SUCH_ROWS), "rules")
        if forced is not None:
            limits, whole = Limits(FORCED, forced, forced, level), 1.0
            if asked.question.measure != SHARE:
                cut = of_cut(None, Neighbours.of_options(knowledge.release.options))
                limits = replace(_of_total(knowledge, limits), basis=FORCED + cut)
                whole = base.amount
                if forced and base.known == "stated":
                    limits = Limits(f"{FORCED}, of a total as was stated{cut}")
            return _line(replace(asked, remark="", of_interval=""), forced * whole, limits, "rules")
    if isinstance(asked, CompiledQuantile):
        source = knowledge.source(asked.below[-1].likely)
        return _line(asked, *_quantile(knowledge, asked, level), source)
    question = asked.question
    if question.measure in (MEAN, SUM) and question.given is None:
        for bought in knowledge.release.means:
            if bought.column == question.column:
                return _bought_line(knowledge, asked, bought, level)
    limits = knowledge.limits(
        asked.numerator, asked.denominator, asked.range, level, summed=asked.of_rows
    )
    if limits.low is not None and limits.high is not None:
        limits = replace(limits, low=limits.low + asked.nearest, high=limits.high + asked.nearest)
    if (released := _released(knowledge.release, asked)) is None:
        answer = _likely(knowledge, asked)
        source = knowledge.source(asked.numerator.likely)
        if answer is None and asked.denominator is not None:
            limits = replace(limits, basis=f"{_why_none(asked.denominator)}; {limits.basis}")
    else:
        (answer, own), source = released, "released"
        if asked.of_rows:
            answer *= base.amount
            own = None if own is None else _of_total(knowledge, own)
        if limits.low is None and own is not None and level == LEVEL:
            limits = own
        elif limits.low is not None and own is not None and not own.near(limits):
            limits = replace(limits, basis=f"{limits.basis}; {_ANOTHER}")
    if answer is not None and limits.low is not None and limits.high is not None:
        low, high = limits.low, limits.high
        if source == "released":  # its interval reaches to it: that lowers no chance
            limits = replace(limits, low=min(low, answer), high=max(high, answer))
        else:
            answer = min(max(answer, low), high)
    if asked.conjunctions and question.measure == SHARE:
        asked = replace(asked, text=print_queries(asked.conjunctions[0][None, :], schema)[0])
    return _line(asked, answer, limits, source)


def _bought_line(
    knowledge: Knowledge, asked: CompiledQuestion, bought: BoughtMean, level: float
) -> dict[str, Any]:
    """Return the line of a bought mean, or of that times the number of rows."""
    answer = likely_mean(knowledge, bought)
    found = bought.interval(knowledge.base, level)
    low, high = float(found.lower[0]), float(found.upper[0])
    if asked.of_rows:
        low, high = bought.sum_limits(knowledge.base, level)
        answer = float(np.clip(answer * knowledge.base.amount, low, high))
    remark = on_clipped_numbers(knowledge.schema.column(bought.column)[1])
    asked = replace(asked, remark=remark, of_interval="")
    basis = found.basis + of_cut(None, Neighbours.of_options(knowledge.release.options))
    return _line(asked, answer, Limits(basis, low, high, found.level), "released")


def _likely(knowledge: Knowledge, asked: CompiledQuestion) -> float | None:
    """Return the model's answer, in the range; None where the given rows are none."""
    parts = [each.likely for each in asked.bounds]
    likely, below = [*(knowledge.mean(part, parts) for part in parts), 1.0][:2]
    if below <= 0:
        return None
    likely = float(np.clip(likely / below, *asked.range)) + asked.nearest
    return likely * knowledge.base.amount if asked.of_rows else likely


def _why_none(given: Bounds) -> str:
    """Return why there is no answer: nothing estimates what lies beyond a column's edges."""
    known = any(all(each.any() for each in term.values()) for term in given.likely.terms)
    return _NONE_LIKELY if known else _NONE_KNOWN


def _line(asked: Compiled, answer: float | None, limits: Limits, source: str) -> dict[str, Any]:
    of_interval = "" if limits.low is None else asked.of_interval
    return {
        "answered": asked.text,
        "answer": answer,
        "low": limits.low,
        "high": limits.high,
        "level": limits.level,
        "source": source,
        "basis": "; ".join(filter(None, (limits.basis, asked.remark, of_interval))),
        "interval": None if limits.low is None else (limits.low, limits.high),
    }


def _of_total(knowledge: Knowledge, limits: Limits) -> Limits:
    """Return the limits of a sum from those of a share and of the total."""
    if limits.low is None or limits.high is None or limits.level is None:
        return limits
    totals = knowledge.base.limits(1.0 - limits.level)
    ends = [end * total for end in (limits.low, limits.high) for total in totals]
    return replace(limits, low=min(ends), high=max(ends))


def _released(release: Release, asked: CompiledQuestion) -> tuple[float, Limits | None] | None:
    """Return the released answer of a question that is a query of the workload, and its limits."""
    workload, known, limits = conjunctions_of(release.workload), release.intervals, None
    places = () if workload is None else map(workload.find, asked.conjunctions)
    at = next((place for place in places if place is not None), None)
    if at is None:
        return None
    if known is not None and (interval := known.of(at)) is not None:
        limits = Limits(known.basis, *interval, known.level)
    return float(release.answers[at]), limits


def _quantile(
    knowledge: Knowledge, asked: CompiledQuantile, chance: float
) -> tuple[float | None, Limits]:
    """Return the number below which the asked share of the given rows lies, and its limits."""
    # The numbers of all steps but those whose shares' limits exclude it (Woodruff 1952).
    level, steps = asked.question.level, len(asked.below)
    whole = knowledge.mean(asked.denominator.likely, [asked.below[-1].likely])
    if whole <= 0:
        return None, Limits(_why_none(asked.denominator))
    below = np.array([knowledge.mean(each.likely) for each in asked.below]) / whole
    below = np.maximum.accumulate(below)
    step = min(int(np.searchsorted(below, level)), steps - 1)
    before = below[step - 1] if step else 0.0
    answer = asked.number(step, min((level - before) / max(below[step] - before, 1e-300), 1.0))
    found = knowledge.limits(asked.below[step], asked.denominator, (0.0, 1.0), chance)
    if found.low is None or found.high is None:
        return answer, found
    every = [knowledge.limits(at, asked.denominator, (0.0, 1.0), chance) for at in asked.below]
    # A step cannot hold the quantile if surely too little lies at or below it, or enough before it.
    most, least = (pl.Series([getattr(each, end) for each in every]) for end in ("high", "low"))
    some = most.fill_null(strategy="backward").fill_null(1.0) >= level
    few = least.fill_null(strategy="forward").fill_null(0.0).shift(1, fill_value=-1.0) < level
    first = min(some.arg_true(), default=steps - 1)
    low, high = float(asked.low[first]), float(asked.high[max(first, *few.arg_true())])
    return min(max(answer, low), high), replace(found, low=low, high=high)
