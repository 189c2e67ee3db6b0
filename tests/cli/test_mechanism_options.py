"""Mechanisms and their options: listed, chosen by `auto`, read from ``--config``."""

import json
from dataclasses import fields

import pytest

from dualquery.cli.commands.release import option_helps
from dualquery.mechanisms.registry import BUILT_IN, mechanism_class
from tests.tables import names


@pytest.mark.parametrize("mechanism", ["dualquery", "mwem"])
def test_the_options_of_a_mechanism_are_listed(dualquery, here, mechanism) -> None:
    done = dualquery("release", "no-such-file.csv", "--mechanism", mechanism, "-o", "help").ok
    assert all(f"\n{field.name}" in f"\n{done.out}" for field in fields(mechanism_class(mechanism)))
    if mechanism == "dualquery":
        assert "Learning rate of the query player." in done.out
        assert "burn_in=0.0" in done.out
    assert names(here) == set()


def test_every_mechanism_documents_its_options() -> None:
    for name in BUILT_IN:
        for option, text in option_helps(mechanism_class(name)).items():
            assert text, (name, option)


def test_auto_is_the_default_and_says_what_it_chose_and_why(dualquery, here) -> None:
    done = dualquery("release", "--queries", "20", "--out", "a").ok
    assert "columns alone may be all" in done.err
    stored = json.loads((here / "a" / "release.json").read_text())
    assert stored["mechanism"] == "auto"
    assert stored["parameters"]["mechanism"] == "adaptive"
    assert stored["parameters"]["reason"]
    assert stored["synthetic_records"] > 0
    assert dualquery("evaluate", "a", "adult", "--json").json["mechanism"] == "adaptive"
