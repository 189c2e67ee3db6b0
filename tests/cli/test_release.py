"""``dualquery release``: what is asked, said and written."""

from __future__ import annotations

import json

import polars as pl
import pytest

import dualquery as package
from tests.cli.conftest import names

RELEASE_KEYS = {
    "release", "format_version", "mechanism", "parameters", "options", "privacy", "rows", "bits",
    "queries", "way", "workload", "synthetic_records", "solver", "intervals", "measurements",
    "model", "means", "notes", "versions", "created", "written_as", "total",
}  # fmt: skip


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
    done = dualquery(
        "release", files[0], "--queries", "20", "--mechanism", "laplace", "--json",
        "--schema-from-data",
    )  # fmt: skip
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
    base.append("--schema-from-data")
    assert dualquery(*base, "--out", tmp_path / "out").code == 0
    assert "größe=groß" in dualquery("answer", tmp_path / "out", "größe=groß", "--json").out


def test_names_that_look_like_markup_are_printed_as_they_are(dualquery, tmp_path, here) -> None:
    table = tmp_path / "t.csv"
    table.write_text("[bold],[/red]\nx,y\nz,w\n" * 1 + "x,w\n")
    done = dualquery(
        "release", table, "--mechanism", "zero", "--queries", "all", "--way", "1",
        "--schema-from-data",
    )  # fmt: skip
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
    options = {
        "seed": [*small, "--seed", "1"],
        "schema": ["release", files[0], "--queries", "9", "--schema-from-data"],
    }
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
    assert any(line.startswith("memory: about") for line in lines)
    assert all(lines)


def test_a_release_that_is_not_private_says_so_even_quietly(dualquery, small, here) -> None:
    done = dualquery(*small, "--seed", "1", "--out", "seeded", "-q")
    assert "not private" in done.err
    shown = dualquery("evaluate", "seeded", small[1])
    assert "the release is NOT private; baselines at epsilon" in " ".join(shown.out.split())
    assert dualquery("evaluate", "seeded", small[1], "--json").json["private"] is False
    assert dualquery(*small, "--out", "unseeded", "-q").err == ""


def test_release_of_an_added_or_removed_record(dualquery, tmp_path) -> None:
    out = tmp_path / "out"
    done = dualquery(
        "release", "adult", "--queries", "30", "--mechanism", "gaussian", "--neighbours",
        "add-remove", "--rows", "30000", "--out", str(out), "--json",
    )  # fmt: skip
    assert done.code == 0
    found = json.loads((out / "release.json").read_text(encoding="utf-8"))
    assert found["options"]["rows"] == 30000
    assert abs(found["rows"] - 30162) < 1000  # measured, whatever was stated
    assert found["privacy"]["delta"] == 1 / 30000**2
    assert "30162" not in done.out + done.err


def test_synthetic_records_are_plain_parquet(released) -> None:
    assert pl.read_parquet(released / "synthetic.parquet").columns == [
        "age", "job", "flag", "sex", "constant",
    ]  # fmt: skip


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
