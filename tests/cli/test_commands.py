"""Every command does what it says, for people and for machines."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import dualquery as package
from dualquery.cli.main import FIRST_STEPS, app

ROOT = Path(__file__).resolve().parents[2]
RELEASE_KEYS = {
    "release", "format_version", "mechanism", "parameters", "options", "privacy", "rows", "bits",
    "queries", "way", "workload", "synthetic_records", "solver", "intervals", "measurements",
    "model", "means", "notes", "versions", "created",
}  # fmt: skip
COMMANDS = [
    "release", "evaluate", "answer", "table", "sample", "report", "budget", "solvers", "schema",
]  # fmt: skip


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- release --------------------------------------------------------------------------------------


def test_release_shows_its_privacy_and_writes_a_folder(dualquery, small, here) -> None:
    done = dualquery(*small, "--out", "mine")
    assert done.code == 0
    assert "differentially" in done.out
    assert "written to mine" in done.out
    assert "synthetic records" in done.out
    assert names(here) == {"mine"}
    assert package.load_release(here / "mine").privacy.private


def test_release_json_is_one_object_with_listed_keys(dualquery, small, here) -> None:
    done = dualquery(*small, "--out", "mine", "--json")
    assert done.code == 0
    assert done.json.keys() == RELEASE_KEYS
    assert done.json["release"] == "mine"
    stored = json.loads((here / "mine" / "release.json").read_text())
    unseen = {key: stored[key] for key in ("schema", "proof")}
    assert {**done.json, **unseen} == {"release": "mine", **stored}


@pytest.mark.parametrize("order", [["--json", "--quiet"], ["-q", "--json"]])
def test_json_with_quiet_is_still_json_and_nothing_else(dualquery, small, order) -> None:
    done = dualquery(*small, *order)
    assert done.code == 0
    assert done.json["mechanism"] == "dualquery"
    assert done.err == ""


def test_quiet_says_nothing(dualquery, small) -> None:
    done = dualquery(*small, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_verbose_logs_the_phases(dualquery, small, caplog) -> None:
    assert dualquery(*small, "--verbose").code == 0
    assert "reading the table" in caplog.messages


def test_default_folder_is_named_after_the_time(dualquery, small, here) -> None:
    assert dualquery(*small).code == 0
    (name,) = names(here)
    assert name.startswith("release-20")
    assert name.endswith("Z")


def test_the_default_table_is_adult(dualquery, here) -> None:
    done = dualquery(
        "release", "--queries", "20", "--rounds", "4", "--samples", "3", "--out", "a", "--json"
    )
    assert done.code == 0
    assert done.json["rows"] == 30_162
    assert done.json["privacy"]["private"]


def test_a_seed_is_marked_and_states_no_epsilon(dualquery, small) -> None:
    done = dualquery(*small, "--seed", "1", "--json")
    assert done.json["privacy"].keys() == {"private", "reasons_not_private"}
    assert not done.json["privacy"]["private"]
    shown = dualquery(*small, "--seed", "1", "--out", "b")
    assert "not private" in shown.out
    assert "epsilon" not in shown.out


def test_no_schema_is_marked_and_states_no_epsilon(dualquery, files) -> None:
    done = dualquery("release", files[0], "--queries", "20", "--mechanism", "laplace", "--json")
    assert done.code == 0
    assert done.json["privacy"].keys() == {"private", "reasons_not_private"}


def test_neither_folder_nor_json_nor_screen_tells_the_path_of_the_table(
    dualquery, small, here, files
) -> None:
    done = dualquery(*small, "--out", "mine", "--json")
    written = b"".join(path.read_bytes() for path in (here / "mine").iterdir())
    assert str(files[0]) not in done.out
    assert str(files[0]).encode() not in written


def test_options_and_shorthands_reach_the_mechanism(dualquery, files) -> None:
    base = ["release", files[0], "--schema", files[1], "--queries", "20", "--json"]
    done = dualquery(
        *base, "--iterations", "5", "-o", "samples=4", "-o", "free=coins", "--option", "burn_in=0",
        "--solver", "highs", "--solver-timeout", "3",
    )  # fmt: skip
    assert done.code == 0
    parameters = done.json["parameters"]
    assert (parameters["rounds"], parameters["samples"]) == (5, 4)
    assert (parameters["free"], parameters["burn_in"]) == ("coins", 0)
    assert (parameters["solver"], parameters["solver_timeout"]) == ("highs", 3)
    assert done.json["mechanism"] == "dualquery"
    other = dualquery(*base, "--mechanism", "uniform", "-o", "records=7", "--out", "u")
    assert other.json["synthetic_records"] == 7


@pytest.mark.parametrize(
    ("options", "queries"),
    [
        (["--queries", "all", "--way", "1"], 14),
        (["--queries", "all", "--way", "1", "--positive"], 12),
        (["--queries", "all", "--way", "1", "--query-columns", "age,flag"], 6),
        (["--marginals", "2", "--way", "2", "--max-cells", "4"], 8),
        (["--queries", "1_0", "--way", "2", "--positive", "--workload-seed", "3"], 10),
    ],
)
def test_workloads(dualquery, files, options, queries) -> None:
    done = dualquery(
        "release", files[0], "--schema", files[1], "--mechanism", "zero", *options, "--json"
    )
    assert done.code == 0
    assert done.json["queries"] == queries


def test_a_file_of_queries(dualquery, files, tmp_path) -> None:
    (tmp_path / "list.txt").write_text("# mine\nage=0-25 & sex=Male\n!flag\n")
    done = dualquery(
        "release", files[0], "--schema", files[1], "--mechanism", "gaussian",
        "--queries", tmp_path / "list.txt", "--json",
    )  # fmt: skip
    assert done.code == 0
    assert done.json["queries"] == 2


def test_json_shows_letters_as_they_are(dualquery, tmp_path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("größe\nklein\ngroß\n", encoding="utf-8")
    base = ["release", table, "--mechanism", "zero", "--queries", "all", "--way", "1"]
    assert dualquery(*base, "--out", tmp_path / "out").code == 0
    assert "größe=groß" in dualquery("answer", tmp_path / "out", "größe=groß", "--json").out


def test_names_that_look_like_markup_are_printed_as_they_are(dualquery, tmp_path, here) -> None:
    table = tmp_path / "t.csv"
    table.write_text("[bold],[/red]\nx,y\nz,w\n" * 1 + "x,w\n")
    done = dualquery("release", table, "--mechanism", "zero", "--queries", "all", "--way", "1")
    assert done.code == 0
    assert "[/red]" in done.out


def test_effective_options_are_stored(dualquery, small) -> None:
    options = dualquery(*small, "--epsilon", "0.5", "--accountant", "zcdp", "--json").json[
        "options"
    ]
    assert options["epsilon"] == 0.5
    assert options["delta"] == 1 / 300**2
    assert options["accountant"] == "zcdp"
    assert options["neighbours"] == "replace-one"
    assert options["seed"] is None
    assert options["mechanism"]["samples"] == 5


def test_the_panel_is_short_and_nothing_is_said_twice(dualquery, here) -> None:
    base = ["release", "--queries", "20", "--rounds", "4", "--samples", "3"]
    done = dualquery(*base, "--out", "short")
    words = " ".join(done.out.replace("│", " ").split())
    assert words.count("left out by a public filter") == 1
    assert "Optimal adaptive composition" not in words
    assert "answers are multiples of 1/" in words
    done = dualquery(*base, "--out", "long", "-v")
    words = " ".join(done.out.replace("│", " ").split())
    assert words.count("left out by a public filter") == 1
    assert "Optimal adaptive composition" in words
    stored = json.loads((here / "short" / "release.json").read_text())
    assert any("composition" in text for text in stored["privacy"]["assumptions"])


@pytest.mark.parametrize("why", ["seed", "schema"])
def test_not_private_is_said_once(dualquery, small, files, why) -> None:
    options = {"seed": [*small, "--seed", "1"], "schema": ["release", files[0], "--queries", "9"]}
    done = dualquery(*options[why])
    assert done.code == 0
    assert (done.out + done.err).count("not private") == 1


def test_what_looks_at_no_row_cites_no_theorem(dualquery, small) -> None:
    arguments = [*small[: small.index("--rounds")], "--mechanism", "zero", "--json"]
    (sentence, *_) = dualquery(*arguments).json["privacy"]["assumptions"]
    assert sentence == "The mechanism looks at no private row."


def test_phases_are_plain_lines_when_stderr_is_no_terminal(dualquery, small) -> None:
    done = dualquery(*small)
    lines = done.err.splitlines()
    assert lines[0].startswith("loading; kernels that are used for the first time")
    assert lines[-1] == "writing the release"
    assert all(lines)


@pytest.mark.parametrize("mechanism", ["dualquery", "mwem", "zero"])
def test_the_options_of_a_mechanism_are_listed(dualquery, here, mechanism) -> None:
    from dataclasses import fields

    from dualquery.mechanisms.registry import mechanism_class

    done = dualquery("release", "no-such-file.csv", "--mechanism", mechanism, "-o", "help")
    assert done.code == 0
    for field in fields(mechanism_class(mechanism)):
        assert f"\n{field.name}" in f"\n{done.out}"
    if mechanism == "dualquery":
        assert "Learning rate of the query player." in done.out
        assert "burn_in=0.0" in done.out
    assert names(here) == set()


def test_every_mechanism_documents_its_options() -> None:
    from dualquery.cli.mechanism_help import option_helps
    from dualquery.mechanisms.registry import BUILT_IN, mechanism_class

    for name in BUILT_IN:
        for option in option_helps(mechanism_class(name)):
            assert option.text, (name, option.title)


def test_help_names_every_mechanism(dualquery) -> None:
    from dualquery.mechanisms.registry import BUILT_IN

    words = " ".join(dualquery("release", "--help").out.replace("│", " ").split())
    for name in BUILT_IN:
        assert name in words


# --- --config -------------------------------------------------------------------------------------


def config(folder: Path, text: str) -> Path:
    path = folder / "options.toml"
    path.write_text(text)
    return path


def test_config_mirrors_the_options(dualquery, files, tmp_path, here) -> None:
    path = config(
        tmp_path,
        f"""
        data = "{files[0]}"
        schema = "{files[1]}"
        queries = 15
        way = 2
        positive = true
        workload-seed = 4
        query-columns = "age,sex,flag,constant"
        iterations = 5
        samples = 3
        epsilon = 2
        delta = 1e-7
        accountant = "zcdp"
        seed = 9
        threads = 2
        out = "mine"
        json = true
        quiet = true
        [option]
        free = "coins"
        burn_in = 0.5
        mixture = "equal"
        """,
    )
    done = dualquery("release", "--config", path)
    assert done.code == 0, done.err
    found = done.json
    assert found["release"] == "mine"
    assert (found["queries"], found["way"], found["workload"]["signed"]) == (15, 2, False)
    assert found["workload"]["seed"] == 4
    assert found["parameters"]["rounds"] == 5
    assert (found["parameters"]["free"], found["parameters"]["burn_in"]) == ("coins", 0.5)
    options = found["options"]
    assert (options["epsilon"], options["delta"], options["seed"]) == (2.0, 1e-7, 9)
    assert found["synthetic_records"] == 3


def test_the_command_line_wins_over_the_config(dualquery, small, tmp_path) -> None:
    path = config(tmp_path, "queries = 5\nepsilon = 3.0\nsigned = false\noption = ['free=coins']\n")
    done = dualquery(*small, "--config", path, "--signed", "--json")
    assert done.json["queries"] == 30
    assert done.json["options"]["epsilon"] == 3.0
    assert done.json["workload"]["signed"] is True
    assert done.json["parameters"]["free"] == "coins"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epsilon = ", "not valid TOML"),
        ("colour = 1", "unknown option 'colour'"),
        ("epsilom = 1", "unknown option 'epsilom'; did you mean 'epsilon'?"),
        ("workload_sed = 1", "did you mean 'workload-seed'?"),
        ("queries = 5\nmarginals = 2", "--marginals and --queries"),
        ("config = 'x'", "unknown option 'config'"),
        ("epsilon = 'much'", "epsilon = 'much'"),
        ("epsilon = [1, 2]", "one value is expected"),
        ("rounds = 2.5", "rounds = 2.5"),
        ("rounds = true", "rounds = True"),
        ("threads = 0", "threads = 0"),
        ("columns = ['age', 'sex']", "one value is expected"),
        ("quiet = 'maybe'", "quiet = 'maybe'"),
        ("epsilon = -1", "--epsilon is -1"),
    ],
)
def test_bad_config_is_bad_input(dualquery, small, tmp_path, here, text, message) -> None:
    arguments = [a for a in small if a not in ("--rounds", "6")]
    done = dualquery(*arguments, "--config", config(tmp_path, text))
    assert done.code == 2
    assert done.last.startswith("error: ")
    assert message in done.last
    assert names(here) == set()


def test_a_config_that_is_not_there(dualquery, small, tmp_path) -> None:
    assert "No such file" in dualquery(*small, "--config", tmp_path / "no.toml").last
    (tmp_path / "latin.toml").write_bytes(b"schema = '\xe4'")
    assert dualquery(*small, "--config", tmp_path / "latin.toml").code == 2
    assert dualquery(*small, "--config", tmp_path).code == 2


@pytest.mark.parametrize(
    "text", ['[options]\nfree = "coins"\n', '[option]\nfree = "coins"', 'option = {free = "coins"}']
)
def test_the_mechanisms_options_in_a_config(dualquery, small, tmp_path, text) -> None:
    path = config(tmp_path, text)
    assert dualquery(*small, "--config", path, "--json").json["parameters"]["free"] == "coins"


# --- the other commands ---------------------------------------------------------------------------


def test_evaluate_says_loudly_that_it_is_not_private(dualquery, released, files) -> None:
    done = dualquery("evaluate", released, files[0])
    assert done.code == 0
    assert "NOT PRIVATE" in done.out
    for name in ("zero", "uniform", "independent", "gaussian", "synthetic"):
        assert name in done.out


def test_evaluate_draws_a_picture_that_says_it_is_not_private(
    dualquery, released, files, tmp_path
) -> None:
    done = dualquery("evaluate", released, files[0], "--picture", tmp_path / "errors.svg")
    assert done.code == 0
    assert "NOT PRIVATE" in (tmp_path / "errors.svg").read_text("utf-8")
    again = dualquery("evaluate", released, files[0], "--picture", tmp_path / "errors.svg")
    assert again.code == 2
    assert "exists already" in again.err


def test_evaluate_json_has_the_keys_of_the_contract(dualquery, released, files) -> None:
    done = dualquery("evaluate", released, files[0], "--json", "--quiet")
    assert done.json.keys() >= {"max_error", "mean_error", "rmse", "synthetic", "baselines"}
    assert done.json["synthetic"].keys() == {"max_error", "mean_error"}
    for name in ("zero", "uniform", "independent", "gaussian"):
        assert done.json["baselines"][name].keys() == {"max_error", "mean_error"}
    assert done.err == ""
    loud = dualquery("evaluate", released, files[0], "--json")
    assert "NOT PRIVATE" in loud.err
    assert loud.json == done.json


def test_evaluate_is_reproducible_and_follows_its_seed(dualquery, released, files) -> None:
    def noise(*options: str) -> float:
        found = dualquery("evaluate", released, files[0], "--json", *options).json
        return found["baselines"]["gaussian"]["mean_error"]

    assert noise() == noise("--threads", "2") == noise("--seed", "0")
    assert noise() != noise("--seed", "1")


def test_answer_from_the_workload_and_from_the_records(dualquery, released) -> None:
    made = package.load_release(released)
    known = made.answer_table["query"][0]
    done = dualquery("answer", released, known, "age=0-25 & sex=Female & flag", "--json")
    first, second = done.json["answers"]
    assert first == {
        "query": known, "answered": known, "answer": made.answers[0], "source": "released",
        "interval": None, "low": None, "high": None, "level": None,
        "basis": "no measured numbers, so nothing is known of the error",
    }  # fmt: skip
    assert second["source"] == "synthetic"
    rows = made.synthetic
    share = (
        (rows["age"] < 25) & (rows["sex"] == "Female") & (rows["flag"].cast(str) == "1")
    ).mean()
    assert second["answer"] == pytest.approx(share)
    assert "nothing is known of the error" in dualquery("answer", released, "age=0-25").err
    shown = dualquery("answer", released, known)
    assert shown.out.splitlines() == [f"{made.answers[0]:.6f}\treleased\t{known}"]


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
    assert again.code == 2
    assert "exists already" in again.last


def test_a_release_that_is_not_private_says_so_even_quietly(dualquery, small, here) -> None:
    done = dualquery(*small, "--seed", "1", "--out", "seeded", "-q")
    assert "not private" in done.err
    shown = dualquery("evaluate", "seeded", small[1])
    assert "the release is NOT private; baselines at epsilon" in " ".join(shown.out.split())
    assert dualquery("evaluate", "seeded", small[1], "--json").json["private"] is False
    assert dualquery(*small, "--out", "unseeded", "-q").err == ""


def test_answer_says_which_bucket_was_answered(dualquery, released) -> None:
    done = dualquery("answer", released, "age=33", "--json")
    assert done.json["answers"][0]["query"] == "age=33"
    assert done.json["answers"][0]["answered"] == "age=25-50"
    assert dualquery("answer", released, "age=33").out.endswith("\tage=33\tanswered: age=25-50\n")


def test_evaluate_warns_of_another_number_of_rows(dualquery, released, files, caplog) -> None:
    same = dualquery("evaluate", released, files[0], "--json")
    assert same.json["rows_of_release"] == same.json["rows"] == 300
    assert caplog.messages == []
    lines = files[0].read_text().splitlines(keepends=True)
    files[0].write_text("".join(lines[:100]))
    done = dualquery("evaluate", released, files[0], "--json")
    assert done.code == 0
    assert (done.json["rows"], done.json["rows_of_release"]) == (99, 300)
    assert "the release was made from 300 rows, this table has 99" in caplog.text


def test_evaluate_has_one_line_for_a_release_that_is_its_records(
    dualquery, released, files
) -> None:
    assert "(release and synthetic records)" in dualquery("evaluate", released, files[0]).out


def test_answer_finds_a_query_however_it_is_written(dualquery, released) -> None:
    known = package.load_release(released).answer_table["query"][0]
    turned = " & ".join(reversed(known.split(" & ")))
    one, other = dualquery("answer", released, known, turned, "--json").json["answers"]
    assert one["answer"] == other["answer"]
    assert other["source"] == "released"


def test_answer_without_records(dualquery, files, tmp_path) -> None:
    dualquery(
        "release", files[0], "--schema", files[1], "--mechanism", "gaussian", "--queries", "all",
        "--way", "1", "--out", tmp_path / "g", "--quiet",
    )  # fmt: skip
    assert dualquery("answer", tmp_path / "g", "flag").code == 0
    done = dualquery("answer", tmp_path / "g", "flag & sex=Male")
    assert done.code == 2
    assert "not in the workload" in done.last


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
    assert done.code == 2
    assert "wrong.txt, line 2: there is no column 'AGE'; did you mean 'age'?" in done.last
    assert "made without questions of its own" in dualquery("answer", released).last
    assert "one of the two" in dualquery("answer", released, "flag", "--file", "wrong.txt").last


def test_a_release_answers_the_questions_of_its_own_list(dualquery, files, here) -> None:
    (here / "asked.txt").write_text("flag\nage>=25 or flag\nmean(age) given sex=Male\n")
    done = dualquery(
        "release", files[0], "--schema", files[1], "--queries", "asked.txt", "--out", "made",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "2 questions of the list were asked by their parts" in " ".join(done.out.split())
    answers = dualquery("answer", "made", "--json").json["answers"]
    assert [each["query"] for each in answers] == ["age>=25 or flag", "mean(age) given sex=Male"]
    assert all(each["low"] < each["answer"] < each["high"] for each in answers)


def test_answers_of_a_file_are_no_formulas(dualquery, released, here) -> None:
    (here / "asked.csv").write_text('query\n"-1-5 = age"\n"""flag"" or !flag"\n')
    assert dualquery("answer", released, "--file", "asked.csv").code == 2
    (here / "asked.csv").write_text('query\n"\t not age>=25"\n')
    done = dualquery("answer", released, "--file", "asked.csv", "--out", "told.csv")
    assert done.code == 0, done.err
    assert pl.read_csv(here / "told.csv")["query"][0] == "'\t not age>=25"


