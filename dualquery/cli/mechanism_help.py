"""``-o help``: the fields of a mechanism's configuration, with what their docstrings say."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from dataclasses import MISSING, dataclass, fields
from typing import Any

from dualquery.cli.terminal import Terminal


@dataclass(frozen=True)
class OptionHelp:
    """One field: its name, its default if it has one, and its docstring."""

    title: str
    text: str


def option_helps(mechanism: type[Any]) -> list[OptionHelp]:
    """Return the help of every field of a configuration class, in its order."""
    texts: dict[str, str] = {}
    for cls in reversed(mechanism.__mro__[:-1]):
        texts |= _field_texts(cls)
    return [
        OptionHelp(
            field.name if field.default in (MISSING, None) else f"{field.name}={field.default}",
            texts.get(field.name, ""),
        )
        for field in fields(mechanism)
    ]


def show_options(terminal: Terminal, mechanism: str | None) -> None:
    """List a mechanism's options with their defaults; None for all that ``auto`` may take."""
    from dualquery.mechanisms.registry import AUTOMATIC, mechanism_class

    for name in AUTOMATIC if mechanism is None else (mechanism,):
        helps = option_helps(mechanism_class(name))
        terminal.console.print(f"options of the mechanism {name}", markup=False)
        for each in helps:
            terminal.console.print(each.title, markup=False, style="bold")
            terminal.console.print(f"    {each.text}", markup=False)
        if not helps:
            terminal.console.print(f"{name} has no options")


def _field_texts(cls: type[Any]) -> dict[str, str]:
    """Return the strings that follow a class's annotated fields."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError):  # a third party's class without source
        return {}
    body = getattr(tree, "body", [])
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
