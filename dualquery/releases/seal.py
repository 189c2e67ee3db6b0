"""What ties the files of a release to each other: SHA-256 of each, kept in ``release.json``.

``release.json`` cannot hold a digest of itself, so it holds one of all else that it says. Whoever
edits a release and computes these digests anew is found out by a signature only
(`dualquery.verification.signature`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SEAL = ("files", "content")
"""Keys of the proof record that are computed when a release is written."""


def sealed(summary: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what ``release.json`` says, with the digests of all other files and of itself.

    Parameters
    ----------
    summary
        JSON-able, with a ``proof``.
    folder
        Where the other files of the release are, complete.

    Returns
    -------
    dict[str, Any]
        The same with two more keys in ``proof``: ``files``, name -> SHA-256 of the bytes, and
        ``content``, the SHA-256 of `canonical` of all but itself; both in hexadecimal.
    """
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }
    whole = {**summary, "proof": {**unsealed(summary["proof"]), "files": files}}
    whole = json.loads(json.dumps(whole, allow_nan=False))  # as a reader of the file sees it
    content = hashlib.sha256(canonical(whole)).hexdigest()
    return {**whole, "proof": {**whole["proof"], "content": content}}


def unsealed(proof: Mapping[str, Any]) -> dict[str, Any]:
    """Return a proof record without digests, which writing a release computes anew."""
    return {key: value for key, value in proof.items() if key not in SEAL}


def canonical(content: Mapping[str, Any]) -> bytes:
    """Return JSON with sorted keys, no spaces and ASCII characters only."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")