@pytest.mark.parametrize("query", ["colour=red", "age=", "flag &", "mean(sex)", "(" * 5000, ""])
def test_answer_bad_queries(dualquery, released, query) -> None:
    done = dualquery("answer", released, query)
    assert done.code == 2
    assert done.last.startswith("error: ")
    assert done.out == ""


def test_release_of_an_added_or_removed_record(dualquery, tmp_path) -> None:
    out = tmp_path / "out"
    done = dualquery(
        "release", "adult", "--queries", "30", "--mechanism", "gaussian", "--neighbours",
        "add-remove", "--rows", "30000", "--out", str(out), "--json",
    )  # fmt: skip
    assert done.code == 0
    found = json.loads((out / "release.json").read_text(encoding="utf-8"))
    assert (found["rows"], found["options"]["rows"]) == (30000, 30000)
    assert found["privacy"]["delta"] == 1 / 30000**2
    assert "30162" not in done.out + done.err


def test_solvers_json_is_a_list(dualquery) -> None:
    done = dualquery("solvers", "--json")
    found = {line["name"]: line for line in done.json}
    assert {"local-search", "scip", "cpsat", "highs", "exhaustive"} <= found.keys()
    for line in done.json:
        assert line.keys() == {"name", "version", "installed", "capabilities"}
    assert found["scip"]["installed"]
    assert "exact" in found["scip"]["capabilities"]
    assert "local-search" in dualquery("solvers").out


