"""Feed spoilt inputs to parsers, in a process of its own: ``COUNT FIRST PARSER...``."""

import contextlib
import faulthandler
import json
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

PLACE = "DUALQUERY_HOSTILE_PLACE"
"""Variable of the environment: a file that says which input is being read."""

TIMEOUT = 300.0  # seconds for one input; a machine may be busy, so this is far above what any takes

SPACE = 3 << 30  # bytes of address space beyond what the libraries have once they are loaded

MEMORY = 1 << 30  # bytes that are said to be free: readers ask before they take much

_MOST_FAULTS = 20


def limit_space() -> None:
    """Limit the address space, where the system can."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + SPACE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(arguments: list[str]) -> None:
    """Run some parsers."""
    count, first, names = int(arguments[0]), int(arguments[1]), arguments[2:]
    import dualquery.runtime.resources as resources
    from dualquery.runtime.errors import BadInputError
    from tests.hostile.parser import DOCUMENTED
    from tests.hostile.parsers import PARSERS

    resources.available_memory = lambda: MEMORY
    warnings.simplefilter("ignore")
    unraised: list[str] = []
    # What no one can catch, since a library called us, is printed with a traceback.
    sys.unraisablehook = lambda what: unraised.append(f"{what.err_msg}: {what.exc_value!r}")
    printed = _Printed()
    faulthandler.enable(printed.before)
    place = os.open(os.environ[PLACE], os.O_CREAT | os.O_WRONLY) if PLACE in os.environ else None
    limited = False
    for name in names:
        parser = PARSERS[name]
        examples, valid = parser.examples(), 0
        for example in examples:  # and whatever is loaded at first use is loaded now
            with _folder() as folder, contextlib.suppress(BadInputError):
                parser.read(example, folder)
                valid += 1
        assert 2 * valid > len(examples), f"{name}: only {valid} of its examples are read"
        if not limited:
            limit_space()
            limited = True
        refused = accepted = 0
        faults = []
        for number in range(first, first + count):
            data = parser.input(examples, f"{name} {number}")
            if place is not None:
                os.pwrite(place, f"{name} {number}".ljust(60).encode(), 0)
            faulthandler.dump_traceback_later(TIMEOUT, exit=True, file=printed.before)
            try:
                with _folder() as folder:
                    unraised.clear()
                    accepts = True
                    try:
                        parser.read(data, folder)
                    except DOCUMENTED:
                        accepts = False
                    assert not unraised, f"printed with a traceback: {unraised}"
                    assert b"panicked at" not in printed.new(), "a library printed its panic"
                accepted += accepts
                refused += not accepts
            except BaseException as error:
                lines = traceback.format_exception(error)
                faults.append(f"{name} {number}: {data[:300]!r}\n{''.join(lines)[-1500:]}")
            finally:
                faulthandler.cancel_dump_traceback_later()
            if len(faults) >= _MOST_FAULTS:
                break
        line = {
            "parser": name, "count": refused + accepted + len(faults), "refused": refused,
            "accepted": accepted, "faults": faults,
        }  # fmt: skip
        print(json.dumps(line), flush=True)


class _Printed:
    """What libraries print to the standard error, which goes to a file meanwhile."""

    def __init__(self) -> None:
        self.before = os.dup(2)
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
        sys.stderr = os.fdopen(os.dup(self.before), "w")  # for the worker's own faults
        self._read = 0

    def new(self) -> bytes:
        """Return what was printed since this was asked last."""
        size = os.fstat(2).st_size
        found, self._read = os.pread(2, size - self._read, self._read), size
        return found


@contextlib.contextmanager
def _folder():
    path = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
