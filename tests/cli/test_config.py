"""``--config``: a file that holds the options of a command."""

from pathlib import Path

import pytest

from tests.tables import names


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
        queries = 1.5e1
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
    found = dualquery("release", "--config", path).ok.json
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
        ("epsilom = 1", "unknown option 'epsilom'; did you mean 'epsilon'?"),
        ("queries = 5\nmarginals = 2", "--marginals and --queries"),
        ("epsilon = 'much'", "found 'much' in --config"),
        ("epsilon = [1, 2]", "one value is expected"),
        ("rounds = 2.5", "found '2.5' in --config"),
        ("rounds = 3\niterations = 5", "iterations, or what means the same, is given twice"),
    ],
)
def test_bad_config_is_bad_input(dualquery, small, tmp_path, here, text, message) -> None:
    arguments = [a for a in small if a not in ("--rounds", "6")]
    assert message in dualquery(*arguments, "--config", config(tmp_path, text)).refusal
    assert names(here) == set()


@pytest.mark.parametrize(
    "text", ['[options]\nfree = "coins"\n', '[option]\nfree = "coins"', 'option = {free = "coins"}']
)
def test_the_mechanisms_options_in_a_config(dualquery, small, tmp_path, text) -> None:
    path = config(tmp_path, text)
    assert dualquery(*small, "--config", path, "--json").json["parameters"]["free"] == "coins"
