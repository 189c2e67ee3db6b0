"""Malformed files: every error names file, line, what was found and what is expected."""

import gzip
from pathlib import Path

import pytest

from solvers.errors import MalformedFileError
from solvers.formats import read_instance
from solvers.formats.clauses import encode
from solvers.formats.lp import lp_text, mps_text
from solvers.formats.opb import pseudo_boolean
from solvers.formats.program import named_program
from solvers.formats.wcnf import wcnf_text
from tests.solvers.instances import groups_of, problem, row

WCNF = [
    ("", 1, "no clause in the file"),
    ("h 1 0\n2 1 0 2 0\n", 2, "0 inside a clause"),
    ("c \x0c1 1 0\n", 1, "no clause in the file"),
    ("-3 1 0\n", 1, "the weight is -3"),
    ("1_000 1 0\n", 1, "found '1_000 1 0' where numbers in digits"),
    ("p wcnf 2 1 10\n10 3 0\n", 2, "variable 3, but the header declares 2"),
    (f"h 1 0\n1 1 0\n{2**53} -1 0\n", 3, r"the soft clauses weigh more than 2\^53"),
    ("p wcnf 2 1 10\nh 1 0\n", 2, "a clause 'h' in a file with a header"),
]

LP = [
    ("max\n x\nst\n x <= 1\nbin\n x\n", 6, "ends without END: is it cut off"),
    ("max\n 2 x y\nst\n x <= 1\nbin\n x\n y\nend", 3, r"expected sign .* near \('y'\)"),
    ("max\n x\nst\n x <= 1\nend", None, "'x' is not declared binary"),
    ("max\n x\nst\n r: x >= 0 <= 1\nbin\n x\nend", 4, "found '>= 0 <='; expected one sign"),
    ("max\n x\nst\n x <= 1\nbin\n x\nend\nbounds\n x <= 0\nend", 7, "more follows END"),
    ("max\n x\nst\n r: nan x + y <= 1\nbin\n x\n y\nend", None, "a number that is not finite"),
    ("max\n x\nst\n x <= 1\nbounds\n x <= 5\ngeneral\n x\nend", None, "may be 0 to 5"),
    ("\\ dualquery attributes 2\nmax\n x0\nst\n x0 <= 1\nbin\n x0\nend", None, "no variable x1"),
]

OPB = [
    ("", 1, "no variable in the file"),
    ("min: +1 x1 ;\n+1 x1 >= 1\n", 2, "ends without ';': is it cut off"),
    ("min: +1 x1 ;\n\n+1 x1 > 1 ;\n", 3, "found '.1 x1 > 1'; expected min:, max: or a constr"),
    ("min: +1.5 x1 ;\n", 1, "found '.1.5'; expected a whole number"),
    (f"max: +1 x1 ;\n+{2**53 - 1} x1 -1 x2 >= 1 ;\n", 2, r"numbers add up to 2\^53 or more"),
    ("* c\n+1 x1 x2\n +1 x3 >= 1 ;\n", 2, "a product in a constraint"),
]

MPS_HEAD = "NAME t\nROWS\n N o\n L r\nCOLUMNS\n"
MPS = [
    ("", 1, "ends without ENDATA"),
    (MPS_HEAD + " x o 1\nRHS\nBOUNDS\n XX B x 1\nENDATA\n", 9, "cannot be read"),
    (MPS_HEAD + " x o 1 R 1\nRHS\nENDATA\n", 6, "found 'x o 1 R 1'; expected a number"),
    (MPS_HEAD + " x o abc\nRHS\nENDATA\n", 6, "for each of the rows that ROWS names"),
    (MPS_HEAD + " x o 1\nRHS\n S r 2D1\nENDATA\n", 8, "found 'S r 2D1'"),
    (MPS_HEAD + " x o 1\nRHS\nBOUNDS\n UP B x\nENDATA\n", 9, "expected a number for a bound"),
    (MPS_HEAD + " x o 1\nRHS\nBOUNDS\n BV B z\nENDATA\n", 9, "a bound of a column"),
    ("NAME t\nROWS\n L r\nCOLUMNS\n x r 1\nRHS\nENDATA\n", None, "no row N"),
    (MPS_HEAD + " x o 1\nRHS\nENDATA\n", None, "'x' is not declared binary"),
]


@pytest.mark.parametrize(
    ("suffix", "text", "line", "message"),
    [(".wcnf", *case) for case in WCNF]
    + [(".lp", *case) for case in LP]
    + [(".mps", *case) for case in MPS]
    + [(".opb", *case) for case in OPB],
)
def test_malformed(tmp_path, capfd, suffix, text, line, message) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_text(text)
    with pytest.raises(MalformedFileError, match=message) as error:
        read_instance(path)
    assert str(error.value).startswith(f"{path}, line {line}: " if line is not None else f"{path}")
    assert capfd.readouterr() == ("", "")


def test_binary_and_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "a.wcnf"
    path.write_bytes(b"h 1 0\n\xff\xfe\n")
    with pytest.raises(MalformedFileError, match="line 2: not text"):
        read_instance(path)
    damaged = tmp_path / "a.lp.gz"
    damaged.write_bytes(gzip.compress(b"max")[:-4])
    with pytest.raises(MalformedFileError, match="cannot be decompressed"):
        read_instance(damaged)


@pytest.mark.parametrize("suffix", [".wcnf", ".lp", ".mps", ".opb"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, suffix: str) -> None:
    original = problem(
        5,
        {(0, 1): 2.0, (1, ~2, 3): -1.0, (4,): 1.0},
        groups_of([0, 2]),
        (row([1, 3, 4], [1.0, 2.0, 3.0], 1.0, 4.0),),
    )
    text = {
        ".wcnf": lambda: wcnf_text(encode(original), header=True),
        ".lp": lambda: lp_text(named_program(original)),
        ".mps": lambda: mps_text(named_program(original)),
        ".opb": pseudo_boolean(original).text,
    }[suffix]()
    path = tmp_path / f"cut{suffix}"
    for length in range(0, len(text.rstrip()), 3):
        path.write_text(text[:length])
        with pytest.raises(MalformedFileError):
            read_instance(path)
