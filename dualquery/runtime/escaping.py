"""Texts of unknown origin on their way out: to a terminal, a CSV file, an HTML page.

They must stay texts: no control sequence of a terminal, no formula of a spreadsheet, no markup.
Whatever writes there calls the function for it, on each text by itself. Rich's own markup is
escaped by `rich.markup.escape`. Shares and lists are shown by the functions at the end.
"""

import html
import json
import re
from collections.abc import Sequence
from typing import Any

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"  # but tab and line feed
_LINES = "\t\n\u2028\u2029"
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they show text in another order
_SURROGATES = "\ud800-\udfff"  # bytes of a file's name that are no text; they cannot be printed

_WITHIN_TEXT = re.compile(f"[{_CONTROLS}{_DIRECTIONS}{_SURROGATES}]")
_WITHIN_LINE = re.compile(f"[{_CONTROLS}{_LINES}{_DIRECTIONS}{_SURROGATES}]")

_FORMULA = re.compile(r"'*+(?:[\s\x00]*(?!-\Z)[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n\x00])")
_NUMBER = re.compile(r"[-+]?(?:\d++(?:[.,]\d*+)?|\.\d++)(?:[eE][-+]?\d++)?", re.ASCII)


def terminal_text(text: str) -> str:
    r"""Return a text as a terminal may show it, line feeds and tabs as they are.

    Characters that control the terminal or the direction of writing, or that none can print, become
    ``\uXXXX``.
    """
    return _WITHIN_TEXT.sub(_code, text)


def terminal_line(text: str) -> str:
    """Return a text as a terminal may show it on one line (see `terminal_text`)."""
    return _WITHIN_LINE.sub(_code, text)


def terminal_json(value: Any, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """Return a value as JSON that a terminal may show; it reads back the same."""
    text = json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=ascii_only)
    return _WITHIN_TEXT.sub(_code, text)  # such a character can only be within a text


def csv_cell(text: str) -> str:
    """Return a text as a cell of a CSV file that no spreadsheet takes for a formula.

    What begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end, apostrophes before it or not,
    gets one in front (OWASP, "CSV Injection"); numbers such as ``-5`` stay. The writer quotes.
    """
    formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if formula else text


def html_text(text: str) -> str:
    """Return a text for HTML, between tags or in a quoted attribute, without any markup."""
    return html.escape(terminal_text(text), quote=True)


def _code(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def share(value: float, towards: int = 0) -> str:
    """Return a share with four decimals, or with two digits where four decimals would hide it.

    It is the nearest one; ``towards`` -1 the next below, 1 the next above, for ends of intervals.
    """
    places = 1 - int(f"{value:e}".partition("e")[2]) if 0 < abs(value) < 0.001 else 4
    value += 0.4999 * towards * 10.0**-places if value else 0.0
    return f"{value:.{places}f}" if places <= 9 else f"{value:.1e}"


def some(texts: Sequence[str], most: int = 20) -> str:
    """Return the first of some texts, quoted, and how many more there are."""
    shown = ", ".join(map(repr, texts[:most]))
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most:,} more"
