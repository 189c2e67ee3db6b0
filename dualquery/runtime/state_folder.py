"""Where the user's own state is kept: what programs remember, apart from settings and caches."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dualquery.runtime.errors import BadInputError


def state_folder() -> Path:
    r"""Return the folder, which need not exist yet.

    ``$XDG_STATE_HOME/dualquery`` wherever that variable is an absolute path. Else
    ``%LOCALAPPDATA%\dualquery`` on Windows, ``~/Library/Application Support/dualquery`` on macOS
    and ``~/.local/state/dualquery`` elsewhere.

    Raises
    ------
    BadInputError
        If the user has no home folder.
    """
    named = os.environ.get("XDG_STATE_HOME", "")
    if Path(named).is_absolute():
        return Path(named) / "dualquery"
    local = os.environ.get("LOCALAPPDATA", "")
    if sys.platform == "win32" and Path(local).is_absolute():
        return Path(local) / "dualquery"
    try:
        home = Path.home()
    except RuntimeError:
        raise BadInputError(
            "the user has no home folder to keep state in; set XDG_STATE_HOME to a folder"
        ) from None
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "dualquery"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "dualquery"
    return home / ".local" / "state" / "dualquery"
