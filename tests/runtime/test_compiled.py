"""Loops compile when they are called, once, and are kept in the user's cache folder."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from solvers.compiled import kernel
from solvers.user_folders import user_folder
from tests.conftest import ROOT, kernel_modules

LOOPS = """
from numba import int64
from solvers.compiled import kernel
from {helper} import plus

@kernel(int64(int64[::1]))
def total(numbers):
    result = 0
    for number in numbers:
        result = plus(result, number)
    return result
"""
HELPER = """
from numba import int64
from solvers.compiled import kernel


@kernel(int64(int64, int64))
def plus(one, other):
    return one + {times} * other
"""
CALL = """
import logging, numpy as np
logging.basicConfig(format="%(levelname)s %(message)s")
from {loops} import total
print(total(np.arange(4)), total.stats.cache_hits.total())
"""


def run(code: str, cache: Path, *paths: Path) -> tuple[str, str]:
    """Run code in a process whose cache folder is another; return what it prints."""
    path = os.pathsep.join(map(str, (*paths, ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": path},
        cwd=cache.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def written(folder: Path, times: int = 1) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "my_loops.py").write_text(LOOPS.format(helper="my_helper"))
    (folder / "my_helper.py").write_text(HELPER.format(times=times))
    return CALL.format(loops="my_loops")


def test_importing_kernels_compiles_none_and_writes_nothing(tmp_path: Path) -> None:
    code = f"""
import importlib
from numba.core.dispatcher import Dispatcher
for name in {kernel_modules()!r}:
    for value in vars(importlib.import_module(name)).values():
        assert not (isinstance(value, Dispatcher) and value.overloads), (name, value)
"""
    run(code, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_kernels_have_one_signature_each() -> None:
    several = {"cumulative_sums", "block_sum", "look_up"}  # of scores, and of a game's
    seen = 0
    for name in kernel_modules():
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Dispatcher) and hasattr(value, "declared"):
                seen += 1
                assert len(value.declared) == 1 or value.__name__ in several, (name, value)
                assert not value.overloads or len(value.overloads) == len(value.declared)
    assert seen >= 148


def test_no_call_adds_a_signature() -> None:
    @kernel("int64(int64[::1], int64)")
    def add(numbers: np.ndarray, more: int) -> int:
        return int(numbers.sum() + more)

    assert add.overloads == {}
    numbers = np.arange(4)
    assert add(numbers, 1) == add(numbers, np.int32(1)) == add(numbers, np.uint8(1)) == 7
    for other in (numbers.astype(np.int32), numbers[::2], np.asfortranarray(np.ones((2, 2)))):
        with pytest.raises(TypeError):
            add(other, 1)
    assert len(add.nopython_signatures) == 1


def test_a_copy_elsewhere_finds_what_is_compiled_and_a_change_is_seen(tmp_path: Path) -> None:
    """Also a change in the file of a loop that is inlined; a damaged cache is made anew."""
    first, second, cache = (tmp_path / name for name in ("first", "second", "cache"))
    code = written(first)
    assert run(code, cache, first)[0] == "6 0"
    assert written(second) == code
    assert run(code, cache, second)[0] == "6 1"
    written(second, times=20)  # another size: Python may not see a change within a second
    assert run(code, cache, second)[0] == "120 0"
    assert not list(tmp_path.rglob("__pycache__/*.nb?"))
    assert list(cache.rglob("dualquery/kernels/*/my_loops.total-*.nbi"))
    for file in cache.rglob("*.nb?"):
        file.write_bytes(b"damaged")
    assert run(code, cache, second)[0] == "120 0"


def test_without_a_folder_to_write_it_runs_and_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    output, errors = run(written(tmp_path / "code"), tmp_path / "cache", tmp_path / "code")
    assert output == "6 0"
    assert errors.count("WARNING") == 1
    assert "NUMBA_CACHE_DIR" in errors
    assert not list(tmp_path.rglob("*.nb?"))


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/dualquery"),
        ("linux", {"XDG_CACHE_HOME": "c"}, "HOME/.cache/dualquery"),
        ("darwin", {}, "HOME/Library/Caches/dualquery"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/dualquery/Cache"),
        ("win32", {}, "HOME/AppData/Local/dualquery/Cache"),
    ],
)
def test_the_folder_follows_the_platform(
    tmp_path, monkeypatch, platform, variables, expected
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, variables.get(name, ""))
    assert user_folder("cache") == Path(expected.replace("HOME", str(tmp_path)))
