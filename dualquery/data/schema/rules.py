"""Rules between columns as a schema holds them: texts, and what follows from what. Public.

What a text means is for `dualquery.rules.reading` to say, but for an order of two columns
(`dualquery.data.schema.orders`), which the values of records are drawn by.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dualquery.runtime.errors import BadInputError

MOST_RULES = 10_000
"""Of a schema."""

_MOST_BYTES = 64 << 20
"""Of a file that maps values."""

_FOLLOWS = re.compile(r"\s*(.*?)\s+follows\s+from\s+(.*?)\s*", re.IGNORECASE | re.DOTALL)
_FORM = (
    'a rule is a text, such as "age<15 => marital=never", or {"rule": "region follows from '
    'district", "mapping": {"a district": "its region"}}'
)


@dataclass(frozen=True)
class Follows:
    """The value of a column is a public function of the ``source`` column's.

    ``mapping`` has values of the source, and the only one of the column's that each allows; what is
    not listed allows all.
    """

    column: str
    source: str
    mapping: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The rule in words."""
        return f"{self.column} follows from {self.source}"


Rule: TypeAlias = str | Follows


def rule_text(rule: Rule) -> str:
    """Return a rule in words."""
    return rule if isinstance(rule, str) else rule.text


def rules_from(stored: object) -> tuple[Rule, ...]:
    """Return the rules that a schema file lists."""
    if not isinstance(stored, list | tuple):
        raise BadInputError(f"schema: rules is {stored!r}; it is a list: {_FORM}")
    if len(stored) > MOST_RULES:
        raise BadInputError(f"schema: {len(stored):,} rules; at most {MOST_RULES:,} are read")
    return tuple(_rule(number, each) for number, each in enumerate(stored, 1))


def rules_entry(rules: Sequence[Rule]) -> dict[str, object]:
    """Return the entry of a schema file for rules: none if there are none."""
    stored = [
        each if isinstance(each, str) else {"rule": each.text, "mapping": dict(each.mapping)}
        for each in rules
    ]
    return {"rules": stored} if stored else {}


def with_mappings(fields: Mapping[str, object], folder: Path) -> Mapping[str, object]:
    """Return what a schema file holds with the CSV files that its rules name read in."""
    rules = fields.get("rules")
    if not isinstance(rules, list):
        return fields
    return {**fields, "rules": [_with_mapping(each, folder) for each in rules]}


def _with_mapping(rule: object, folder: Path) -> object:
    if not isinstance(rule, Mapping) or "file" not in rule:
        return rule
    follows, file = _follows(rule.get("rule")), rule["file"]
    if follows is None or not isinstance(file, str) or set(rule) != {"rule", "file"}:
        raise BadInputError(f"schema, rule {rule!r}: file goes with a rule such as {_FORM}")
    (column, source), path = follows, folder / file
    mapping: dict[str, str] = {}
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadInputError(f"{path}: more than {_MOST_BYTES >> 20} MiB")
        with path.open(encoding="utf-8-sig", newline="") as opened:
            for line, row in enumerate(csv.DictReader(opened), 2):
                where, found, value = f"{path}, line {line}", row.get(source), row.get(column)
                if found is None or value is None:
                    raise BadInputError(
                        f"{where}: a table with the columns {source!r} and {column!r} is needed"
                    )
                if mapping.setdefault(found, value) != value:
                    before = mapping[found]
                    raise BadInputError(f"{where}: {found!r} has {value!r}, and {before!r} before")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInputError(f"{path}: cannot be read as a CSV file: {error}") from None
    return {"rule": rule["rule"], "mapping": mapping}


def _rule(number: int, stored: object) -> Rule:
    where = f"schema, rule {number}"
    if isinstance(stored, str):
        if _follows(stored) is not None:
            raise BadInputError(
                f"{where} ({stored!r}): which value follows from which? Write "
                f'{{"rule": "{stored}", "mapping": {{...}}}}, or "file" with the name of a CSV file'
            )
        return stored
    if not isinstance(stored, Mapping):
        raise BadInputError(f"{where} is {stored!r}; {_FORM}")
    if "file" in stored:
        raise BadInputError(
            f"{where}: file is for schema files, which it stands beside; give the mapping here"
        )
    follows, mapping = _follows(stored.get("rule")), stored.get("mapping")
    if follows is None or not isinstance(mapping, Mapping) or set(stored) != {"rule", "mapping"}:
        raise BadInputError(f"{where} is {stored!r}; {_FORM}")
    for value in mapping.values():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadInputError(f"{where}: the mapping holds {value!r}, which is not a text")
    pairs = tuple((str(key), str(value)) for key, value in mapping.items())
    if not pairs:
        raise BadInputError(f"{where}: the mapping is empty")
    return Follows(*follows, pairs)


def _follows(text: object) -> tuple[str, str] | None:
    """Return the names in ``column follows from source``; None for another text."""
    found = _FOLLOWS.fullmatch(text) if isinstance(text, str) else None
    if found is None or "=>" in found[0]:
        return None
    return unquoted(found[1]), unquoted(found[2])


def unquoted(name: str) -> str:
    """Return a name without the quotation marks around it."""
    if len(name) >= 2 and name[0] == name[-1] == '"':
        return name[1:-1].replace('""', '"')
    return name
