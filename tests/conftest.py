"""What every test run needs: kernels compiled once, BLAS on one thread, noise that comes again."""

import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dualquery", "mwem", "solvers")

# BLAS threads that wait spin, and slow other workers; said before NumPy is imported.
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")


# On a busy machine a first example may take long: no test asserts a time.
settings.register_profile("dualquery", deadline=None)
settings.load_profile("dualquery")


def pytest_configure(config: pytest.Config) -> None:
    """Let workers share the compilation of kernels: each would compile all of them."""
    if (worker := getattr(config, "workerinput", None)) is None:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    from solvers.compiled import compile_module

    for module in kernel_modules()[number :: worker["workercount"]]:
        compile_module(module)


def kernel_modules() -> list[str]:
    """Return the names of all modules of kernels, the longest file first."""
    every = (file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))
    files = [file for file in every if "\n@kernel(" in file.read_text("utf-8")]
    files.sort(key=lambda file: (-file.stat().st_size, file))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Draw the same noise whenever a test is run (not in `tests/room/`, nor by `system_noise`)."""
    if item.path.parent == ROOT / "tests" / "room" or item.get_closest_marker("system_noise"):
        return (yield)
    # Not at the top: it imports NumPy and kernels, and both must wait for what this file sets.
    from tests.noise import repeatable

    with repeatable(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """Draw the same noise for what several tests share, whichever of them asks first."""
    if fixturedef.scope == "function":
        return (yield)
    from tests.noise import repeatable

    with repeatable(f"{fixturedef.baseid} {fixturedef.argname} {fixturedef.params}"):
        return (yield)


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all state folders: numbered ones would be listed anew for each test."""
    return tmp_path_factory.mktemp("states")


@pytest.fixture(autouse=True)
def state(states: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own for each test: none may touch the user's."""
    folder = Path(tempfile.mkdtemp(dir=states))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def _ctrl_c_is_heard() -> Iterator[None]:
    """A shell lets what it runs in the background ignore Ctrl-C: these tests hear it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def levels_of_the_log() -> Iterator[None]:
    """Leave the log as it was: --quiet and --verbose set its levels for the whole process."""
    names = (*PACKAGES, "experiments", "dualquery.privacy_warnings")
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)
