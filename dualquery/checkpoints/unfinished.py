"""The folder of a release that is being made: ``OUT.unfinished`` beside ``OUT``, visible.

It has a lock, the checkpoint, space that is held for the release, and the release itself while it
is written. Who holds the lock owns the folder, and the name of the release. A folder whose process
is dead is removed by the next run beside it, unless it was charged to a budget file or drew: then
it can be resumed.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dualquery.checkpoints.checkpoint import STUCK, Checkpoint
from dualquery.runtime.errors import BadInputError, InterruptedRun
from dualquery.runtime.files import finished_first, sync_folder, try_lock

SUFFIX = ".unfinished"
LOCK, JOURNAL, SPACE, RELEASE = "lock", "journal", "space", "release"
LEAST_SPACE = _PIECE = 1 << 20
"""Bytes that are held from the start, so that a full disk is found before anything is drawn."""
_TRIES = 5


class Unfinished:
    """The folder at a path, held by this process by its lock; ``release`` is written within."""

    def __init__(self, path: Path, lock: IO[bytes], *, no_other_copy: bool = False) -> None:
        self.path, self._lock, self._no_other_copy = path, lock, no_other_copy
        self.release, self._space = path / RELEASE, 0
        self.named: Path | None = None  # the release's folder, once it has its name
        self._checkpoint: Checkpoint | None = None

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint, made or read when it is first asked for."""
        if self._checkpoint is None:
            self._checkpoint = Checkpoint(
                self.path / JOURNAL,
                on_full=self.give_space,
                hold=self.hold_space,
                no_other_copy=self._no_other_copy,
                placed=True,
            )
            sync_folder(self.path)
            sync_folder(self.path.parent)
        return self._checkpoint

    @property
    def paid(self) -> bool:
        """Whether a charge or a private draw began for a release that has no name yet."""
        kept = self._checkpoint
        return kept is not None and self.named is None and (kept.draws > 0 or bool(kept.claims))

    def name(self, target: Path) -> None:
        """Give the release its name, in one step."""
        kept = self._checkpoint
        with finished_first():
            if kept is not None:
                kept.before_name(target)
            self.release.rename(target)
            sync_folder(target.parent)
            if kept is not None:
                kept.after_name()
            self.named = target

    def hold_space(self, size: int) -> None:
        """Take ``size`` bytes of the disk, until the release is written, or raise `OSError`."""
        piece = os.urandom(_PIECE)  # what a file system cannot compress
        try:
            with (self.path / SPACE).open("ab" if self._space else "wb", buffering=0) as file:
                while self._space < size:
                    self._space += file.write(piece)
                os.fsync(file.fileno())
        except OSError:
            self.give_space()
            raise

    def give_space(self) -> bool:
        """Give the held bytes back; tell whether there were any."""
        held, self._space = self._space, 0
        with suppress(OSError):
            (self.path / SPACE).unlink()
        return held > 0

    def told(self) -> str:
        """Return what was drawn, and how to go on with it; or that nobody can, and what to do."""
        how = f"go on with dualquery release --resume {self.path}, or delete it to make a new one"
        if self.checkpoint.stuck:
            how = f"{STUCK}: delete {self.path} and make a new release"
        return f"{self.checkpoint.stays()}; {how}"

    def close(self, *, keep: bool) -> None:
        """Let the folder go, and remove it unless it is to be kept."""
        if self._checkpoint is not None:
            self._checkpoint.close()
        self.give_space()
        if keep:
            shutil.rmtree(self.release, ignore_errors=True)
            self._lock.close()
        else:
            _remove(self.path, self._lock)


@contextmanager
def begin(path: Path) -> Iterator[Unfinished]:
    """Make the folder of a new release, for a block, and remove it at the end.

    If the block fails after a charge or a draw it stays, and the failure says how to go on.
    `BadInputError` if another process has the folder, or it is of an interrupted release.
    """
    _sweep(path.parent)
    with _block(Unfinished(path, _made(path))) as unfinished:
        yield unfinished