def test_solvers_tells_which_need_a_command(dualquery) -> None:
    (line,) = [x for x in dualquery("solvers").out.splitlines() if "maxsat " in x]
    assert "with a command" in line


def test_schema_drafts_a_file_that_release_takes(dualquery, files, here) -> None:
    done = dualquery("schema", files[0], "--out", "draft.json")
    assert done.code == 0
    assert "draft" in done.out
    release = [
        "release", files[0], "--schema", "draft.json", "--mechanism", "zero", "--queries", "9",
        "--json",
    ]  # fmt: skip
    unedited = dualquery(*release, "--out", "unedited")
    assert unedited.code == 0
    assert not unedited.json["privacy"]["private"]
    draft = here / "draft.json"
    text = draft.read_text(encoding="utf-8")
    draft.write_text(text.replace('"declared": false', '"declared": true'), encoding="utf-8")
    assert dualquery(*release, "--out", "edited").json["privacy"]["private"]


def test_schema_on_the_screen_is_json(dualquery, files, here) -> None:
    done = dualquery("schema", files[0], "--columns", "age,sex")
    assert [column["name"] for column in done.json["columns"]] == ["age", "sex"]
    assert names(here) == set()


def test_schema_leaves_existing_files_alone(dualquery, files, here) -> None:
    (here / "mine.json").write_text("mine")
    done = dualquery("schema", files[0], "--out", "mine.json")
    assert done.code == 2
    assert "exists already" in done.last
    assert (here / "mine.json").read_text() == "mine"
    assert dualquery("schema", files[0], "--out", here / "no" / "x.json").code == 2


