"""Whether a folder is on this machine: locks of network file systems cannot be relied on.

How it is told: on Linux by the type of the folder's mount (``/proc/self/mountinfo``), on macOS by
the types that ``mount`` lists, on Windows by ``GetDriveType`` and by names that begin with two
backslashes. Where none of these says anything, a folder is taken to be local; an unlisted file
system, and one that hides behind another (an overlay on NFS), is not recognised.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from dualquery.runtime.errors import BadInputError

_NETWORK = (
    "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "davfs2", "ftp", "glusterfs", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb", "smb2",
    "smb3", "smbfs", "sshfs", "webdav",
)  # fmt: skip
_FUSE = ("fuse.", "macfuse_", "osxfuse_")
_FUSE_NETWORK = ("sshfs", "glusterfs", "ceph", "s3fs", "gcsfuse", "rclone", "davfs", "curlftpfs")
_REMOTE_DRIVE = 4


def require_local(folder: Path, what: str) -> None:
    """Refuse a folder on a network file system, where one can tell.

    Parameters
    ----------
    folder
        An existing folder, absolute and without symbolic links.
    what
        What the message is about.

    Raises
    ------
    BadInputError
        If the folder is on a network file system.
    """
    kind = network_kind(folder)
    if kind is not None:
        raise BadInputError(
            f"{what} is on a network file system ({kind}), whose locks cannot be relied on; keep "
            "it on a disk of this machine"
        )


def network_kind(folder: Path) -> str | None:
    """Return the name of the network file system that a folder is on, None for a local one."""
    if sys.platform == "win32":
        return _windows_kind(folder)
    kind = kind_of(folder, _mounts())
    if kind is None:
        return None
    name = kind.lower()
    remote = name in _NETWORK or (
        name.startswith(_FUSE) and any(part in name for part in _FUSE_NETWORK)
    )
    return kind if remote else None


def kind_of(folder: Path, mounts: list[tuple[Path, str]]) -> str | None:
    """Return the type of the mount that a folder is on: the last of the longest that match."""
    best: tuple[int, str] | None = None
    for point, kind in mounts:
        depth = len(point.parts)
        if (point == folder or point in folder.parents) and (best is None or depth >= best[0]):
            best = depth, kind
    return None if best is None else best[1]


def linux_mounts(table: str) -> list[tuple[Path, str]]:
    """Return mount points and types of a ``mountinfo``; odd characters are octal there."""
    found = []
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) > 4 and kind:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
            found.append((Path(point), kind[0]))
    return found


def macos_mounts(listing: str) -> list[tuple[Path, str]]:
    """Return mount points and types of what ``mount`` prints: ``X on POINT (TYPE, ...)``."""
    lines = re.findall(r"^.*? on (/.*) \(([^,)]+)", listing, flags=re.MULTILINE)
    return [(Path(point), kind) for point, kind in lines]


def _mounts() -> list[tuple[Path, str]]:
    try:
        if sys.platform == "darwin":
            return macos_mounts(
                subprocess.run(
                    ["/sbin/mount"], capture_output=True, text=True, check=True, timeout=10
                ).stdout
            )
        return linux_mounts(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
    except (OSError, subprocess.SubprocessError):
        return []


def _windows_kind(folder: Path) -> str | None:
    import ctypes

    if folder.drive.startswith("\\\\"):
        return "a share"
    drive_type = ctypes.windll.kernel32.GetDriveTypeW  # type: ignore[attr-defined]  # on Windows
    return "a network drive" if drive_type(folder.anchor) == _REMOTE_DRIVE else None
