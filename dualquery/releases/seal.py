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

from dualquery.runtime.errors import BadInputError

SEAL = ("files", "content")
"""Keys of the proof record that are computed when a release is written."""

_CHANGED = (
    "{} was changed or damaged after the release was written: its digest is another than "
    "release.json says; copy the release again from where it was made"
)


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


def check_seal(stored: Mapping[str, Any], folder: Path) -> None:
    """Refuse a release whose files are not those that it was written with.

    Parameters
    ----------
    stored
        What ``release.json`` says. Without digests (format 1) nothing is compared.
    folder
        The release. A missing file is left to who reads it.

    Raises
    ------
    BadInputError
        If a file has another digest than ``release.json`` says, or ``release.json`` itself has.
    """
    proof = stored.get("proof")
    proof = proof if isinstance(proof, dict) else {}
    files = proof.get("files")
    files = files if isinstance(files, dict) else {}
    # Names are compared with those that are there: a name of a stranger may lead anywhere.
    for path in sorted(folder.iterdir()):
        if path.name in files and path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != files[path.name]:
                raise BadInputError(_CHANGED.format(path.name))
    if "content" in proof:
        own = {key: value for key, value in proof.items() if key != "content"}
        found = hashlib.sha256(canonical({**stored, "proof": own})).hexdigest()
        if found != proof["content"]:
            raise BadInputError(_CHANGED.format("release.json"))


def unsealed(proof: Mapping[str, Any]) -> dict[str, Any]:
    """Return a proof record without digests, which writing a release computes anew."""
    return {key: value for key, value in proof.items() if key not in SEAL}


def canonical(content: Mapping[str, Any]) -> bytes:
    """Return JSON with sorted keys, no spaces and ASCII characters only."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")
