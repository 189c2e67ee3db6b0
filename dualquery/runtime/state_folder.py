"""Where the user's own state is kept: what programs remember, apart from settings and caches."""

from __future__ import annotations

from pathlib import Path

from dualquery.runtime.errors import BadInputError
from solvers.user_folders import user_folder


def state_folder() -> Path:
    """Return the folder (see `user_folder`), which need not exist yet.

    Raises
    ------
    BadInputError
        If the user has no home folder.
    """
    try:
        return user_folder("state")
    except RuntimeError:
        raise BadInputError(
            "the user has no home folder to keep state in; set XDG_STATE_HOME to a folder"
        ) from None
