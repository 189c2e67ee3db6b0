"""``dualquery budget plan``: what parameters cost, what a budget allows, what error to expect."""

import pytest

BUDGET = ["budget", "-n", "30162", "--rounds", "40", "--samples", "100"]


def test_budget_shows_every_accountant(dualquery) -> None:
    done = dualquery(*BUDGET, "--eta", "0.2", "--delta", "0.001", "--json").ok
    lines = {line["accountant"]: line["epsilon"] for line in done.json["accountants"]}
    assert lines.keys() == {"paper", "advanced", "zcdp", "exact"}
    assert lines["exact"] < lines["zcdp"] < lines["advanced"]
    assert done.json["solved_for"] == "epsilon"
    assert done.json["warnings"]
    shown = dualquery(*BUDGET, "--eta", "0.2")
    assert all(name in shown.out for name in lines)


@pytest.mark.parametrize("missing", ["rounds", "samples", "eta"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_budget_solves_for_the_third(dualquery, missing, neighbours) -> None:
    given = {"rounds": 40, "samples": 100, "eta": 0.2}
    options = [text for key in given if key != missing for text in (f"--{key}", given[key])]
    options += ["--epsilon", 1, "--delta", 1e-7, "--neighbours", neighbours]
    done = dualquery("budget", "-n", "3000", *options, "--json").ok
    assert done.json["solved_for"] == missing
    found = {line["accountant"]: line[missing] for line in done.json["accountants"]}
    best = found["exact"]
    assert best >= found["zcdp"] > 0
    options += ["--rows", 3000, "--dry-run", "--queries", 50, f"--{missing}"]
    assert dualquery("release", "adult", *options, best).ok
    assert dualquery("release", "adult", *options, type(best)(1.1 * best)).refusal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", "100"], "give --rounds, --samples and --eta"),
        (["-n", "100", "--epsilon", "1", "--queries", "9"], "give --schema"),
        ([*BUDGET[1:], "--eta", "1", "--epsilon", "1"], "found an --epsilon and 3"),
        ([*BUDGET[1:], "--eta", "-1"], "step is -1"),
        (["--rounds", "3"], "Missing option"),
    ],
)
def test_budget_bad_input(dualquery, options, message) -> None:
    assert message in dualquery("budget", *options).refusal


def test_budget_shows_the_error_to_expect(dualquery) -> None:
    base = ["budget", "-n", "30162", "--rounds", "40", "--samples", "300", "--delta", "1e-3"]
    more = ["--schema", "adult-paper", "--queries", "2000"]
    done = dualquery(*base, "--epsilon", "1", *more, "--json").ok
    assert {*done.json["expected"]} == {"adaptive", "gaussian", "laplace"}
    assert {*done.json["not_expected"]} == {"dualquery"}
    for each in done.json["expected"].values():
        assert 0 < each["max_error"]["low"] <= each["max_error"]["high"] <= 1
    assert "give --epsilon" in dualquery(*base, "--eta", "0.5", *more).refusal


def test_plan_has_its_old_spelling(dualquery) -> None:
    given = ["-n", "30162", "--rounds", "40", "--samples", "100", "--eta", "0.2", "--json"]
    old, new = dualquery("budget", *given), dualquery("budget", "plan", *given)
    assert old.code == new.code == 0
    assert old.json == new.json
    assert "Missing option '--rows'" in dualquery("budget").last
    assert "No such command 'plam'" in dualquery("budget", "plam").last
    assert "init" in dualquery("budget", "--help").out
