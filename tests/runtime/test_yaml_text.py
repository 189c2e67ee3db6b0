"""YAML of unknown origin: plain values, bounded."""

from __future__ import annotations

import pytest

from dualquery.runtime.documents import parse_yaml
from dualquery.runtime.errors import BadInputError

pytest.importorskip("yaml", reason="needs the extra yaml")

_LEVELS = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9))
BOMB = f"a0: &a0 [x, x]\n{_LEVELS}"


def test_texts_that_other_versions_of_yaml_rewrite_stay_texts() -> None:
    text = "2020: [yes, no, 007, 12:30, 2014-01-31, 0x1F, .inf, <<, true, ~, -3, 1.50, .5, 1e3]"
    assert parse_yaml(text) == {
        "2020": [
            "yes", "no", "007", "12:30", "2014-01-31", "0x1F", ".inf", "<<", True, None, -3, 1.5,
            0.5, 1000.0,
        ]
    }  # fmt: skip


def test_an_alias_stands_for_its_value() -> None:
    assert parse_yaml("a: &v [1, 2]\nb: *v") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "more than 1,000,000 values"),
        ("a: &a [*a]", "more than 1,000,000 values"),
        ("a: &a {<<: *a}", "values"),
        ("a: !!python/object/apply:os.system [ls]", "not valid YAML: .*constructor for the tag"),
        ("a: !!binary aGk=", "a value of type bytes"),
        ("a: 1\na: 2", "'a' comes twice"),
        ("a: b: c", "not valid YAML"),
        ("[" * 3000, "nested too deeply"),
        (f"a: {'9' * 5000}", "not valid YAML"),
        (f"a: {'9' * 200}", "more than 100 digits"),
        (f"a: {'x' * (1 << 20)}", "larger than"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        parse_yaml(text)
