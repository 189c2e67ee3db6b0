"""``dualquery release``: what is asked, said and written."""

import json

from tests.tables import names


def test_release_json_is_one_object_with_listed_keys(dualquery, small, here) -> None:
    done = dualquery(*small, "--out", "mine", "--json").ok
    assert done.json["release"] == "mine"
    stored = json.loads((here / "mine" / "release.json").read_text())
    unseen = {key: stored[key] for key in ("schema", "proof")}
    assert {**done.json, **unseen} == {"release": "mine", **stored}


def test_default_folder_is_named_after_the_time(dualquery, small, here) -> None:
    assert dualquery(*small).code == 0
    (name,) = names(here)
    assert name.startswith("release-20")
    assert name.endswith("Z")


def test_a_seed_is_marked_and_states_no_epsilon(dualquery, small) -> None:
    done = dualquery(*small, "--seed", "1", "--json")
    assert done.json["privacy"].keys() == {"private", "reasons_not_private"}
    assert not done.json["privacy"]["private"]
    shown = dualquery(*small, "--seed", "1", "--out", "b")
    assert "not private" in shown.out
    assert "epsilon" not in shown.out


def test_neither_folder_nor_json_nor_screen_tells_the_path(dualquery, small, here, files) -> None:
    done = dualquery(*small, "--out", "mine", "--json")
    written = b"".join(path.read_bytes() for path in (here / "mine").iterdir())
    assert str(files[0]) not in done.out
    assert str(files[0]).encode() not in written


def test_options_and_shorthands_reach_the_mechanism(dualquery, files) -> None:
    base = ["release", files[0], "--schema", files[1], "--queries", "20", "--json"]
    done = dualquery(
        *base, "--iterations", "5", "-o", "samples=4", "-o", "free=coins", "--option", "burn_in=0",
        "--solver", "highs", "--solver-timeout", "3",
    ).ok  # fmt: skip
    parameters = done.json["parameters"]
    assert (parameters["rounds"], parameters["samples"]) == (5, 4)
    assert (parameters["free"], parameters["burn_in"]) == ("coins", 0)
    assert (parameters["solver"], parameters["solver_timeout"]) == ("highs", 3)
    assert done.json["mechanism"] == "dualquery"
    other = dualquery(*base, "--mechanism", "uniform", "-o", "records=7", "--out", "u")
    assert other.json["synthetic_records"] == 7


def test_names_that_look_like_markup_are_printed_as_they_are(dualquery, tmp_path, here) -> None:
    (table := tmp_path / "t.csv").write_text("[bold],[/red]\nx,y\nz,w\n" * 1 + "x,w\n")
    done = dualquery(
        "release", table, "--mechanism", "zero", "--queries", "all", "--way", "1",
        "--schema-from-data",
    ).ok  # fmt: skip
    assert "[/red]" in done.out


def test_a_release_that_is_not_private_says_so_even_quietly(dualquery, small, here) -> None:
    assert "not private" in dualquery(*small, "--seed", "1", "--out", "seeded", "-q").err
    shown = dualquery("evaluate", "seeded", small[1])
    assert "the release is NOT private; baselines at epsilon" in " ".join(shown.out.split())
    assert dualquery("evaluate", "seeded", small[1], "--json").json["private"] is False
    assert dualquery(*small, "--out", "unseeded", "-q").err == ""
