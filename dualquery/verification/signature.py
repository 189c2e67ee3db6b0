"""A detached Ed25519 signature of a release: it says who wrote the folder.

What is signed are the bytes of ``release.json``, which holds a digest of every other file. Keys are
PEM files, and the signature is the plain 64 bytes, as OpenSSL makes and checks them::

    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    openssl pkeyutl -verify -rawin -pubin -inkey public.pem -in release.json -sigfile FILE
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

SIZE, _LARGEST_KEY = 64, 1 << 16  # bytes of a signature, and of a file with a key


def sign(folder: Path, private: Path) -> bytes:
    """Return a release's signature; `ValueError` if ``private`` is no key without a password."""
    load = partial(load_pem_private_key, password=None)
    key: Ed25519PrivateKey = _key(private, load, Ed25519PrivateKey)
    return key.sign((folder / "release.json").read_bytes())


def signed(folder: Path, signature: Path, public: Path) -> bool:
    """Return whether a file is a release's signature by a public key's owner; raises as `sign`."""
    key: Ed25519PublicKey = _key(public, load_pem_public_key, Ed25519PublicKey)
    with signature.open("rb") as stream:
        found = stream.read(SIZE + 1)
    try:
        key.verify(found, (folder / "release.json").read_bytes())
    except InvalidSignature:
        return False
    return True


def _key(path: Path, load: Callable[[bytes], object], kind: type[Any]) -> Any:
    with path.open("rb") as stream:
        pem = stream.read(_LARGEST_KEY + 1)
    try:
        if len(pem) > _LARGEST_KEY:
            raise ValueError(f"more than {_LARGEST_KEY:,} bytes")
        key = load(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
        raise ValueError(f"{path} holds no PEM key without a password ({fault})") from None
    if not isinstance(key, kind):
        raise ValueError(f"{path} holds a key that is no Ed25519 key")
    return key
