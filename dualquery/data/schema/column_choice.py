"""The texts of ``--columns`` and of item lists: names, positions, item ids and ranges of them.

``age,3,5-7`` keeps the column named age, the one at position 3 (counted from 0) and those at 5 to
7. A leading ``!`` leaves out instead: ``!id`` keeps all columns but id. A name that has a comma is
in double quotation marks: ``age,"city, state"``.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError, suggest

ColumnChoice: TypeAlias = str | Sequence[str | int]
"""One text with commas, or a sequence of names, numbers and ranges such as ``"0-99"``."""

MAX_ITEMS = 2**24  # more ids in one list are taken for an error (they would need 128 MiB)

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def select_columns(
    choice: ColumnChoice, names: Sequence[str], option: str = "--columns"
) -> list[int]:
    """Return the positions of the selected columns, increasing, each once."""
    positions = {name: position for position, name in enumerate(names)}
    kept, left_out = set[int](), set[int]()
    for token in _tokens(choice):
        token = token if {token, token.removeprefix("!")} & {*positions} else token.strip()
        if token.startswith("!") and token not in positions:
            rest = token[1:] if token[1:] in positions else token[1:].strip()
            left_out.update(_named(rest, positions, option))
        else:
            kept.update(_named(token, positions, option))
    if not (kept := (kept or {*range(len(names))}) - left_out):
        raise BadInputError(f"{option}: every selected column is also left out; keep at least one")
    return sorted(kept)


def _named(token: str, positions: Mapping[str, int], option: str) -> range:
    """Return the positions of the columns that a name, a position or a range means."""
    if token in positions:
        return range(positions[token], positions[token] + 1)
    if (bounds := _range(token)) is None:
        raise BadInputError(
            f"{option}: there is no column {token!r}; {suggest(token, list(positions))}"
        )
    if bounds[1] >= len(positions):
        raise BadInputError(
            f"{option}: {token!r} reaches beyond the last position, {len(positions) - 1}"
        )
    return range(bounds[0], bounds[1] + 1)


def select_items(choice: ColumnChoice) -> NDArray[np.int64]:
    """Return the item ids that a choice names: int64, strictly increasing, at least one."""
    bounds = []
    for token in map(str.strip, _tokens(choice)):
        if token.startswith("!"):
            raise BadInputError(
                f"items: {token!r} leaves an item out, but only columns can be left out; list the "
                "items to keep"
            )
        if (found := _range(token)) is None:
            raise BadInputError(
                f"items: {token!r} is neither an item id nor a range of them such as 0-999"
            )
        bounds.append(found)
    if (total := sum(last - first + 1 for first, last in bounds)) > MAX_ITEMS:
        raise BadInputError(f"items: {total:,} ids selected; at most {MAX_ITEMS:,} are possible")
    return np.unique(np.concatenate([np.arange(low, high + 1) for low, high in bounds]))


def format_items(items: NDArray[np.int64]) -> str:
    """Return increasing item ids as a text of ranges, such as ``0-17769,20000``."""
    starts = np.flatnonzero(np.diff(items, prepend=items[0] - 2) != 1)
    ends = np.append(starts[1:], len(items)) - 1
    pairs = zip(items[starts].tolist(), items[ends].tolist(), strict=True)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pairs)


def _tokens(choice: ColumnChoice) -> list[str]:
    pieces: Iterable[str] = map(str, choice)
    if isinstance(choice, str):
        try:
            pieces = next(csv.reader([choice], skipinitialspace=True, strict=True), [])
        except csv.Error as error:
            raise BadInputError(f"columns: {choice!r} is no list with commas: {error}") from None
    if not (kept := [piece for piece in pieces if piece.strip()]):
        raise BadInputError(
            "columns: nothing is selected; give names, positions or item ids, or !name to leave "
            "one out"
        )
    return kept


def _range(token: str) -> tuple[int, int] | None:
    """Return the bounds of ``7`` or ``3-9``, None if the token is neither."""
    if (match := _RANGE.fullmatch(token)) is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise BadInputError(f"columns: the range {token!r} ends before it starts")
    return first, last
