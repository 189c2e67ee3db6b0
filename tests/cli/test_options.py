"""Every option by its names, type and default: a frozen list, to which lines may be added."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import dualquery
from dualquery.api import KEYWORDS
from dualquery.cli.main import app

FROZEN = Path(__file__).with_name("options.txt")


def of_commands() -> Iterator[str]:
    waiting: list[tuple[str, Any]] = [("", typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop()
        for name, each in getattr(command, "commands", {}).items():
            waiting.append((f"{words} {name}".strip(), each))
        for option in command.params if words else []:
            names = "/".join((*option.opts, *option.secondary_opts))
            facts = [f"{option.name}: {names}", _kind(option), f"default {option.default!r}"]
            facts += ["required"] * option.required + ["repeated"] * option.multiple
            yield f"{words} {', '.join(facts)}"


def _kind(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return "flag"
    least = "" if getattr(parameter, "min", None) is None else f" from {parameter.min}"
    return f"{parameter.bare_type()}{least}"


def of_python() -> Iterator[str]:
    keywords = [name for names in KEYWORDS.values() for name in names]
    for name in [*inspect.signature(dualquery.release).parameters, *keywords]:
        yield f"release() {name}"
    for name, parameter in inspect.signature(dualquery.Synthesizer).parameters.items():
        yield f"Synthesizer() {name}: default {parameter.default!r}"


def test_what_scripts_use_stays_as_it_is() -> None:
    found = sorted({*of_commands(), *of_python()})
    assert [line for line in FROZEN.read_text("utf-8").splitlines() if line not in found] == []
    assert found == sorted(FROZEN.read_text("utf-8").splitlines())


if __name__ == "__main__":  # to add what is new
    FROZEN.write_text("".join(f"{line}\n" for line in sorted({*of_commands(), *of_python()})))
