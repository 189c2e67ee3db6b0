"""``dualquery answer`` and ``dualquery sample``."""

import json
import os
import sys

import polars as pl
import pytest

import dualquery as package
from dualquery.cli.commands.answer import shown as as_shown


def test_answer_from_the_workload_and_from_the_records(dualquery, released) -> None:
    made = package.load_release(released)
    known = made.answer_table["query"][0]
    done = dualquery("answer", released, known, "age=0-25 & sex=Female & flag", "--json")
    first, second = done.json["answers"]
    assert first == {
        "query": known, "answered": known, "answer": made.answers[0], "source": "released",
        "interval": None, "low": None, "high": None, "level": None,
        "basis": "no measured numbers, so it has no interval",
    }  # fmt: skip
    assert second["source"] == "synthetic"
    row = made.synthetic
    share = ((row["age"] < 25) & (row["sex"] == "Female") & (row["flag"].cast(str) == "1")).mean()
    assert second["answer"] == pytest.approx(share)
    assert "so it has no interval" in dualquery("answer", released, "age=0-25").err
    assert dualquery("answer", released, known).out.splitlines() == [
        f"{as_shown(made.answers[0], None, None)[0]}\treleased\t{known}"
    ]


def test_sample_draws_records_and_says_from_what(dualquery, released, small, here) -> None:
    done = dualquery("sample", released, "--records", 700, "--out", "rows.csv", "--json")
    assert done.json == {"records": 700, "source": "records", "out": "rows.csv"}
    assert pl.read_csv(here / "rows.csv").height == 700
    shown = dualquery("sample", released, "--records", 5, "--out", "few.parquet", "--seed", 1)
    assert "which repeat: no model" in shown.out
    assert dualquery("release", *small[1:4], "--mechanism", "independent", "--out", "own").code == 0
    shown = dualquery("sample", "own", "--records", 5, "--out", "more.parquet")
    assert "5 records from the model" in shown.out
    again = dualquery("sample", "own", "--records", 5, "--out", "more.parquet")
    assert "exists already" in again.refusal


def test_a_csv_file_of_records_is_written_like_the_table(dualquery, here) -> None:
    kinds = {"name": "size", "kind": "categorical", "values": ["1.5", "2.0"]}
    price = {"name": "price", "kind": "numeric", "edges": [0, 1000, 9000], "within": [2.5, 1234.5]}
    town = {"name": "town", "kind": "categorical", "values": ["Köln", "Ulm; Süd"]}
    (here / "s.json").write_text(
        json.dumps({"declared": True, "columns": [kinds, price, town]}), encoding="utf-8"
    )
    lines = ["size;price;town", *["1,5;2,5;Köln", '2,0;1.234,5;"Ulm; Süd"'] * 100]
    (here / "t.csv").write_text("\n".join(lines), encoding="latin-1")
    words = "delimiter=;,encoding=latin-1,decimal=,"
    made = ("--schema", "s.json", "--mechanism", "independent", "--way", 2, "--out", "r")
    assert dualquery("release", "t.csv", "--csv", words, *made).code == 0
    done = dualquery("sample", "r", "--records", 90, "--out", "rows.csv")
    assert f"written to rows.csv like the table of the release (--csv '{words}')" in " ".join(
        done.out.split()
    )
    found = (here / "rows.csv").read_text(encoding="latin-1").splitlines()
    assert found[0] == "size;price;town"
    cells = [line.split(";", 2) for line in found[1:]]
    assert [{line[place] for line in cells} for place in range(3)] == [
        {"1,5", "2,0"}, {"2,5", "1234,5"}, {"Köln", '"Ulm; Süd"'}
    ]  # fmt: skip
    assert dualquery("evaluate", "r", "rows.csv", "--json").code == 0  # reads it by itself
    plain = dualquery("sample", "r", "--records", 9, "--out", "p.csv", "--csv", "delimiter=,").ok
    assert "written to p.csv as --csv 'delimiter=,' says" in " ".join(plain.out.split())
    assert (here / "p.csv").read_text(encoding="utf-8").startswith("size,price,town\n")
    done = dualquery("sample", "r", "--records", 9, "--out", "a.csv", "--csv", "encoding=ascii")
    assert "ascii cannot hold all texts" in done.refusal
    assert not (here / "a.csv").exists()
    done = dualquery("sample", "r", "--records", 9, "--out", "a.parquet", "--csv", words)
    assert "says how a CSV file is written; this is none" in done.last


