"""HTML as values: what is not known to be markup is escaped when it is put into an element."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from dualquery.runtime.escaping import html_text

_LONG = 24
"""Characters that fit beside other figures."""


class Html(str):
    """A text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str) -> Html:
    """Return an element; children that are no `Html`, and all attributes, are escaped.

    An attribute may end in an underscore where its name is a word of Python's (``class_``), and
    has hyphens in place of underscores (``aria_label``).
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html_text(value)}"'
        for name, value in attributes.items()
    )
    return Html(f"<{tag}{written}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str]) -> Html:
    """Return parts one after the other, those that are no `Html` escaped."""
    return Html("".join(part if isinstance(part, Html) else html_text(part) for part in parts))


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], **attributes: str
) -> Html:
    """Return a table whose first column names its rows."""
    header = element("tr", *(element("th", each, scope="col") for each in head))
    body = (
        element("tr", element("th", row[0], scope="row"), *(element("td", c) for c in row[1:]))
        for row in rows
    )
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", header),
            element("tbody", *body),
            **attributes,
        ),
        class_="wide",
    )


def data(name: str, value: Any) -> Html:
    """Return an element that holds JSON for a script, and nothing that a browser would run."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(f'<script type="application/json" id="{name}">{text}</script>')


def key_figures(figures: dict[str, str]) -> Html:
    """Return a few figures with what they are; one of many words has room for them."""
    entries = (
        element(
            "div",
            element("dt", name),
            element("dd", value),
            **({"class_": "long"} if len(value) > _LONG else {}),
        )
        for name, value in figures.items()
    )
    return element("dl", *entries, class_="key")
