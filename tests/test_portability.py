"""No call that only POSIX has: where one is made, another system has its own way."""

import ast
from collections.abc import Iterator

import pytest

from tests.callers import found

MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "os": {
        "chroot", "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid",
        "getuid", "killpg", "mkfifo", "nice", "posix_fallocate", "posix_spawn", "pread", "pwrite",
        "register_at_fork", "sched_getaffinity", "setsid", "sync", "sysconf", "uname", "wait",
        "waitpid",
    },
    "signal": {"SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "alarm", "pause"},
}  # fmt: skip
WITH_ANOTHER_WAY = {
    "dualquery/runtime/files.py": "fcntl, where sys.platform is not Windows, whose msvcrt locks",
    "dualquery/runtime/resources.py": "sysconf, resource; None or no limit where there is none",
    "experiments/benchmarks/__init__.py": "getloadavg, and None where there is none",
    "experiments/harness/processes.py": "resource, where sys.platform is not Windows",
    "experiments/peers.py": "resource, where sys.platform is not Windows",
    "solvers/child.py": "resource, killpg; no limit of memory, and only one process ended there",
    "solvers/backends/external.py": "killpg, where sys.platform is not Windows, which has taskkill",
}
"""Files that make such a call, and what they do elsewhere."""


def posix_only(tree: ast.AST) -> Iterator[str]:
    """Yield what only POSIX has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            if node.module in MODULES:
                yield str(node.module)
            yield from (a.name for a in node.names if a.name in NAMES.get(node.module or "", ()))
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in NAMES.get(node.value.id, ())
        ):
            yield f"{node.value.id}.{node.attr}"


def test_only_files_with_another_way_make_calls_that_posix_alone_has() -> None:
    places = found(posix_only)
    assert places.keys() == WITH_ANOTHER_WAY.keys(), places


@pytest.mark.parametrize("text", ["import fcntl", "from os import fork", "signal.SIGKILL"])
def test_such_a_call_is_seen(text: str) -> None:
    assert [*posix_only(ast.parse(text))]
