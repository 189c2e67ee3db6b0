"""``release --resume``: the command of an interrupted release is that of its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.checkpoints.checkpoint import Checkpoint

OWN = (
    "out", "config", "as_json", "quiet", "verbose", "explain", "threads", "engine", "scheduler",
    "answers_cache", "resume", "no_other_copy", "dry_run",
)  # fmt: skip
"""Options that each attempt has of its own: they change no result."""


def keep_command(given: Mapping[str, Any], checkpoint: Checkpoint) -> None:
    """Keep what was asked for, so that ``--resume`` needs nothing else."""
    checkpoint.same("command", {name: _plain(given[name]) for name in _kept(given)})


def resumed_command(
    context: typer.Context, given: Mapping[str, Any], checkpoint: Checkpoint
) -> dict[str, Any]:
    """Return the options of the interrupted release, and this attempt's own.

    Raises
    ------
    BadInputError
        If the checkpoint was not made by this command, or an option is given that differs.
    """
    stored = checkpoint.facts.get("command")
    if stored is None:
        raise BadInputError(
            f"{given['resume']} does not say what was asked for: it was made in Python, or stopped "
            "at once; go on in Python, or delete it"
        )
    values = dict(given)
    for name in _kept(given):
        source = context.get_parameter_source(name)
        typed = source is not None and source.name == "COMMANDLINE"
        if typed and _plain(given[name]) != stored.get(name):
            option = "--" + name.replace("_", "-")
            raise BadInputError(
                f"{option} {given[name]} does not go with --resume: the interrupted release had "
                f"{stored.get(name)!r}; leave it out, or make a new release"
            )
        if name in stored:
            found = stored[name]
            path = isinstance(found, str) and name == "budget"
            values[name] = Path(found) if path else found
    return values


def _kept(given: Mapping[str, Any]) -> list[str]:
    return [name for name in given if name not in OWN]


def _plain(value: Any) -> Any:
    """Return an option as JSON has it."""
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