@contextmanager
def take_over(path: Path, *, no_other_copy: bool) -> Iterator[Unfinished]:
    """Open the folder of an interrupted release, to go on with it in a block: see `begin`.

    ``no_other_copy`` is the operator's word that no copy of it was or will be resumed.
    `BadInputError` if there is none, it is damaged, nobody can go on with it, or another process
    does.
    """
    if not (_is_ours(path) and (path / JOURNAL).is_file()):
        raise BadInputError(
            f"{path} is no folder of an unfinished release: its name ends in {SUFFIX}, and an "
            "interrupted release that had paid leaves it beside its --out"
        )
    if (lock := _claimed(path)) is None:
        raise BadInputError(f"another process goes on with {path}: wait for it, or stop it")
    unfinished = Unfinished(path, lock, no_other_copy=no_other_copy)
    try:
        if unfinished.checkpoint.stuck:
            unfinished.checkpoint.close()
            raise BadInputError(unfinished.told())
    except BaseException:
        lock.close()
        raise
    with _block(unfinished):
        yield unfinished


@contextmanager
def _block(unfinished: Unfinished) -> Iterator[Unfinished]:
    try:
        yield unfinished
    except BaseException as error:
        paid = unfinished.paid
        unfinished.close(keep=paid)
        if isinstance(error, KeyboardInterrupt) and (paid or unfinished.named is not None):
            told = unfinished.told() if paid else f"the release is written to {unfinished.named}"
            raise InterruptedRun(told) from error
        if paid and unfinished.checkpoint.advanced and STUCK not in str(error):
            error.add_note(unfinished.told())
        raise
    unfinished.close(keep=False)


def _made(path: Path) -> IO[bytes]:
    """Make the folder, and return its lock."""
    for _ in range(_TRIES):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            if not _is_ours(path):
                raise BadInputError(
                    f"{path} is in the way and is no folder of an unfinished release; move it, or "
                    "name another --out"
                ) from None
            if (lock := _claimed(path)) is None:
                if path.exists():
                    raise BadInputError(
                        f"another process is making {path.with_suffix('')}; name another --out, "
                        "or wait"
                    ) from None
            elif _is_paid(path / JOURNAL):
                with lock:
                    told = Unfinished(path, lock).told()
                raise BadInputError(f"{path} is of an interrupted release: {told}") from None
            else:
                _remove(path, lock)
            continue
        if (lock := _claimed(path)) is not None:
            return lock
    raise BadInputError(f"other processes keep taking {path}; name another --out")


def _sweep(parent: Path) -> None:
    """Remove the folders of dead runs that had paid for nothing."""
    with suppress(OSError):
        for path in [*parent.glob(f"*{SUFFIX}")]:
            if _is_ours(path) and (path / LOCK).is_file() and not _is_paid(path / JOURNAL):
                lock = _claimed(path)
                if lock is not None:  # only now nobody else can pay
                    lock.close() if _is_paid(path / JOURNAL) else _remove(path, lock)


def _claimed(path: Path) -> IO[bytes] | None:
    """Return the folder's lock file, locked by this process; None if another one has it."""
    try:
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:  # the folder was removed meanwhile
        return None
    lock, ours = os.fdopen(handle, "r+b", buffering=0), False
    try:
        with suppress(FileNotFoundError):  # whoever had it before may have removed it
            ours = try_lock(lock) and os.path.samestat(os.fstat(handle), (path / LOCK).stat())
    finally:
        if not ours:
            lock.close()
    return lock if ours else None


def _remove(path: Path, lock: IO[bytes]) -> None:
    if os.name == "nt":  # an open file cannot be removed there
        lock.close()
    shutil.rmtree(path, ignore_errors=True)
    lock.close()


def _is_ours(path: Path) -> bool:
    """Return whether a path is such a folder: nothing else may be touched."""
    if path.is_symlink() or not path.is_dir() or not path.name.endswith(SUFFIX):
        return False
    return {each.name for each in path.iterdir()} <= {LOCK, JOURNAL, SPACE, RELEASE}


def _is_paid(journal: Path) -> bool:
    """Return whether a draw or a charge began, or whether one cannot tell."""
    claimed = False
    try:
        with journal.open("rb") as lines:
            for line in lines:
                if b' {"begin":' in line:
                    return True
                if b' {"claim":' in line:
                    claimed = b' {"claim":null' not in line
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    return claimed
