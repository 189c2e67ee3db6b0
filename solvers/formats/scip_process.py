"""SCIP's reader in a process of its own: a file that makes it crash or hang is a malformed file.

The text goes there, and back comes a JSON text with NumPy's arrays (no pickle).
"""

from __future__ import annotations

import io
import json

import numpy as np

from solvers.child import ChildReader
from solvers.constraints import Rows
from solvers.errors import MalformedFileError
from solvers.formats.program import Program

_ROWS = ("indptr", "attributes", "coefficients", "lower", "upper")
_SCIP = ChildReader("solvers.formats.scip_process", "answer")


def read_program_apart(text: str, suffix: str, name: str) -> Program:
    """Read a 0-1 program (see :func:`solvers.formats.scip_reader.read_program`).

    Raises
    ------
    MalformedFileError
        As that function, and if SCIP crashes on the text or does not end.
    """
    found = _SCIP.read(json.dumps([text, suffix, name]).encode())
    if found is None:
        raise MalformedFileError(f"{name} cannot be read: SCIP crashed on it, or did not end")
    fields, _, arrays = found.partition(b"\n")
    said = json.loads(fields)
    if "fault" in said:
        raise MalformedFileError(said["fault"])
    with np.load(io.BytesIO(arrays), allow_pickle=False) as stored:
        return Program(
            names=tuple(said["names"]),
            objective=stored["objective"],
            constant=said["constant"],
            terms=np.zeros((0, 1), np.int32),
            weights=np.zeros(0),
            rows=Rows(*(stored[part] for part in _ROWS)),
            minimises=said["minimises"],
            attributes=said["attributes"],
        )


def answer(request: bytes) -> bytes:
    """Read what `read_program_apart` sends: in the other process."""
    from solvers.formats.scip_reader import read_program

    text, suffix, name = json.loads(request)
    try:
        program = read_program(text, suffix, name)
    except MalformedFileError as error:
        return json.dumps({"fault": str(error)}).encode()
    fields = {
        "names": program.names,
        "constant": program.constant,
        "minimises": program.minimises,
        "attributes": program.attributes,
    }
    arrays = io.BytesIO()
    rows = {part: getattr(program.rows, part) for part in _ROWS}
    np.savez(arrays, objective=program.objective, **rows)
    return json.dumps(fields).encode() + b"\n" + arrays.getvalue()
