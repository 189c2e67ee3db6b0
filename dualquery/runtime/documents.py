"""JSON and TOML from files of unknown origin: small, plain, and said once.

What a file may hold is less than what its format allows: every key of an object once, finite
numbers, whole ones of at most 100 digits, texts of whole characters, no nesting deeper than
Python's own. It takes at most about 40 times its bytes.
"""

import json
import math
import tomllib
from collections import Counter
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO

from dualquery.runtime.errors import BadInputError

LARGEST = 1 << 26
"""Bytes of a document: a schema of a million columns takes that many."""

_LARGEST_TOML, _MOST_POINTS = 1 << 22, 10_000
"""Bytes of a TOML document, and points in one of its lines: Python's reader takes the square of the
parts of a key ``a.b.c``."""

_NEAR = 20
"""Signs before and behind a fault that its message quotes."""

_MOST_DIGITS = 100
"""Of a whole number; any of them fits a float."""

_PIECE = 1 << 20


def read_document(path: Path | Traversable) -> object:
    """Return what a JSON file holds, or one whose name ends in ``.toml``."""
    text, name = read_text(path), path.name.lower()
    if name.endswith((".yaml", ".yml")):
        raise BadInputError("YAML is not read; write it as JSON or TOML")
    return parse_toml(text) if name.endswith(".toml") else parse_json(text)


def read_text(path: Path | Traversable) -> str:
    """Return the text of a document; raises `BadInputError` as `read_document`."""
    try:
        with path.open("rb") as stream:
            content = read_at_most(stream, LARGEST)
    except OSError as fault:
        raise BadInputError(f"cannot be read ({fault.strerror})") from None
    if content is None:
        raise BadInputError(f"larger than {LARGEST:,} bytes, the most that is read")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInputError("not UTF-8 text; convert the file to UTF-8") from None


def read_at_most(stream: IO[bytes], largest: int) -> bytes | None:
    """Return the rest of a stream, or None if that is more than ``largest`` bytes.

    It takes twice the bytes that are there, not the limit: ``stream.read(limit)`` takes that first.
    """
    pieces: list[bytes] = []
    length = 0
    while piece := stream.read(_PIECE):
        length += len(piece)
        if length > largest:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def parse_json(text: str) -> object:
    """Return what a JSON text says; raise `BadInputError` if it is not as this module says."""
    try:
        found: object = json.loads(text, object_pairs_hook=_once)
    except BadInputError:
        raise
    except RecursionError:
        raise BadInputError("nested too deeply") from None
    except json.JSONDecodeError as fault:
        near = " ".join(text[max(0, fault.pos - _NEAR) : fault.pos + _NEAR].split())
        raise BadInputError(
            f"not valid JSON: {fault}; is a comma or a quotation mark missing, or one too many, "
            f"near {near!r}?"
        ) from None
    except ValueError as fault:  # of whole numbers with thousands of digits
        raise BadInputError(f"not valid JSON: {fault}") from None
    _check(found)
    return found


def parse_toml(text: str) -> dict[str, object]:
    """Return what a TOML text says; raise `BadInputError` if it is not as this module says."""
    if len(text) > _LARGEST_TOML:
        raise BadInputError(f"larger than {_LARGEST_TOML:,} characters; write so much as JSON")
    if any(line.count(".") > _MOST_POINTS for line in text.splitlines()):
        raise BadInputError(f"a line with more than {_MOST_POINTS:,} points; break it")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise BadInputError("nested too deeply") from None
    except ValueError as fault:
        raise BadInputError(f"not valid TOML: {fault}") from None
    _check(found)
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise BadInputError(f"the key {twice!r} comes twice in one object; leave one of them")
    return found


def _check(value: object) -> None:
    """Refuse numbers and texts that no later step expects."""
    left = [value]
    while left:
        match left.pop():
            case bool():
                pass
            case int() as number if abs(number) >= 10**_MOST_DIGITS:
                raise BadInputError(f"a whole number of more than {_MOST_DIGITS} digits")
            case float() as number if not math.isfinite(number):
                meant = "; write the last that matters" if math.isinf(number) else ""
                raise BadInputError(f"the number {number}; only finite ones are possible{meant}")
            case str() as text if not text.isascii():
                try:
                    text.encode("utf-8")
                except UnicodeEncodeError:
                    raise BadInputError(f"the text {text!r}, which has half a character") from None
            case dict() as table:
                left += [*table, *table.values()]
            case list() as several:
                left += several