# --- the program itself ---------------------------------------------------------------------------


def test_version_help_and_no_command(dualquery) -> None:
    assert dualquery("--version").out == f"dualquery {package.__version__}\n"
    assert dualquery().out == f"{FIRST_STEPS}\n"
    for asked in ("--help", "-h"):
        done = dualquery(asked)
        assert done.code == 0
        for command in COMMANDS:
            assert command in done.out
    for command in COMMANDS:
        done = dualquery(command, "--help")
        assert done.code == 0
        assert "Example" in done.out


def test_every_command_is_tested_here() -> None:
    found = {command.name or command.callback.__name__ for command in app.registered_commands}
    found |= {group.name for group in app.registered_groups}
    assert found >= {*COMMANDS}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["relaese"], "No such command 'relaese'"),
        (["release", "--colour"], "No such option: --colour"),
        (["release", "--epsilon", "much"], "--epsilon"),
        (["release", "--rounds", "2.5"], "--rounds"),
        (["release", "--threads", "0"], "--threads"),
        (["release", "--threads", "-1"], "--threads"),
        (["release", "a", "b"], "unexpected extra argument"),
        (["evaluate", "x"], "Missing argument"),
        (["evaluate", "x", "adult", "--threads", "0"], "--threads"),
        (["answer"], "Missing argument"),
    ],
)
def test_wrong_usage_is_exit_code_2(dualquery, here, arguments, message) -> None:
    done = dualquery(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.last.startswith("error: ")
    assert message in done.last
    assert names(here) == set()


def test_internal_faults_are_exit_code_1(dualquery, small, here, monkeypatch) -> None:
    def fail(*_, **__):
        raise ZeroDivisionError("seven\nlines")

    monkeypatch.setattr("dualquery.releases.making.run", fail)
    done = dualquery(*small)
    assert done.code == 1
    assert done.last.startswith("error: internal fault: ZeroDivisionError: seven lines")
    assert "Traceback" not in done.err
    for flag in ("--verbose", "-v"):
        assert "Traceback" in dualquery(*small, flag).err
    assert names(here) == set()


def test_lack_of_memory_is_exit_code_2(dualquery, small, here, monkeypatch) -> None:
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("dualquery.releases.making.run", fail)
    done = dualquery(*small)
    assert done.code == 2
    assert "not enough memory" in done.last
    assert names(here) == set()


@pytest.mark.parametrize(
    "where", ["dualquery.releases.making.run", "dualquery.room.curator.Curator.evaluate"]
)
def test_ctrl_c_is_exit_code_130_and_leaves_nothing(
    dualquery, small, here, monkeypatch, where
) -> None:
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    for extra in ([], ["--json"], ["--quiet"]):
        done = dualquery(*small, "--out", "deep/out", *extra)
        assert done.code == 130
        assert done.out == ""
        assert done.last == "error: interrupted: nothing was written"
        assert names(here) == set()


class TestThirdPartyCommands:
    """Commands of other packages; one that is broken harms no other command."""

    @pytest.fixture(autouse=True)
    def entry_points(self, monkeypatch: pytest.MonkeyPatch):
        from importlib.metadata import EntryPoint, EntryPoints

        here = "tests.cli.test_commands"
        points = EntryPoints(
            [
                EntryPoint("greet", f"{here}:greet", "dualquery.commands"),
                EntryPoint("broken", "tests.no_such_module:run", "dualquery.commands"),
            ]
        )
        monkeypatch.setattr(
            "dualquery.cli.main.entry_points", lambda **which: points.select(**which)
        )
        monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])

    def test_they_run_and_run_again(self, dualquery) -> None:
        for _ in range(2):
            assert dualquery("greet", "world").out == "hello world\n"
        assert "greet" in dualquery("--help").out

    def test_a_broken_one_says_so(self, dualquery) -> None:
        done = dualquery("broken")
        assert done.code == 2
        assert "command 'broken'" in done.last
        assert "cannot be imported" in done.last
        assert dualquery("solvers").code == 0


