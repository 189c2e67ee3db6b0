"""Whether a folder is on this machine: locks of network file systems cannot be relied on.

On Linux the type of the folder's mount tells, on Windows ``GetDriveType`` and names that begin with
two backslashes; elsewhere a folder is taken to be local. So is one on an unlisted file system, or
on one that hides behind another (an overlay on NFS).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from dualquery.runtime.errors import BadInputError

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = re.compile(
    r"afpfs|afs|beegfs|ceph|cifs|coda|davfs2?|ftp|glusterfs|gpfs|lustre|ncpfs|nfs[34]?|ocfs2"
    r"|orangefs|panfs|pvfs2|smb[23]?|smbfs|sshfs|webdav"
    r"|fuse\..*(sshfs|glusterfs|ceph|s3fs|gcsfuse|rclone|davfs|curlftpfs).*"
)
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
    kind = _windows_kind(folder) if sys.platform == "win32" else _mounted_kind(folder)
    if kind is not None:
        raise BadInputError(
            f"{what} is on a network file system ({kind}), whose locks cannot be relied on; keep "
            "it on a disk of this machine"
        )


def _mounted_kind(folder: Path) -> str | None:
    """Return the network file system of the last of the deepest mounts above a folder."""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    depth, kind = 0, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        # Odd characters are octal there.
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
        if point in (folder, *folder.parents) and len(point.parts) >= depth:
            depth, kind = len(point.parts), right.split()[0]
    return kind if _NETWORK.fullmatch(kind.lower()) else None


def _windows_kind(folder: Path) -> str | None:
    import ctypes

    if folder.drive.startswith("\\\\"):
        return "a share"
    drive_type = ctypes.windll.kernel32.GetDriveTypeW  # type: ignore[attr-defined]  # on Windows
    return "a network drive" if drive_type(folder.anchor) == _REMOTE_DRIVE else None
