"""The console of all commands: texts cannot steer the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from dualquery.runtime.escaping import terminal_text


class PlainConsole(Console):
    """A console that escapes control characters in all that is printed as a text."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a text into what is shown (every text and cell of a table comes through here)."""
        return super().render_str(terminal_text(text), **options)