def greet(name: str) -> None:
    """Greet somebody.

    Example: dualquery greet world
    """
    print(f"hello {name}")


HEAVY = ["numba", "polars", "scipy", "ortools", "pyscipopt", "pyarrow", "opendp", "dp_accounting"]


@pytest.mark.parametrize("arguments", [["--help"], ["release", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments) -> None:
    script = (
        "import sys\n"
        "from dualquery.cli.main import main\n"
        f"code = main({arguments})\n"
        f"print('HEAVY', [name for name in {HEAVY} if name in sys.modules], code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "HEAVY [] 0"


def test_as_a_process(files, tmp_path) -> None:
    """stdout is one JSON object, stderr is the rest, and the exit code is the process's."""
    command = [sys.executable, "-m", "dualquery"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    options = [files[0], "--schema", files[1], "--queries", "20", "--rounds", "4", "--samples", "3"]
    done = subprocess.run(
        [*command, "release", *options, "--out", "mine", "--json"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["release"] == "mine"
    again = subprocess.run(
        [*command, "release", *options, "--out", "mine"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 2
    assert again.stderr.splitlines()[-1].startswith("error: mine exists already")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_real_ctrl_c_ends_cleanly(files, tmp_path, name) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    process = subprocess.Popen(
        [
            sys.executable, "-m", "dualquery", "release", files[0], "--schema", files[1],
            "--queries", "50", "--way", "2", "--rounds", "5000", "--samples", "20",
            "--accountant", "zcdp", "--solver", "highs", "--out", "mine",
        ],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    while process.stderr.readline() not in ("running dualquery\n", ""):
        pass
    # The folder is reserved before the work begins.
    journal = folder / "mine.unfinished" / "journal"
    while b'{"end"' not in journal.read_bytes() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    said = "private draws? (was|were) begun and stay charged; .* release --resume mine.unfinished$"
    assert re.search(f"^error: interrupted: .* {said}", err.rstrip().splitlines()[-1])
    assert "Traceback" not in err
    assert names(folder) == {"mine.unfinished"}


def test_synthetic_records_are_plain_parquet(released) -> None:
    assert pl.read_parquet(released / "synthetic.parquet").columns == [
        "age", "job", "flag", "sex", "constant",
    ]  # fmt: skip


@pytest.mark.parametrize("named", [[], ["--mechanism", "auto"]])
def test_auto_is_the_default_and_says_what_it_chose_and_why(dualquery, here, named) -> None:
    asked = ["release", *named, "--queries", "20"]
    done = dualquery(*asked, "--out", "a")
    assert done.code == 0
    assert "auto chose matrix: one measurement" in done.err
    stored = json.loads((here / "a" / "release.json").read_text())
    assert stored["mechanism"] == "auto"
    assert stored["parameters"]["mechanism"] == "matrix"
    assert stored["parameters"]["reason"]
    assert stored["synthetic_records"] > 0
    assert dualquery("evaluate", "a", "adult", "--json").json["mechanism"] == "matrix"
    quiet = dualquery(*asked, "--out", "b", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    machine = dualquery(*asked, "--out", "c", "--json")
    assert machine.json["parameters"]["mechanism"] == "matrix"
    assert "auto chose matrix" in machine.err


@pytest.mark.parametrize(
    "more", [["--delta", "0"], ["--accountant", "paper"], ["--accountant", "advanced"]]
)
def test_auto_chooses_what_the_budget_allows(dualquery, files, more) -> None:
    base = ["release", files[0], "--schema", files[1], "--queries", "30", "--way", "2"]
    done = dualquery(*base, "--epsilon", "2", *more, "--json")
    assert done.code == 0, done.err
    assert done.json["parameters"]["mechanism"] == "dualquery"
    assert done.json["privacy"]["private"]
    assert "auto chose dualquery: " in done.err


def test_auto_goes_by_the_rows_stated_where_their_number_is_private(dualquery, files) -> None:
    base = ["release", files[0], "--schema", files[1], "--queries", "30", "--way", "2", "--json"]
    private = ["--neighbours", "add-remove"]
    stated = dualquery(*base, *private, "--rows", "5000", "--out", "stated")
    assert (stated.json["rows"], stated.json["parameters"]["mechanism"]) == (5000, "matrix")
    noisy = dualquery(*base, *private, "--delta", "1e-6", "--out", "noisy")
    assert noisy.json["privacy"]["epsilon"] == pytest.approx(1.0)
    refused = dualquery(*base, *private)
    assert refused.code == 2
    assert "give --delta, or state a number of rows" in refused.last


@pytest.mark.parametrize(
    "option",
    [
        ["--rounds", "6"],
        ["--iterations", "6"],
        ["--samples", "5"],
        ["--eta", "0.5"],
        ["--solver", "auto"],
        ["--solver-timeout", "3"],
        ["-o", "burn_in=0.5"],
    ],
)
def test_options_of_a_game_imply_it(dualquery, files, option) -> None:
    base = ["release", files[0], "--schema", files[1], "--queries", "20", "--way", "2"]
    done = dualquery(*base, "--epsilon", "3", *option, "--json")
    assert done.code == 0, done.err
    assert done.json["mechanism"] == "dualquery"
    assert "mechanism dualquery, because it has the options that were given" in done.err


@pytest.mark.parametrize("named", [(), ("--mechanism", "auto")])
def test_options_go_to_the_mechanism_that_auto_takes(dualquery, files, named) -> None:
    base = ["release", files[0], "--schema", files[1], "--queries", "20", "--way", "2", *named]
    base += ["--json", "-o", "records=7"]
    usual = dualquery(*base, "--out", "usual").json
    assert (usual["mechanism"], usual["parameters"]["mechanism"]) == ("auto", "matrix")
    assert usual["parameters"]["records"] == 7
    pure = dualquery(*base, "--delta", "0", "--out", "pure")
    assert "'dualquery' has no option 'records'" in pure.last
    steps = dualquery(*base, "-o", "components=16", "--out", "steps").json
    assert steps["parameters"]["components"] == 16


def test_auto_takes_no_mechanism_that_lacks_an_option(dualquery, files, here) -> None:
    base = ["release", files[0], "--schema", files[1], "--queries", "20", "--way", "2"]
    base += ["--mechanism", "auto", "--epsilon", "3"]
    done = dualquery(*base, "--rounds", "6", "--json", "--out", "game")
    assert done.json["parameters"]["mechanism"] == "dualquery"
    refused = dualquery(*base, "--delta", "0", "-o", "components=8", "--out", "refused")
    assert refused.code == 2
    assert "'dualquery' has no option 'components'" in refused.last
    unknown = dualquery(*base, "-o", "population=8", "--out", "unknown")
    assert "'auto' has no option 'population'" in unknown.last
    assert "name the mechanism that has it" in unknown.last
    twice = dualquery(*base, "-o", "records=7", "--records", "8", "--out", "twice")
    assert "--records is 8, and -o records is 7" in twice.last
    shown = dualquery("release", "-o", "help").out
    assert "components" in shown
    assert "burn_in" in shown
    assert names(here) == {"game"}


def test_config_names_the_mechanism_or_implies_it(dualquery, files, tmp_path) -> None:
    base = ["release", files[0], "--schema", files[1], "--way", "2", "--json", "--config"]
    text = "queries = 20\n"
    assert dualquery(*base, config(tmp_path, text)).json["mechanism"] == "auto"
    done = dualquery(*base, config(tmp_path, text + "rounds = 5\n"), "--out", "implied")
    assert done.json["mechanism"] == "dualquery"
    named = config(tmp_path, text + "mechanism = 'auto'\nrounds = 5\n")
    chosen = dualquery(*base, named, "--out", "named").json["parameters"]["mechanism"]
    assert chosen == "dualquery"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0000"),
        (0.25, "0.2500"),
        (0.001, "0.0010"),
        (0.00017, "0.00017"),
        (1e-12, "1.0e-12"),
    ],
)
def test_a_small_share_is_never_shown_as_none(value: float, shown: str) -> None:
    from dualquery.runtime.figures import share

    assert share(value) == shown


def test_numbers_may_be_written_short_and_all_marginals_asked_for(dualquery, small, here) -> None:
    base = [each for each in small if each not in ("--queries", "30")]
    done = dualquery(*base, "--queries", "1e1", "--out", "ten", "--json")
    assert done.json["queries"] == 10
    done = dualquery(*base, "--marginals", "all", "--out", "whole", "--json")
    every = dualquery(*base, "--queries", "all", "--out", "every", "--json")
    assert done.json["queries"] == every.json["queries"]


def test_a_table_in_another_dialect_is_released(dualquery, files, here) -> None:
    table, schema = files
    odd = table.with_name("odd.csv")
    odd.write_text(table.read_text().replace(",", "|"), encoding="utf-16")
    done = dualquery(
        *("release", odd, "--csv", "delimiter=bar,encoding=utf-16", "--schema", schema),
        *("--queries", "10", "--way", "2", "--mechanism", "gaussian", "--out", "mine"),
    )
    assert done.code == 0
    done = dualquery("evaluate", "mine", odd, "--csv", "encoding=utf-16", "--json")
    assert done.json["rows"] > 0


def test_schema_check_says_what_a_schema_means(dualquery, files, here, tmp_path) -> None:
    done = dualquery("schema", "check", files[1])
    assert done.code == 0
    assert "5 columns" in done.out
    assert "declared" in done.out
    dictionary = tmp_path / "domain.json"
    dictionary.write_text('{"age": 3, "sex": 2}')
    done = dualquery("schema", "check", dictionary, "--out", "mine.json")
    assert "not declared, so releases with it are not private" in " ".join(done.out.split())
    assert dualquery("schema", "check", "mine.json").code == 0
    dictionary.write_text('{"columns": [{"name": "a", "kind": "binry"}]}')
    done = dualquery("schema", "check", dictionary)
    assert done.code == 2
    assert "kind is 'binry'" in done.last
