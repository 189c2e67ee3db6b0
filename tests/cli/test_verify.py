"""``dualquery verify`` and ``dualquery sign``: exit codes, output, keys."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import dualquery as package
from tests.tables import release_people


def pem(key: Any, locked: Any = None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked or NoEncryption())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, keys of two people, and what are no keys, in one folder."""
    root = tmp_path_factory.mktemp("signed")
    release_people(queries=20, way=1, mechanism="gaussian").save(root / "mine")
    release_people(queries=20, way=1, seed=1).save(root / "seeded")
    for name in ("private", "other"):
        key = Ed25519PrivateKey.generate()
        (root / f"{name}.pem").write_bytes(pem(key))
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (root / f"{name}-public.pem").write_bytes(public)
    (root / "locked.pem").write_bytes(pem(key, BestAvailableEncryption(b"word")))
    (root / "curve.pem").write_bytes(pem(generate_private_key(SECP256R1())))
    (root / "text.pem").write_text("no key")
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_release_is_confirmed(dualquery, json_too) -> None:
    said = dualquery("verify", "mine", *json_too).ok.out
    assert "Confirmed: the guarantee (1, " in said if not json_too else '"confirmed": true' in said


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("seeded", "seeded is not confirmed: the release states no guarantee: a seed was given"),
        ("nowhere", "nowhere is not confirmed: not a release folder (FileNotFoundError"),
        ("private.pem", "not a release folder (NotADirectoryError"),
    ],
)
def test_what_is_not_confirmed_exits_2_and_says_why(dualquery, folder, why) -> None:
    said = dualquery("verify", folder, "--json")
    assert (said.code, why in said.last) == (2, True)
    assert '"confirmed": false' in said.out


def test_a_refuted_release_is_told_in_json_though_its_numbers_are_infinite(here, dualquery) -> None:
    text = (here / "mine" / "release.json").read_text()
    for key, odd in (("delta", "0.0"), ("epsilon", "-1e999"), ("epsilon", "1e999")):
        changed = text.replace(f'"{key}": ', f'"{key}": {odd}, "other": ')
        (here / "mine" / "release.json").write_text(changed)
        done = dualquery("verify", "mine", "--json")
        said = json.loads(done.out, parse_constant=pytest.fail)
        assert (done.code, said["confirmed"], None in said.values()) == (2, False, True)


def test_a_signature_tells_who_wrote_it(here, dualquery) -> None:
    assert dualquery("sign", "mine", "--key", "private.pem").ok
    assert (here / "mine.sig").stat().st_size == 64
    checked = ["verify", "mine", "--signature", "mine.sig", "--key"]
    confirmed, other = (dualquery(*checked, f"{name}-public.pem") for name in ("private", "other"))
    assert "by the owner of private-public.pem" in confirmed.ok.out
    assert other.code == 2
    assert "no signature of it by the owner of other-public.pem" in other.err


def test_a_forgery_with_new_digests_breaks_the_signature(here, dualquery) -> None:
    """What contradicts nothing, such as other notes, nothing else shows."""
    signed = ("--signature", "s", "--key", "private-public.pem")
    assert dualquery("sign", "mine", "--key", "private.pem", "--out", "s").code == 0
    package.load_release("mine").save("copy")
    assert dualquery("verify", "copy").code == 0
    path = here / "copy" / "release.json"
    assert path.read_bytes() == (here / "mine" / "release.json").read_bytes()
    assert dualquery("verify", "copy", *signed).code == 0
    replace(package.load_release("mine"), notes=("trust me",)).save("forged")
    assert dualquery("verify", "forged").code == 0
    assert dualquery("verify", "forged", *signed).code == 2
    (here / "s").write_bytes(b"")
    assert dualquery("verify", "mine", *signed).code == 2


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["sign", "mine", "--key", "locked.pem"], "locked.pem holds no PEM key without a password"),
        (["sign", "mine", "--key", "curve.pem"], "curve.pem holds a key that is no Ed25519 key"),
        (["sign", "nowhere", "--key", "private.pem"], "is not whole and was not signed"),
        (["sign", "mine", "--key", "private.pem", "--out", "text.pem"], "exists already"),
        (["verify", "mine", "--signature", "text.pem", "--key", "private.pem"],
         "private.pem holds no PEM key"),
        (["verify", "mine", "--signature", "no", "--key", "private-public.pem"],
         "cannot be checked"),
    ],
)  # fmt: skip
def test_bad_keys_and_files_are_bad_input(here, dualquery, arguments, why) -> None:
    assert why in dualquery(*arguments).refusal
    assert not (here / "mine.sig").exists()
