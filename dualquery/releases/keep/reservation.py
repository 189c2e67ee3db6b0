"""The place of a release on the disk: claimed before work begins, filled in one step at the end."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from dualquery.checkpoints import unfinished as unfinished_folder
from dualquery.checkpoints.checkpoint import Checkpoint
from dualquery.checkpoints.unfinished import LEAST_SPACE, SUFFIX, Unfinished
from dualquery.runtime.errors import BadInputError

_LONGEST_NAME = 255 - len(SUFFIX)  # bytes: common file systems take 255


class Place:
    """The name of a release to be, which no other run can take, and where it is made."""

    def __init__(self, target: Path, unfinished: Unfinished) -> None:
        self.target = target
        self._unfinished = unfinished

    @property
    def checkpoint(self) -> Checkpoint:
        """What an interrupted run can go on from."""
        return self._unfinished.checkpoint

    def hold_space(self, size: int = LEAST_SPACE) -> None:
        """Make sure that ``size`` bytes can be written; see `Unfinished.hold_space`."""
        with _disk_errors(self.target):
            self._unfinished.hold_space(size)

    def write(self, write_files: Callable[[Path], None]) -> None:
        """Let a release write its files (`Release.write_files`); give it its name in one step."""
        from polars.exceptions import PolarsError

        self._unfinished.give_space()
        with _disk_errors(self.target, PolarsError):
            if self._unfinished.release.exists():  # of an attempt that was killed while it wrote
                shutil.rmtree(self._unfinished.release)
            write_files(self._unfinished.release)
            if self.target.exists():
                raise BadInputError(
                    f"{self.target} appeared while the release was made; name another folder"
                )
            self._unfinished.name(self.target)


@contextlib.contextmanager
def reserve(path: str | Path) -> Iterator[Place]:
    """Claim a place for a release; whatever happens, no half-written folder is left.

    What stays where something was drawn is ``PATH.unfinished`` with the checkpoint. `BadInputError`
    if the folder exists or cannot be made, or another process is making it.
    """
    target = Path(path)
    with contextlib.ExitStack() as undo:
        with _disk_errors(target):
            require_free(target)
            for parent in reversed(target.parents):
                if not parent.exists():
                    parent.mkdir()
                    undo.callback(_remove_if_empty, parent)
            path = target.with_name(target.name + SUFFIX)
            folder = undo.enter_context(unfinished_folder.begin(path))
        yield Place(target, folder)


@contextlib.contextmanager
def resume(
    checkpoint: str | Path, out: str | Path | None = None, *, no_other_copy: bool = False
) -> Iterator[Place]:
    """Take over the place of an interrupted release, whose folder ``OUT.unfinished`` is given.

    ``out`` is another folder; None for ``OUT``. `BadInputError` if there is no such checkpoint, it
    is damaged or used, or the folder exists. ``no_other_copy`` is that of `unfinished.take_over`.
    """
    path = Path(checkpoint)
    target = path.with_name(path.name.removesuffix(SUFFIX)) if out is None else Path(out)
    if out is None and path != target and path.exists() and target.exists():
        raise BadInputError(f"{target} exists already: if it is this release, delete {path}")
    require_free(target)
    with unfinished_folder.take_over(path, no_other_copy=no_other_copy) as folder:
        if not target.parent.is_dir() or target.parent.stat().st_dev != path.stat().st_dev:
            raise BadInputError(f"{target} is not on the disk of {path}: move that folder, resume")
        yield Place(target, folder)


def require_free(target: Path) -> None:
    """Raise `BadInputError` if a release's name is too long, or something is at its place."""
    if (size := len(os.fsencode(target.name))) > _LONGEST_NAME:
        raise BadInputError(f"{target}: a name of {size} bytes; {_LONGEST_NAME} is the most")
    if target.exists() or target.is_symlink():
        raise BadInputError(f"{target} exists already; name another folder")


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def _disk_errors(target: Path, *others: type[Exception]) -> Iterator[None]:
    """Turn a refusal of the disk into `BadInputError`; ``others`` are a library's errors for it."""
    refusals: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except refusals as error:
        text, number = str(error), getattr(error, "errno", None)
        # Polars tells the system's error in words and by its number only.
        full = number == errno.ENOSPC or "No space left" in text or "os error 28" in text
        reason = "the disk is full" if full else (getattr(error, "strerror", None) or text)
        raise BadInputError(
            f"cannot write the release to {target}: {reason}; make room, or name another place"
        ) from error