def test_missing_values_are_written_as_the_table_has_them(dualquery, here) -> None:
    """Of several texts for a missing value, an empty cell if it is one of them."""
    number = {"kind": "numeric", "edges": [0, 5, 10], "missing": "category", "integer": True}
    columns = [
        {**number, "name": "a", "missing_values": ["N"]},
        {**number, "name": "b"},
        {**number, "name": "c", "missing_values": ["98", "99"]},
    ]
    for places, everywhere in ((["N", "", ""], [""]), (["N", "-1", "-1"], ["-1", "-2"])):
        schema = {"declared": True, "missing_values": everywhere, "columns": columns}
        (here / "s.json").write_text(json.dumps(schema), encoding="utf-8")
        lines = ["a,b,c", *["3,3,3", ",".join(places)] * 100]
        (here / "t.csv").write_text("\n".join(lines), encoding="utf-8")
        folder = f"r{len(everywhere)}"
        made = ("--schema", "s.json", "--mechanism", "independent", "--way", 1, "--out", folder)
        assert dualquery("release", "t.csv", *made).code == 0
        out = f"rows{places[1]}.csv"
        assert dualquery("sample", folder, "--records", 90, "--out", out).code == 0
        cells = [line.split(",") for line in (here / out).read_text(encoding="utf-8").split()[1:]]
        for place, text in enumerate(places):
            assert ({line[place] for line in cells} - {str(digit) for digit in range(11)}) == {text}
        assert dualquery("evaluate", folder, out, "--json").code == 0


def test_answer_reads_a_file_and_writes_one(dualquery, released, here) -> None:
    (here / "asked.txt").write_text("# shares\nage>=25\n\nmean(age) given sex=Male\n")
    done = dualquery("answer", released, "--file", "asked.txt", "--out", "told.csv", "--json")
    first, second = done.json["answers"]
    assert (first["query"], second["query"]) == ("age>=25", "mean(age) given sex=Male")
    told = pl.read_csv(here / "told.csv")
    assert told["answer"].to_list() == pytest.approx([first["answer"], second["answer"]])
    assert told.columns == [
        "query", "answered", "answer", "low", "high", "level", "source", "basis",
    ]  # fmt: skip
    (here / "wrong.txt").write_text("age>=25\nAGE>=25\n")
    done = dualquery("answer", released, "--file", "wrong.txt")
    assert "wrong.txt, line 2: there is no column 'AGE'; did you mean 'age'?" in done.refusal
    assert "made without questions of its own" in dualquery("answer", released).last
    assert "one of the two" in dualquery("answer", released, "flag", "--file", "wrong.txt").last


def test_a_release_answers_the_questions_of_its_own_list(dualquery, files, here) -> None:
    asked = ["flag", "age>=25 or flag", "mean(age) given sex=Male"]
    (here / "asked.txt").write_text("\n".join(asked))
    done = dualquery(
        "release", files[0], "--schema", files[1], "--queries", "asked.txt", "--out", "made",
    ).ok  # fmt: skip
    assert "3 questions of the list were asked by their parts" in " ".join(done.out.split())
    answers = dualquery("answer", "made", "--json").json["answers"]
    assert [each["query"] for each in answers] == asked
    assert all(each["low"] < each["answer"] < each["high"] for each in answers)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are texts elsewhere")
def test_files_whose_names_are_no_text_make_a_release_that_can_be_read(dualquery, files) -> None:
    schema, queries = (files[0].parent / os.fsdecode(b"n\xe4." + end) for end in (b"json", b"txt"))
    schema.write_bytes(files[1].read_bytes().replace(b'"name": "people",', b""))
    queries.write_text("sex=Male")
    asked = "--schema", schema, "--queries", queries, "--mechanism", "gaussian"
    assert dualquery("release", files[0], *asked, "--out", "made").ok
    (found,) = dualquery("answer", "made", "sex", "--json").ok.json["answers"]
    assert found["source"] == "released"


@pytest.mark.parametrize("query", ["colour=red", "(" * 5000, ""])
def test_answer_bad_queries(dualquery, released, query) -> None:
    assert dualquery("answer", released, query).refusal
