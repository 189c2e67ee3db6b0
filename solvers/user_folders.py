"""Where the user's own files are kept: caches, and state that programs remember."""

import os
import sys
from pathlib import Path
from typing import Literal

_PLACES = {
    "cache": ("XDG_CACHE_HOME", ".cache", "Library/Caches", "dualquery/Cache"),
    "state": ("XDG_STATE_HOME", ".local/state", "Library/Application Support", "dualquery"),
}
"""Variable, folder in the home on Linux and on macOS, folder in ``%LOCALAPPDATA%`` on Windows."""


def user_folder(kind: Literal["cache", "state"]) -> Path:
    r"""Return the user's folder for what can be made again, or for state; it need not exist.

    ``dualquery`` in ``$XDG_CACHE_HOME`` (``$XDG_STATE_HOME``) wherever that variable is an absolute
    path. Else in ``%LOCALAPPDATA%`` on Windows, ``~/Library/Caches`` (``~/Library/Application
    Support``) on macOS, and ``~/.cache`` (``~/.local/state``) elsewhere.

    Raises
    ------
    RuntimeError
        If the user has no home folder.
    """
    variable, linux, macos, windows = _PLACES[kind]
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named / "dualquery"
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA", ""))
        return (local if local.is_absolute() else Path.home() / "AppData/Local") / windows
    return Path.home() / (macos if sys.platform == "darwin" else linux) / "dualquery"
