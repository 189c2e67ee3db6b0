"""LP and MPS files, read by SCIP.

Read are linear programs whose variables are all 0-1, in a process of its own: a file that makes
SCIP crash or hang is a malformed file. What SCIP says of one that it cannot read goes into the
error, and nowhere else. Back come a JSON text and NumPy's arrays (no pickle).
"""

import contextlib
import io
import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from solvers.child import ChildReader
from solvers.constraints import Rows
from solvers.errors import MalformedFileError
from solvers.formats.program import MARK, Program, summed_rows

INFINITY = 1e20  # SCIP's own
_FIRST_WORDS = {".lp": r"(max|min)(imi[sz]e|imum)?", ".mps": r"\S+"}
_LAST_WORDS = {".lp": "end", ".mps": "endata"}
"""SCIP takes a file that is cut off for a whole one, and passes over what it does not know."""

_NO_NUMBER = ("BV", "FR", "MI", "PL")  # bounds of MPS without one
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.A | re.I)
_DOUBLED = re.compile(r"[<>=]+\s*[-+]?[\d.]+(?:e[-+]?\d+)?\s*[<>=]+", re.IGNORECASE)

_ROWS = ("indptr", "attributes", "coefficients", "lower", "upper")
_SCIP = ChildReader("solvers.formats.scip_reader", "answer")


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


def read_program(text: str, suffix: str, name: str) -> Program:
    """Read a 0-1 program from text, ``.lp`` or ``.mps``; messages name the file.

    Raises
    ------
    MalformedFileError
        If SCIP cannot read the text, or it is not a linear program in 0-1 variables.
    """
    _check_ends(text, suffix, name)
    # SCIP knows the American spelling only, and wants right-hand sides even if all are 0.
    known = re.sub(r"(?im)^([ \t]*m(?:ax|in)imi)s(e\b)", r"\1z\2", text, count=1)
    if suffix == ".mps" and not re.search(r"^RHS", known, re.MULTILINE):
        known = re.sub(r"(?m)^(?=RANGES|BOUNDS|ENDATA)", "RHS\n", known, count=1)
    model = _read(known, suffix, name)
    attributes = _marked(text, name)
    variables = _ordered(model.getVars(), attributes, name)
    place = {variable.getIndex(): column for column, variable in enumerate(variables)}
    for variable in variables:
        _check_binary(variable, name)
    sign = -1.0 if model.getObjectiveSense() == "minimize" else 1.0
    indptr, columns, coefficients, sides = [0], [], [], []
    for row in model.getConss(transformed=False):
        if row.getConshdlrName() != "linear":
            raise MalformedFileError(
                f"{name}: row {row.name!r} is of the kind {row.getConshdlrName()!r}; "
                "only linear 0-1 programs are read"
            )
        columns += [place[variable.getIndex()] for variable in model.getConsVars(row)]
        coefficients += model.getConsVals(row)
        indptr.append(len(columns))
        sides.append((model.getLhs(row), model.getRhs(row)))
    for column, variable in enumerate(variables):
        lower, upper = max(variable.getLbOriginal(), 0.0), min(variable.getUbOriginal(), 1.0)
        if (lower, upper) != (0.0, 1.0):  # a fixed variable
            columns.append(column)
            coefficients.append(1.0)
            indptr.append(len(columns))
            sides.append((lower, upper))
    bounds = np.array(sides, np.float64).reshape(len(sides), 2)
    bounds[np.abs(bounds) >= INFINITY] *= math.inf
    return Program(
        names=tuple(variable.name for variable in variables),
        objective=sign * np.array([variable.getObj() for variable in variables], np.float64),
        constant=sign * float(model.getObjoffset()),
        terms=np.zeros((0, 1), np.int32),
        weights=np.zeros(0),
        rows=summed_rows(indptr, columns, coefficients, bounds, len(variables)),
        minimises=sign < 0,
        attributes=attributes,
    )


def _check_ends(text: str, suffix: str, name: str) -> None:
    last, comment = _LAST_WORDS[suffix], r"\\.*" if suffix == ".lp" else r"(?m)^\*.*"
    bare = re.sub(comment, "", text).rstrip()
    words = bare.split()
    if not words or words[-1].lower() != last:
        raise MalformedFileError(
            f"{name}, line {bare.count(chr(10)) + 1}: the file ends without {last.upper()}: is it "
            "cut off?"
        )
    end = re.search(rf"(?im)^[ \t]*{last}(?=\s+\S)", bare)
    if fault := end or (_DOUBLED.search(bare) if suffix == ".lp" else None):
        line = bare.count("\n", 0, fault.end()) + 1
        said = f"more follows {last.upper()}" if end else f"found {fault[0]!r}; expected one sign"
        raise MalformedFileError(f"{name}, line {line}: {said}")
    if not re.fullmatch(_FIRST_WORDS[suffix], words[0], re.IGNORECASE):
        raise MalformedFileError(f"{name}: found {words[0]!r}; expected Maximize or Minimize first")
    if suffix == ".mps":
        _check_mps(bare, name)


