"""The proof record: what a guarantee is computed from, in plain data, and small."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.releases.make.proof import runs
from tests.tables import release_people


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_runs_hold_every_entry_in_its_order(entries) -> None:
    assert [each for run in runs(entries) for each in run["events"] * run["times"]] == entries


def test_the_proof_of_a_long_game_is_small() -> None:
    made = release_people(queries=20, way=2, options={"rounds": 200, "samples": 1})
    (run,) = made.proof["schedule"]
    (game,) = run["events"]
    assert (game["rounds"], game["drawn"]) == (200, 199)
    assert game["ground"]["lemma"] == "dualquery.room.weights"
    assert len(json.dumps(made.proof)) < 2_000


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_each_event_says_what_was_measured_and_how_its_sensitivity_was_proven(relation) -> None:
    asked = {"mechanism": "gaussian", "delta": 1e-4, "neighbours": relation}
    made = release_people(queries=20, way=1, **asked)
    (run,) = made.proof["schedule"]
    (event,) = run["events"]
    ground = event["ground"]
    assert event["kind"] == "gaussian"
    assert ground["statistic"] == "AllQueries"
    assert ground["lemma"] == "dualquery.room.noise.gaussian"
    assert ground["proof"] == made.parameters["bound"]
    assert ground["scale"] == made.parameters["scale"]
    assert (made.proof["rows"]["bought"] is None) == (relation == "replace-one")
    assert made.proof["accountant"]["epsilon"] <= made.privacy.epsilon
