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
from dualquery.cli.main import main
from tests.tables import SCHEMA, people


def pem(key: Any, locked: Any = None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked or NoEncryption())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, keys of two people, and what are no keys, in one folder."""
    root = tmp_path_factory.mktemp("signed")
    package.release(people(), schema=SCHEMA, queries=20, way=1, mechanism="gaussian").save(
        root / "mine"
    )
    package.release(people(), schema=SCHEMA, queries=20, way=1, seed=1).save(root / "seeded")
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
def test_a_release_is_confirmed(here, json_too, capsys) -> None:
    assert main(["verify", "mine", *json_too]) == 0
    said = capsys.readouterr().out
    assert "Confirmed: the guarantee (1, " in said if not json_too else '"confirmed": true' in said


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("seeded", "seeded is not confirmed: the release states no guarantee: a seed was given"),
        ("nowhere", "nowhere is not confirmed: not a release folder (FileNotFoundError"),
        ("private.pem", "not a release folder (NotADirectoryError"),
    ],
)
def test_what_is_not_confirmed_exits_2_and_says_why(here, folder, why, capsys) -> None:
    assert main(["verify", folder, "--json"]) == 2
    said = capsys.readouterr()
    assert why in said.err.splitlines()[-1]
    assert '"confirmed": false' in said.out


def test_a_refuted_release_is_told_in_json_though_its_numbers_are_infinite(here, capsys) -> None:
    text = (here / "mine" / "release.json").read_text()
    for key, odd in (("delta", "0.0"), ("epsilon", "-1e999"), ("epsilon", "1e999")):
        changed = text.replace(f'"{key}": ', f'"{key}": {odd}, "other": ')
        (here / "mine" / "release.json").write_text(changed)
        assert main(["verify", "mine", "--json"]) == 2
        said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
        assert (said["confirmed"], None in said.values()) == (False, True)


def test_a_signature_tells_who_wrote_it(here, capsys) -> None:
    assert main(["sign", "mine", "--key", "private.pem"]) == 0
    assert (here / "mine.sig").stat().st_size == 64
    checked = ["verify", "mine", "--signature", "mine.sig", "--key"]
    assert main([*checked, "private-public.pem"]) == 0
    assert "by the owner of private-public.pem" in capsys.readouterr().out
    assert main([*checked, "other-public.pem"]) == 2
    assert "no signature of it by the owner of other-public.pem" in capsys.readouterr().err


def test_a_forgery_with_new_digests_breaks_the_signature(here, capsys) -> None:
    """What contradicts nothing, such as other notes, nothing else shows."""
    assert main(["sign", "mine", "--key", "private.pem", "--out", "s"]) == 0
    package.load_release("mine").save("copy")
    assert main(["verify", "copy"]) == 0
    path = here / "copy" / "release.json"
    assert path.read_bytes() == (here / "mine" / "release.json").read_bytes()
    assert main(["verify", "copy", "--signature", "s", "--key", "private-public.pem"]) == 0
    replace(package.load_release("mine"), notes=("trust me",)).save("forged")
    assert main(["verify", "forged"]) == 0
    assert main(["verify", "forged", "--signature", "s", "--key", "private-public.pem"]) == 2
    (here / "s").write_bytes(b"")
    assert main(["verify", "mine", "--signature", "s", "--key", "private-public.pem"]) == 2


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
def test_bad_keys_and_files_are_bad_input(here, arguments, why, capsys) -> None:
    assert main(arguments) == 2
    assert why in capsys.readouterr().err.splitlines()[-1]
    assert not (here / "mine.sig").exists()