def _check_mps(text: str, name: str) -> None:
    """Refuse what SCIP passes over: rows and columns that are not named, and words for numbers."""
    section, kinds, columns = "", dict[str, str](), set[str]()
    for number, line in enumerate(text.split("\n"), 1):
        words, numbers, known = line.split(), list[str](), True
        if line[:1].strip():
            section = words[0].upper()
        elif section == "ROWS" and words:
            kinds[words[-1]] = words[0].upper()
        elif section in ("COLUMNS", "RHS", "RANGES") and "'MARKER'" not in words:
            if section == "COLUMNS":
                columns.update(words[:1])
            # A set of right-hand sides, ranges or bounds may have no name.
            pairs = words[1 if section == "COLUMNS" else len(words) % 2 :]
            numbers, known = pairs[1::2], kinds.keys() >= {*pairs[::2]} and len(pairs) % 2 == 0
        elif section == "BOUNDS" and words:
            known = not columns.isdisjoint(words[1:3])
            numbers = [] if words[0].upper() in _NO_NUMBER else words[-1:]
        if not known or not all(map(_NUMBER.fullmatch, numbers)):
            raise MalformedFileError(
                f"{name}, line {number}: found {line.strip()[:60]!r}; expected a number for a "
                "bound of a column, or for each of the rows that ROWS names"
            )
    if "N" not in kinds.values():
        raise MalformedFileError(f"{name}: ROWS has no row N, which is the objective")


def _read(text: str, suffix: str, name: str) -> Any:
    import pyscipopt

    model = pyscipopt.Model()
    # Numbers as small as the file's are no zeros.
    model.setParam("numerics/epsilon", 1e-20)
    complaint = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="dualquery-") as folder:
        path = Path(folder) / f"program{suffix}"
        path.write_text(text, encoding="utf-8")
        model.redirectOutput()
        model.hideOutput()
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            try:
                model.readProblem(str(path))
            except Exception:  # PySCIPOpt's own are of no class
                raise MalformedFileError(_explained(complaint.getvalue(), name)) from None
    return model


def _explained(complaint: str, name: str) -> str:
    """Return SCIP's complaint about a file as an error of ours."""
    found = re.search(r"[Ee]rror in line (\d+)(?: (\(.*?\)))?(?:: *)?(.*)", complaint)
    if found is None:
        first = next(iter(complaint.splitlines()), "").partition("ERROR:")[2].strip()
        return f"{name} cannot be read: {first or 'SCIP gives no reason'}"
    line, near, reason = found.groups()
    where = f" near {near}" if near else ""
    return f"{name}, line {line}: {reason.strip() or 'cannot be read'}{where}"


def _ordered(variables: list[Any], attributes: int | None, name: str) -> list[Any]:
    """Return variables in the order in which the file names them, our own attributes first."""
    # One more than there are variables is enough to miss one.
    stated = min(attributes or 0, len(variables) + 1)
    own = {f"x{attribute}": attribute for attribute in range(stated)}
    missing = own.keys() - {variable.name for variable in variables}
    if missing:
        raise MalformedFileError(
            f"{name}: the comment {MARK!r} states {attributes} attributes, but there is no "
            f"variable {min(missing, key=own.__getitem__)}"
        )
    return sorted(
        variables, key=lambda variable: own.get(variable.name, len(own) + variable.getIndex())
    )


def _check_binary(variable: Any, name: str) -> None:
    lower, upper = variable.getLbOriginal(), variable.getUbOriginal()
    if variable.vtype() == "CONTINUOUS":
        raise MalformedFileError(
            f"{name}: variable {variable.name!r} is not declared binary; only 0-1 programs are read"
        )
    if lower <= -1.0 or upper >= 2.0:
        raise MalformedFileError(
            f"{name}: integer variable {variable.name!r} may be {lower:g} to {upper:g} as SCIP "
            "reads it; only 0-1 programs are read, so bound it by 0 and 1, LO before UP"
        )


def _marked(text: str, name: str) -> int | None:
    """Return the number of attributes that our own writer's comment states."""
    found = re.search(rf"^[\\*] {MARK}(.*)$", text, re.MULTILINE)
    if found is None:
        return None
    if not re.fullmatch(r" *\d{1,10} *", found[1], re.ASCII):
        raise MalformedFileError(
            f"{name}: the comment {found[0]!r} does not end with a number of attributes"
        )
    return int(found[1])
