"""Remarks on the columns of a draft: what their values may be, which only its reader can know.

Each is empty where there is nothing to say; else it follows what was said before it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dualquery.data.hints import (
    are_seconds,
    grouped_thousands,
    names_counts,
    names_total,
    names_weights,
    several_answers,
)
from dualquery.data.profile import FEW_ROWS, Profile
from dualquery.data.seen_values import MISSING_VALUES, starts_with_a_day

_FEWEST_FREQUENCIES = 3
"""So many different ones are hardly those of two columns by chance."""


def on_twins(profiles: Mapping[str, Profile]) -> dict[str, str]:
    """Return remarks on columns that may say the same as an earlier one, as a key and its name do.

    Their values are exactly as frequent: the first as the first, the second as the second.
    """
    names: dict[tuple[int, ...], str] = {}
    remarks = {}
    for name, profile in profiles.items():
        frequencies = tuple(sorted(profile.counts["count"]))
        if len({*frequencies}) >= _FEWEST_FREQUENCIES:
            twin = names.setdefault(frequencies, name)
            if twin != name:
                remarks[name] = (
                    f"; its values are as frequent as those of {twin!r}: if each goes with one of "
                    "these, keep one of the two columns, or add a rule"
                )
    return remarks


def on_counts(profile: Profile) -> str:
    """Return a remark on a column that may say how much each row counts."""
    if profile.seen.words:
        return ""
    if names_counts(profile.name) and profile.seen.whole:
        return "; if each row stands for so many, repeat the rows and leave it out"
    if names_weights(profile.name):
        return "; if each row counts by it, leave it out and give --weight and --max-weight"
    return ""


def on_thousands(profile: Profile) -> str:
    """Return a remark on numbers whose points may separate thousands."""
    shown = grouped_thousands(profile.counts["value"])
    if shown is None:
        return ""
    return f"; if {shown} is {shown.replace('.', '')}, --csv decimal=, reads it so in a CSV file"


def on_rare(profile: Profile) -> str:
    """Return a remark on categories that may be known from the table alone."""
    if not profile.rare:
        return ""
    return f"; {profile.rare} in fewer than {FEW_ROWS} rows: keep what everybody knows to exist"


def on_unread_dates(profile: Profile) -> str:
    """Return a remark on dates that are written in a way that is not known."""
    shown = profile.counts["value"].min()
    if not starts_with_a_day(profile.counts["value"]):
        return ""
    return f"; if {shown!r} is a time, write it as 2024-01-31 18:05"


def on_several_answers(profile: Profile) -> str:
    """Return a remark on cells that may hold several answers."""
    shown = several_answers(profile.counts["value"])
    if shown is None:
        return ""
    return f"; if cells such as {shown!r} hold several answers, make each answer a column"


def on_seconds(profile: Profile) -> str:
    """Return a remark on numbers that may be times."""
    if not profile.seen.whole or not are_seconds(profile.seen.low, profile.seen.high):
        return ""
    return "; if they are seconds since 1970, write them as dates"


def on_marks(profile: Profile) -> str:
    """Return a remark on numbers that may stand for missing values."""
    if not profile.marks:
        return ""
    *others, last = (f"{mark:g}" for mark in profile.marks)
    marks = f"{', '.join(others)} and {last}" if others else last
    return (
        f"; {marks}, apart from all others, may stand for missing values: then list the number "
        "under missing_values of this column, or empty these cells"
    )


def on_missing(profile: Profile) -> str:
    """Return a remark on texts that are taken for missing values."""
    remark = ""
    if markers := sorted(profile.markers - set(MISSING_VALUES)):
        remark = "; " + ", ".join(map(repr, markers)) + " as missing"
    if profile.met:
        far = ", far from all other numbers," if len(profile.numbers) else ""
        remark += f"; {', '.join(sorted(profile.met))}{far} as missing in this column"
    return remark


def on_totals(profile: Profile) -> str:
    """Return a remark on a row below the table, as sheets have one."""
    shown = names_total(profile.counts["value"])
    return "" if shown is None else f"; if the row of {shown!r} sums up others, delete it"
