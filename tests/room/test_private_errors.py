"""Exact errors leave the room by one gate, which opens on the operator's explicit word."""

import ast
import json
import logging
from pathlib import Path

import numpy as np
import pytest

import dualquery
from dualquery.cli.main import DONE, main
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals
from dualquery.room.curator import Curator
from dualquery.room.private_errors import SEEN
from dualquery.room.randomness import SeededRandomness
from dualquery.rows.engines import load
from tests.cases import all_records, domain_of, records_of
from tests.tables import write_people

DOMAIN = domain_of(1, 3, 1)
WORKLOAD = Workload(np.array([[0, -1], [2, 8], [1, 9], [4, -1]], np.int32), DOMAIN)
ROOM = Path(__file__).parents[2] / "dualquery/room"
GATE = "private_errors.py"

OUTWARDS = frozenset({"logging", "warnings", "sys", "socket", "subprocess", "tempfile", "pathlib"})
"""Modules by which something may leave a process."""

WRITERS = frozenset(
    {"print", "open", "write", "write_text", "write_bytes", "save", "savez", "tofile"}
)
"""Functions and methods that show or keep what they are given."""


def ways_out(tree: ast.AST) -> list[str]:
    """Return what in a module may show or keep a value outside the room."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names if each.name.split(".")[0] in OUTWARDS]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OUTWARDS:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in WRITERS:
                found.append(f"{name}()")
    return found


def test_nothing_else_in_the_room_logs_prints_or_writes() -> None:
    found = {
        path.relative_to(ROOM).as_posix(): ways_out(ast.parse(path.read_text(encoding="utf-8")))
        for path in ROOM.rglob("*.py")
    }
    assert {path: ways for path, ways in found.items() if ways} == {GATE: ["logging"]}


@pytest.mark.parametrize("word", [False, None, "no", "true", 1])
def test_a_closed_gate_looks_at_nothing(word, caplog) -> None:
    """Only True is the word: a text or a number is none."""

    class Unread:
        n, bits = 12, DOMAIN.bits

        def total(self, statistic, threads):
            raise AssertionError("the rows were read")

    room = Curator(Unread(), WORKLOAD, (), SeededRandomness(0), show_private_errors=word)
    with caplog.at_level(logging.DEBUG):
        assert room.log_errors(np.zeros(4), "start") is None
    assert caplog.text == ""


def test_an_open_gate_tells_the_log_and_nobody_else(caplog) -> None:
    rows = records_of(all_records(DOMAIN))
    how = {"neighbours": Neighbours.ADD_REMOVE, "public_rows": 9}  # not the true number of rows
    room = Curator(rows, WORKLOAD, (), SeededRandomness(0), show_private_errors=True, **how)
    assert room.log_errors(np.zeros(4), "start") is None
    assert "NOT PRIVATE, for the operator only: start: max error 0.5000" in caplog.text
    cells = all_marginals(DOMAIN, 2)
    room.log_errors(np.zeros(len(cells)), "cells", cells)
    assert "cells: max error 0.2500" in caplog.text


@pytest.mark.parametrize("mechanism", ["dualquery -o rounds=9 -o samples=9", "mwem"])
def test_verbose_is_not_the_word(mechanism: str, tmp_path, capsys, caplog) -> None:
    table, schema = write_people(tmp_path)
    asked = ["--queries", "20", "--way", "1", "--seed", "1", "--json", "--verbose"]
    asked += ["--mechanism", *mechanism.split(), "--schema", str(schema), "--epsilon", "4"]
    stored = {}
    for word in ([], ["--show-private-errors"]):
        caplog.clear()
        out = tmp_path / f"out{len(word)}"
        assert main(["release", str(table), *asked, *word, "--out", str(out)]) == DONE
        assert ("NOT PRIVATE, for the operator only" in caplog.text) == bool(word)
        assert "max_error" not in json.dumps(json.loads(capsys.readouterr().out))
        stored[bool(word)] = dualquery.load_release(out)
    made, seen = stored[False], stored[True]
    np.testing.assert_array_equal(made.answers, seen.answers)
    assert seen.notes == (*made.notes, SEEN)
    data = load(str(table), str(schema))
    off = np.abs(made.answers - made.workload.counts(data.records, threads=1) / data.n)
    told = f"the released answers: max error {off.max():.4f}, mean error {off.mean():.4f}"
    assert told in caplog.text
