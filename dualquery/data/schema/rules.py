"""Rules between columns as a schema holds them: texts, and what follows from what. Public.

What a text means is for `dualquery.rules.reading` to say, but for an order of two columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dualquery.runtime.errors import BadInputError

MOST_RULES = 10_000
"""Of a schema."""

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


def _rule(number: int, stored: Any) -> Rule:
    where = f"schema, rule {number}"
    if isinstance(stored, str):
        if _follows(stored) is not None:
            raise BadInputError(
                f"{where} ({stored!r}): which value follows from which? Write "
                f'{{"rule": "{stored}", "mapping": {{...}}}}'
            )
        return stored
    mapping = stored.get("mapping") if isinstance(stored, Mapping) else None
    follows = _follows(stored.get("rule")) if isinstance(stored, Mapping) else None
    if follows is None or not isinstance(mapping, Mapping) or len(stored) > 2:
        raise BadInputError(f"{where} is {stored!r}; {_FORM}")
    for value in mapping.values():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadInputError(f"{where}: the mapping holds {value!r}, which is not a text")
    if not mapping:
        raise BadInputError(f"{where}: the mapping is empty")
    return Follows(*follows, tuple((str(key), str(value)) for key, value in mapping.items()))


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
