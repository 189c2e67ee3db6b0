"""YAML as a data dictionary needs it: what JSON can say, in YAML's writing.

Texts such as ``yes``, ``007``, ``12:30`` and ``2014-01-31`` stay texts, as in YAML 1.2; there are
no tags but those of plain values, and no merging of mappings. An alias stands for its value, which
may then be told more often than the file is long: `MOST_VALUES` bounds that.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from dualquery.runtime.errors import BadInputError

LARGEST_YAML = 1 << 20
"""Characters of a document: PyYAML reads some 100,000 a second."""

MOST_VALUES = 1_000_000
"""Of a document, each counted as often as aliases tell it."""

_SIGNS = "-+0123456789."
_WHOLE = r"(?:0|[1-9][0-9]*)"
"""Digits without a zero in front: a code such as 007 is a text."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """Knows true, false, null, whole numbers, numbers and texts."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len({*keys}) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise BadInputError(f"the key {twice!r} comes twice in one object; leave one of them")
        found: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return found


for _kind, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", rf"[-+]?{_WHOLE}", _SIGNS),
    ("float", rf"[-+]?(?:{_WHOLE}?\.[0-9]+|{_WHOLE}\.?)(?:[eE][-+]?[0-9]+)?", _SIGNS),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_pattern})\Z"), list(_first)
    )


def parse_yaml(text: str) -> object:
    """Return what a YAML text says.

    Raises
    ------
    BadInputError
        If it is no YAML, holds more than plain values, or is too large, however it is told.
    """
    if len(text) > LARGEST_YAML:
        raise BadInputError(f"larger than {LARGEST_YAML:,} characters; write so much as JSON")
    try:
        # _Loader is a SafeLoader: it makes no objects.
        found = yaml.load(text, _Loader)  # noqa: S506
        _size(found, {})
    except RecursionError:
        raise BadInputError("nested too deeply") from None
    except (yaml.YAMLError, ValueError) as fault:
        if isinstance(fault, BadInputError):
            raise
        raise BadInputError(f"not valid YAML: {' '.join(str(fault).split())}") from None
    return _with_text_keys(found)


def _size(value: object, known: dict[int, int]) -> int:
    """Return how many values there are, those behind aliases each time that they are told."""
    if not isinstance(value, dict | list):
        if not isinstance(value, str | int | float | None):
            raise BadInputError(f"a value of type {type(value).__name__}; write it as a text")
        return 1
    if id(value) not in known:
        known[id(value)] = MOST_VALUES  # of a value that holds itself
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(each, known) for each in inner)
    if known[id(value)] > MOST_VALUES:
        raise BadInputError(f"more than {MOST_VALUES:,} values, aliases spelt out")
    return known[id(value)]


def _with_text_keys(value: object) -> object:
    """Return the same with texts as keys, as JSON has them: a column may be called 2020."""
    if isinstance(value, dict):
        return {str(key): _with_text_keys(each) for key, each in value.items()}
    return [_with_text_keys(each) for each in value] if isinstance(value, list) else value
