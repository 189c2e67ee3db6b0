"""Mutators: from valid examples to inputs that a stranger might send."""

import copy
import gzip
import io
import json
import lzma
import random
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TOKENS: tuple[bytes, ...] = (
    b"\0", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80",
    b"\x1b[2J\x1b]0;x\x07", "\u202e\u2028\x85".encode(), b'"', b'""', b"'", b",", b";", b"\t", b" ",
    b"=1+1", b"-", b"+", b"0", b"1", b"-1", b"-0", b"1e999", b"-1e-999", b"nan", b"inf", b"null",
    b"true", b"2147483648", b"4294967296", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775809", b"1" * 400, b"9" * 5000, b"0.1", b"1_000", "١٢".encode(),
    b"[" * 2000, b"{" * 50, b'{"a":' * 2000, b"(" * 300, b"!" * 50, b"&" * 20, b"a" * 3000,
    b" " * 3000, b"../../etc/passwd", b"/dev/zero", b"h", b"p wcnf 9 9 9",
    b"c dualquery attributes 99999999999 clauses 1",
)  # fmt: skip
"""What has broken parsers: marks, controls, numbers at limits, nesting, long runs."""

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 0.5, -0.0, 1e308, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**99, 10**120,
    float("nan"), float("inf"), True, False,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *NUMBERS, None, "", "a", "\0", "\ud800", "\x1b[31m", "=1", "0-99999999999", "1" * 5000, "../x",
    [], {}, [[]], [None], {"a": 1}, ["a"] * 50, {"private": True}, "x" * 10_000,
)  # fmt: skip

CELLS: tuple[Any, ...] = ("x", "", "\0", 10**12, -1, 2.5, float("nan"), None, True, b"x", [1, -5])

Mutator = Callable[[random.Random, bytes], bytes]


def spoil_bytes(chance: random.Random, data: bytes) -> bytes:
    """Flip, cut, repeat, move or insert something, once or a few times."""
    content = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(content) + 1)
        size = min(len(content) - at, chance.choice((1, 1, 2, 5, 20, 100)))
        match chance.randrange(8):
            case 0 if at < len(content):
                content[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(content):
                content[at] = chance.choice((0, 1, 10, 13, 32, 34, 44, 127, 128, 255, 48, 57))
            case 2:
                del content[at : at + size]
            case 3:
                content[at:at] = content[at : at + size] * chance.choice((1, 2, 30))
            case 4:
                other = chance.randrange(len(content) + 1)
                content[at:at] = content[other : other + size]
            case 5:
                del content[at:]
            case 6 | 7:
                content[at:at] = chance.choice(TOKENS)
    return bytes(content)


def spoil_words(chance: random.Random, data: bytes) -> bytes:
    """Replace, drop, repeat or exchange words or lines of a text."""
    separator = chance.choice((b"\n", b" ", b",", b"\t", b"=", b"&"))
    words = data.split(separator)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(words))
        match chance.randrange(5):
            case 0:
                words[at] = chance.choice(TOKENS)
            case 1 if len(words) > 1:
                del words[at]
            case 2:
                words[at:at] = [words[at]] * chance.choice((1, 2, 50))
            case 3:
                other = chance.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case _:
                words[at] = words[chance.randrange(len(words))] + chance.choice(TOKENS)
    return separator.join(words)


def spoil_json(chance: random.Random, data: bytes) -> bytes:
    """Change, drop, rename or repeat entries of a JSON document."""
    try:
        document = json.loads(data)
    except ValueError:  # of two spliced examples
        return spoil_bytes(chance, data)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if not (places := list(_places(document))):
            break
        owner, key = chance.choice(places)
        match chance.randrange(6):
            case 0 | 1 | 2:
                owner[key] = copy.deepcopy(chance.choice(VALUES))
            case 3:
                del owner[key]
            case 4 if isinstance(owner, dict):
                owner[f"{key}{chance.choice(('x', ' ', ''))}"] = owner.pop(key)
            case _:
                _, other = places[chance.randrange(len(places))], chance.choice(places)
                owner[key] = json.loads(json.dumps(other[0][other[1]]))
    text = json.dumps(document)
    if chance.random() < 0.05:
        depth = chance.choice((10, 900, 100_000))
        text = "[" * depth + text + "]" * depth
    if chance.random() < 0.05:  # a key twice
        text = text.replace("{", '{"name": 1, "name": 2, ', 1)
    return text.encode("utf-8", "surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return where the entries of a document stand: owners and keys."""
    found: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        owner = left.pop()
        for key in list(owner.keys() if isinstance(owner, dict) else range(len(owner))):
            found.append((owner, key))
            if isinstance(owner[key], dict | list):
                left.append(owner[key])
    return found


def zipped(mutator: Mutator, packing: Any = gzip) -> Mutator:
    """Return a mutator of packed files: of what they hold, or of the file itself."""

    def mutate(chance: random.Random, data: bytes) -> bytes:
        if chance.random() < 0.3:
            return spoil_bytes(chance, data)
        try:
            content = packing.decompress(data)
        except (OSError, EOFError, zlib.error, lzma.LZMAError):  # two spliced examples
            return spoil_bytes(chance, data)
        packed: bytes = packing.compress(mutator(chance, content))
        return packed

    return mutate


def spoil_text(chance: random.Random, data: bytes) -> bytes:
    """Spoil bytes or, twice as often, words."""
    return chance.choice((spoil_bytes, spoil_words, spoil_words))(chance, data)


def spoil_table(chance: random.Random, data: bytes) -> bytes:
    """Change a value, the type and the name of a column of a Parquet file, or bytes of it."""
    if chance.random() < 0.4:
        return spoil_bytes(chance, data)
    if chance.random() < 0.5:  # the pages come first, the description of the file last
        half = max(5, len(data) // 2)
        return data[:4] + spoil_bytes(chance, data[4:half])[: half - 4] + data[half:]
    try:
        table = pq.read_table(io.BytesIO(data))
        at = chance.randrange(table.num_columns)
        if values := table.column(at).to_pylist():
            values[chance.randrange(len(values))] = chance.choice(CELLS)
        kind = chance.choice((None, pa.int8(), pa.dictionary(pa.int8(), pa.string()), pa.date32()))
        name = chance.choice(
            (table.column_names[at], table.column_names[0], "", "\x1b", "x" * 9999)
        )
        stream, changed = io.BytesIO(), table.set_column(at, name, pa.array(values, kind))
        pq.write_table(changed, stream, compression=chance.choice(("none", "zstd", "gzip")))
    except (pa.ArrowException, OSError, TypeError, ValueError, OverflowError):
        return spoil_bytes(chance, data)
    return stream.getvalue()


def spliced(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """Return an example, now and then the start of one and the end of another."""
    data = chance.choice(examples)
    if chance.random() < 0.1:
        other = chance.choice(examples)
        return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]
    return data
