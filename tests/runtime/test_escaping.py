"""Texts that leave stay texts: on terminals, in CSV, in HTML."""

import json
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.cli.main import main
from dualquery.cli.terminal import Terminal, start_logging
from dualquery.runtime import escaping

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eabc\r\udc80"


@given(st.floats(-1, 1))
def test_ends_of_intervals_are_rounded_outwards(end: float) -> None:
    assert float(escaping.share(end, -1)) - 1e-8 <= end <= float(escaping.share(end, 1)) + 1e-8


@given(ANY_TEXT)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = escaping.terminal_text(text)
    assert not {"Cc", "Cs"} & {unicodedata.category(c) for c in shown if c not in "\t\n"}
    assert {unicodedata.bidirectional(c) for c in shown}.isdisjoint(
        {"LRO", "RLO", "LRE", "RLE", "PDF", "LRI", "RLI", "FSI", "PDI"}
    )
    shown.encode("utf-8")
    assert len(escaping.terminal_line(text).splitlines()) <= 1
    assert "\t" not in escaping.terminal_line(text)


@given(st.dictionaries(ANY_TEXT, ANY_TEXT))
def test_json_reads_back_the_same(value: dict[str, str]) -> None:
    for ascii_only in (False, True):
        text = escaping.terminal_json(value, ascii_only=ascii_only)
        assert json.loads(text) == json.loads(json.dumps(value))
        assert text.isascii() or not ascii_only
        text.encode("utf-8")


def test_plain_text_is_left_alone() -> None:
    for text in ("", "age=30-35 & sex!=Female", "Zoë, 東京 ☃", "a\tb\nc"):
        assert escaping.terminal_text(text) == text
    for text in ("", "Female", "-5", "+1e3", "-0.25", "30-35", "a=b", "x@y", "-", "-999,0"):
        assert escaping.csv_cell(text) == text
    assert escaping.html_text("age 30-35") == "age 30-35"


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=1", "＝1", "-20 to -10", "=-5"],
)
def test_formulas_become_texts(text: str) -> None:
    assert escaping.csv_cell(text) == "'" + text
    assert escaping.csv_cell("'" + text) == "''" + text  # no two texts become one


def test_markup_becomes_text() -> None:
    assert escaping.html_text("<script>'\"&\x1b") == "&lt;script&gt;&#x27;&quot;&amp;\\u001b"


def test_messages_tables_json_and_the_log_are_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["schema", f"{HOSTILE}.csv"]) == 2
    Terminal().console.print(HOSTILE, markup=False)
    Terminal(machine=True).emit({"name": HOSTILE})
    Terminal().progress().note(HOSTILE)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    start_logging(verbose=False, quiet=False)
    logging.getLogger("dualquery.test").warning("column %s", HOSTILE)
    captured = capsys.readouterr()
    for output in (captured.out, captured.err):
        assert "owned" in output
        assert all(c in "\t\n" or c.isprintable() for c in output), repr(output)
