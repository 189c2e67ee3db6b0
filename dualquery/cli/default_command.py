"""Groups of commands of which one need not be named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperGroup


def with_default(command: str, stands_alone: Callable[[str], bool]) -> type[TyperGroup]:
    """Return a group in which a command may be left out.

    Parameters
    ----------
    command
        The command that is meant then.
    stands_alone
        Whether a first argument that is neither a command nor a request for help belongs to it.
    """

    class WithDefault(TyperGroup):
        def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
            named = arguments and arguments[0] in {*self.commands, *context.help_option_names}
            # To complete the first word, a shell wants to hear the commands, too.
            asked = arguments or not context.resilient_parsing
            if asked and not named and stands_alone(arguments[0] if arguments else ""):
                arguments = [command, *arguments]
            return super().parse_args(context, arguments)

        def shell_complete(self, context: Any, incomplete: str) -> list[Any]:
            meant = self.commands[command]
            inner = meant.make_context(command, [], parent=context, resilient_parsing=True)
            found = [
                *super().shell_complete(context, incomplete),
                *meant.shell_complete(inner, incomplete),
            ]
            return list({each.value: each for each in found}.values())

    return WithDefault
