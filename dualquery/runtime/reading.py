"""Bytes of a stream, up to a limit."""

from __future__ import annotations

from typing import IO

_PIECE = 1 << 20


def read_at_most(stream: IO[bytes], largest: int) -> bytes | None:
    """Return what is left of a stream, or None if that is more than ``largest`` bytes.

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
