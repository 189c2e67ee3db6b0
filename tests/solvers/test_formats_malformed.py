"""Malformed files: every error names file, line, what was found and what is expected."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from solvers.errors import MalformedFileError
from solvers.formats import read_instance
from solvers.formats.clauses import encode
from solvers.formats.lp import lp_text
from solvers.formats.mps import mps_text
from solvers.formats.wcnf import wcnf_text
from tests.solvers.instances import groups_of, problem, row

WCNF = [
    ("", 1, "no clause in the file"),
    ("c dualquery attributes 2 clauses 3\n1 1 0\n", 2, "states 3 clauses, but has 1"),
    ("h 1 2\n", 1, "does not end with 0"),
    ("h 1 0\n2 1 0 2 0\n", 2, "0 inside a clause"),
    ("h 1 x 0\n", 1, "found 'x' where a literal"),
    ("1.5 1 0\n", 1, "found '1.5' where a weight or h"),
    ("-3 1 0\n", 1, "the weight is -3"),
    ("h\n", 1, "does not end with 0"),
    ("p cnf 1 1\n1 0\n", 1, "expected p wcnf"),
    ("p wcnf 2 1 10\n10 3 0\n", 2, "variable 3, but the header declares 2"),
    ("p wcnf 2 3 10\n10 1 0\n", 2, "states 3 clauses, but has 1"),
    ("1 1 0\np wcnf 2 1 10\n", 2, "a header after the first clause"),
    ("p wcnf 2 1 10\nh 1 0\n", 2, "a clause 'h' in a file with a header"),
    ("p wcnf -2 1 10\n", 1, "the number -2"),
    ("h 4294967296 0\n", 1, "variable 4294967296"),
    ("c dualquery attributes many\n", 1, "cannot be read"),
    ("c dualquery scale 0\n", 1, "cannot be read"),
    ("c dualquery constraint 1 0 1 1\n", 1, "expected lower <= upper"),
    ("c dualquery attributes 1 clauses 1\n1 2 0\n", 2, "do not explain"),
    (
        "c dualquery attributes 2 clauses 2\nc dualquery group 1 2\nh 1 2 0\n1 1 0\n",
        3,
        "hard clauses are not",
    ),
]

LP = [
    ("", 1, "no Maximize or Minimize"),
    ("x + y\n", 1, "expected Maximize or Minimize first"),
    ("max\n x\nst\n x <= 1\nbin\n x\n", 6, "without End"),
    ("max\n x ++\nst\n x <= 1\nbin\n x\nend", 2, "the end"),
    ("max\n 2 x y\nst\n x <= 1\nbin\n x\n y\nend", 2, r"found 'y'; expected \+ or -"),
    ("max\n x\nst\n x + y\nbin\n x y\nend", 4, "expected <=, >= or ="),
    ("max\n x\nst\n x <= y\nbin\n x y\nend", 4, "found 'y'; expected a number"),
    ("max\n x\nst\n x <= 3 y\nbin\n x y\nend", 4, "right of the relation"),
    ("max\n x\nst\n c: 3 <= 4\nbin\n x\nend", 4, "has no variable"),
    ("max\n x\nst\n 3 <= x <= 2\nbin\n x\nend", 4, "lower above upper"),
    ("max\n x\nst\n x <= 1\nend", 4, "'x' is not declared binary"),
    ("max\n x\nst\n x <= 1\nbounds\n x <= 5\ngeneral\n x\nend", 8, "may be 0.0 to 5.0"),
    ("max\n x\nst\n x <= 1\nbounds\n y <= 1\nbin\n x\nend", 6, "which is in no row"),
    ("max\n x\nst\n x <= 1\nbounds\n x <=\nbin\n x\nend", 6, "expected a number"),
    ("max\n x\nst\n x <= 1\nbin\n x\n 3\nend", 7, "found '3' where a variable"),
    ("max\n [ x^2 ]\nst\n x <= 1\nbin\n x\nend", 2, "quadratic"),
    ("max\n x\nst\n x <= 1\nsos\n s1: x:1\nend", 5, "only linear 0-1"),
    ("max\n x\nmin\n x\nend", 3, "second objective"),
    ("max\n 1e999 x\nst\n x <= 1\nbin\n x\nend", 2, "not finite"),
    ("\\ dualquery attributes 2\nmax\n x0\nst\n x0 <= 1\nbin\n x0\nend", 1, "no variable x1"),
    (
        "\\ dualquery attributes 1\nmax\n x0 + c0\nst\n x0 + 2 c0 <= 2\nbin\n x0 c0\nend",
        5,
        "does not tie the term c0",
    ),
]

MPS_HEAD = "NAME t\nROWS\n N o\n L r\nCOLUMNS\n"
MPS = [
    ("", 1, "without ENDATA"),
    ("NAME t\nROWS\n L r\nENDATA\n", 4, "no row of type N"),
    ("NAME t\nROWS\n X r\nENDATA\n", 3, "expected N, L, G or E"),
    ("NAME t\nROWS\n N o\n L o\nENDATA\n", 4, "'o' is declared twice"),
    ("FOO\n", 1, "found the section 'FOO'"),
    ("QUADOBJ\n", 1, "only linear 0-1"),
    ("OBJSENSE\n  SIDEWAYS\n", 2, "the sense is 'SIDEWAYS'"),
    (MPS_HEAD + " x o\n", 6, "one or two pairs"),
    (MPS_HEAD + " x q 1\n", 6, "row 'q' is not declared"),
    (MPS_HEAD + " x o one\n", 6, "found 'one' where a number"),
    (MPS_HEAD + " x o nan\n", 6, "expected a finite one"),
    (MPS_HEAD + " x o 1\n x o 1\n", 7, "twice in row 'o'"),
    (MPS_HEAD + " x o 1\nRHS\n R r 1\n R r 2\n", 9, "two right-hand sides"),
    (MPS_HEAD + " x o 1\nRHS\n R q 1\n", 8, "row 'q' is not declared"),
    (MPS_HEAD + " x o 1\nRANGES\n R q 1\n", 8, "row 'q' is not declared"),
    (MPS_HEAD + " x o 1\nBOUNDS\n BV B y\n", 8, "'y', which is not in COLUMNS"),
    (MPS_HEAD + " x o 1\nBOUNDS\n XX B x\n", 8, "the type of bound is 'XX'"),
    (MPS_HEAD + " x o 1\nBOUNDS\n UP x\n", 8, "expected a type, a set"),
    (MPS_HEAD + " x o 1\nENDATA\n", 1, "'x' is not declared binary"),
    (
        MPS_HEAD + " M 'MARKER' 'INTORG'\n x o 1\nBOUNDS\n UP B x 3\nENDATA\n",
        7,
        "may be 0.0 to 3.0",
    ),
    (MPS_HEAD + " M 'MARKER' 'INTORG'\n x o 1\nBOUNDS\n FR B x\nENDATA\n", 7, "may be -inf to inf"),
]


@pytest.mark.parametrize(
    ("suffix", "text", "line", "message"),
    [(".wcnf", *case) for case in WCNF]
    + [(".lp", *case) for case in LP]
    + [(".mps", *case) for case in MPS],
)
def test_malformed(tmp_path: Path, suffix: str, text: str, line: int, message: str) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_text(text)
    with pytest.raises(MalformedFileError, match=message) as error:
        read_instance(path)
    assert str(error.value).startswith(f"{path}, line {line}: ")


def test_binary_and_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "a.wcnf"
    path.write_bytes(b"h 1 0\n\xff\xfe\n")
    with pytest.raises(MalformedFileError, match="line 2: not text"):
        read_instance(path)
    damaged = tmp_path / "a.lp.gz"
    damaged.write_bytes(gzip.compress(b"max")[:-4])
    with pytest.raises(MalformedFileError, match="cannot be decompressed"):
        read_instance(damaged)
    damaged.write_bytes(b"max")
    with pytest.raises(MalformedFileError, match="cannot be decompressed"):
        read_instance(damaged)


@pytest.mark.parametrize("suffix", [".wcnf", ".lp", ".mps"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, suffix: str) -> None:
    original = problem(
        5,
        {(0, 1): 2.0, (1, ~2, 3): -1.0, (4,): 1.0},
        groups_of([0, 2]),
        (row([1, 3, 4], [1.0, 2.0, 3.0], 1.0, 4.0),),
    )
    text = {".wcnf": lambda p: wcnf_text(encode(p), header=True), ".lp": lp_text, ".mps": mps_text}[
        suffix
    ](original)
    path = tmp_path / f"cut{suffix}"
    for length in range(0, len(text.rstrip()), 3):
        path.write_text(text[:length])
        with pytest.raises(MalformedFileError):
            read_instance(path)
