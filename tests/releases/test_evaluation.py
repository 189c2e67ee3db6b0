"""How far a release is off, beside the baselines."""

from dataclasses import replace
from unittest.mock import create_autospec

import numpy as np
import pytest

import dualquery
from dualquery.rows.engines import load
from dualquery.rows.streamed import StreamedRows
from tests.tables import SCHEMA, people

SMALL = {"schema": SCHEMA, "queries": 40, "way": 2}


@pytest.fixture(scope="module")
def made():
    return dualquery.release(people(), **SMALL, options={"rounds": 20, "samples": 10})


@pytest.fixture(scope="module")
def found(made):
    return dualquery.evaluate(made, people())


def truth(made, table=None) -> np.ndarray:
    data = load(people() if table is None else table, made.schema)
    return made.workload.counts(data.records, threads=1) / data.n


def test_errors_are_those_of_the_released_answers(made, found) -> None:
    off = np.abs(made.answers - truth(made))
    assert found["max_error"] == pytest.approx(off.max())
    assert found["mean_error"] == pytest.approx(off.mean())
    assert found["rmse"] == pytest.approx(np.sqrt((off**2).mean()))


def test_errors_by_column_are_of_their_queries(tmp_path) -> None:
    (tmp_path / "q.txt").write_text("sex\nflag\nsex & flag\nage!=0-25 & age!=25-50 & flag\n")
    made = dualquery.release(people(), schema=SCHEMA, queries=tmp_path / "q.txt", mechanism="zero")
    found = dualquery.evaluate(made, people())
    off = truth(made)  # the answers are 0
    texts = made.workload.text(made.schema).to_list()
    for name, line in {line["column"]: line for line in found["by_column"]}.items():
        some = off[[name in text for text in texts]]
        assert line["queries"] == len(some)
        assert line["max_error"] == pytest.approx(some.max())
        assert line["mean_error"] == pytest.approx(some.mean())
    errors = [line["mean_error"] for line in found["by_column"]]
    assert errors == sorted(errors, reverse=True)
    worst = found["worst"][0]
    assert worst["answer"] == 0
    assert worst["error"] == pytest.approx(off.max())
    assert worst["query"] == texts[int(off.argmax())]


def test_synthetic_errors_are_those_of_the_records() -> None:
    """A mechanism whose answers are not its records': independent answers exactly by product."""
    made = dualquery.release(people(), **SMALL, mechanism="independent", options={"records": 20})
    found = dualquery.evaluate(made, people())
    off = np.abs(made.workload.answers_on(made.records) - truth(made))
    assert found["synthetic"]["max_error"] == pytest.approx(off.max())
    assert found["synthetic"]["mean_error"] != found["mean_error"]


@pytest.mark.parametrize("rules", [(), ("job!=smith",)])
@pytest.mark.parametrize("name", ["independent", "gaussian"])
def test_baselines_run_at_the_releases_own_guarantee(name, rules) -> None:
    """A seeded release of the baseline, same seed and budget, is the baseline itself."""
    asked = {**SMALL, "schema": replace(SCHEMA, rules=rules), "mechanism": name, "epsilon": 0.3}
    made = dualquery.release(people(), **asked, delta=1e-4, seed=0, threads=1)
    found = dualquery.evaluate(made, people(), seed=0, threads=1)
    assert (found["epsilon"], found["delta"], found["neighbours"]) == (0.3, 1e-4, "replace-one")
    assert found["max_error"] == pytest.approx(found["baselines"][name]["max_error"])
    assert found["mean_error"] == pytest.approx(found["baselines"][name]["mean_error"])


def test_at_delta_0_the_noise_is_laplace_and_says_so() -> None:
    made = dualquery.release(people(), **SMALL, mechanism="laplace", seed=0)
    found = dualquery.evaluate(made, people(), seed=0)
    line = found["baselines"]["gaussian"]
    assert line["noise"] == "laplace"
    assert line["max_error"] == pytest.approx(found["max_error"])


def test_a_folder_is_evaluated_like_the_release(made, found, tmp_path) -> None:
    made.save(tmp_path / "out")
    assert dualquery.evaluate(tmp_path / "out", people()) == found
    assert dualquery.evaluate(str(tmp_path / "out"), people(), threads=3) == found


@pytest.mark.parametrize("delta", [None, 0.0])
def test_a_stream_is_passed_over_once(made, delta, tmp_path, monkeypatch) -> None:
    """For the truth and all baselines together, beside the pass that counts the rows."""
    people().write_csv(tmp_path / "people.csv")
    if delta is not None:
        made = dualquery.release(people(), **SMALL, mechanism="laplace", seed=0)
    expected = dualquery.evaluate(made, people())
    passes = create_autospec(StreamedRows.stream, side_effect=StreamedRows.stream)
    monkeypatch.setattr(StreamedRows, "stream", passes)
    assert dualquery.evaluate(made, tmp_path / "people.csv", engine="stream") == expected
    assert passes.call_count == 1
