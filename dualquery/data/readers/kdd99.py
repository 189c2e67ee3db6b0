"""``kdd99``: KDD Cup 99 as the DualQuery authors prepared it.

Values are separated by a comma and a space, a full stop ends each line, and there is no header.
"""

from __future__ import annotations

import io
from typing import BinaryIO, cast

from dualquery.data.opening import FilePath
from dualquery.data.readers.csv import CsvSource

_HEADER = """
    duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot
    num_failed_logins logged_in num_compromised root_shell su_attempted num_root
    num_file_creations num_shells num_access_files num_outbound_cmds is_host_login
    is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate
    same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count
    dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate
    dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate
    dst_host_rerror_rate dst_host_srv_rerror_rate attack
"""
COLUMNS = tuple(_HEADER.split())
"""The names of the 42 columns, as KDD Cup 99 has them; ``attack`` is the label."""


def open_kdd99(path: FilePath, label: str) -> CsvSource:
    """Return the source for the authors' file; its schema is the built-in ``kdd99``."""
    return CsvSource(path, label, implied_schema="kdd99", header=COLUMNS, translate=_translate)


def _translate(stream: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, _PlainText(stream))


class _PlainText(io.BufferedIOBase):
    """The text without the blank after each comma and the full stop before each line end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        while True:
            block = self._stream.read(size or -1)
            text = (self._held + block).replace(b"\r\n", b"\n")
            # What follows these decides about them, so they wait for the next block.
            kept = text.rstrip(b",.\r") if block else text.removesuffix(b".")
            self._held = text[len(kept) :] if block else b""
            plain = kept.replace(b", ", b",").replace(b".\n", b"\n")
            if plain or not block:
                return plain
