"""How far a release is off, beside the baselines."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data import schema_from_dict
from dualquery.queries.parities import Parities
from dualquery.releases.evaluation import BASELINES, Errors
from dualquery.rows.streamed import StreamedRows
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, people

SMALL = {"schema": SCHEMA, "queries": 40, "way": 2}


@pytest.fixture(scope="module")
def made():
    return dualquery.release(people(), **SMALL, options={"rounds": 20, "samples": 10})


@pytest.fixture(scope="module")
def found(made):
    return dualquery.evaluate(made, people())


def truth(made, table=None) -> np.ndarray:
    from dualquery.rows.dataset import load

    data = load(people() if table is None else table, made.schema)
    return made.workload.counts(data.records, threads=1) / data.n


def test_keys_are_those_of_the_contract(found) -> None:
    assert {"max_error", "mean_error", "rmse", "synthetic", "baselines"} <= found.keys()
    assert found["synthetic"].keys() == {"max_error", "mean_error"}
    assert {*found["baselines"]} == {"zero", "uniform", "independent", "gaussian"} == {*BASELINES}
    for line in found["baselines"].values():
        assert line.keys() == {"max_error", "mean_error"}
    assert "NOT PRIVATE" in found["warning"]


def test_errors_are_those_of_the_released_answers(made, found) -> None:
    off = np.abs(made.answers - truth(made))
    assert found["max_error"] == pytest.approx(off.max())
    assert found["mean_error"] == pytest.approx(off.mean())
    assert found["rmse"] == pytest.approx(np.sqrt((off**2).mean()))


def test_a_table_with_a_dialect_is_read_as_by_a_release(made, found, tmp_path) -> None:
    file = tmp_path / "people.csv"
    people().write_csv(file, separator=";")
    given = dualquery.Table(str(file), csv="delimiter=;")
    assert dualquery.evaluate(made, given)["mean_error"] == found["mean_error"]


def test_errors_by_column_and_by_number_of_literals_are_of_their_queries(tmp_path) -> None:
    (tmp_path / "q.txt").write_text("sex\nflag\nsex & flag\n!sex & age=25-50 & !flag\n")
    made = dualquery.release(people(), schema=SCHEMA, queries=tmp_path / "q.txt", mechanism="zero")
    found = dualquery.evaluate(made, people())
    off = truth(made)  # the answers are 0
    texts = made.workload.text(made.schema).to_list()
    assert [line["literals"] for line in found["by_literals"]] == [1, 2, 3]
    for line in found["by_literals"]:
        some = off[[text.count("&") + 1 == line["literals"] for text in texts]]
        assert line["queries"] == len(some)
        assert line["max_error"] == pytest.approx(some.max())
        assert line["mean_error"] == pytest.approx(some.mean())
    by_column = {line["column"]: line for line in found["by_column"]}
    for name, line in by_column.items():
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


def test_zero_and_uniform_are_evaluated_exactly(made, found) -> None:
    exact = truth(made)
    zero = np.array([(row[row >= 0] & 1).all() for row in made.workload.literals], float)
    assert found["baselines"]["zero"]["max_error"] == pytest.approx(np.abs(zero - exact).max())


def test_a_release_of_a_baseline_equals_its_baseline() -> None:
    for name in ("zero", "uniform"):
        made = dualquery.release(people(), **SMALL, mechanism=name)
        found = dualquery.evaluate(made, people())
        line = found["baselines"][name]
        assert (found["max_error"], found["mean_error"]) == (line["max_error"], line["mean_error"])


@pytest.mark.parametrize("name", ["independent", "gaussian"])
def test_baselines_run_at_the_releases_own_guarantee(name) -> None:
    """A seeded release of the baseline, same seed and budget, is the baseline itself."""
    made = dualquery.release(
        people(), **SMALL, mechanism=name, epsilon=0.3, delta=1e-4, seed=0, threads=1
    )
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


def test_without_records_synthetic_is_none() -> None:
    made = dualquery.release(people(), **SMALL, mechanism="gaussian")
    assert dualquery.evaluate(made, people())["synthetic"] is None


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
    passes = []
    stream = StreamedRows.stream

    def counted(self):
        passes.append(self)
        return stream(self)

    monkeypatch.setattr(StreamedRows, "stream", counted)
    assert dualquery.evaluate(made, tmp_path / "people.csv", engine="stream") == expected
    assert len(passes) == 1


def test_another_family_is_passed_over_once(tmp_path, monkeypatch) -> None:
    schema = schema_from_dict(
        {
            "kind": "table",
            "name": "bits",
            "columns": [{"name": name, "kind": "binary"} for name in "abc"],
        }
    )
    bits = np.random.default_rng(0).integers(0, 2, (50, 3))
    pl.DataFrame(bits, schema=["a", "b", "c"]).write_csv(tmp_path / "bits.csv")
    made = dualquery.release(
        tmp_path / "bits.csv", schema=schema, queries=Parities(3, 2), mechanism="gaussian"
    )
    passes = []
    stream = StreamedRows.stream

    def counted(self):
        passes.append(self)
        return stream(self)

    monkeypatch.setattr(StreamedRows, "stream", counted)
    dualquery.evaluate(made, tmp_path / "bits.csv", engine="stream")
    assert len(passes) == 1


def test_another_table_may_be_compared(made) -> None:
    found = dualquery.evaluate(made, people(50, seed=9))
    assert found["rows"] == 50


def test_even_a_table_of_one_row(made) -> None:
    assert dualquery.evaluate(made, people(1))["rows"] == 1


def test_the_schema_is_the_releases_own(made) -> None:
    with pytest.raises(BadInputError, match="there is no column 'job'"):
        dualquery.evaluate(made, people().drop("job"))
    with pytest.raises(BadInputError, match="outside the schema's range"):
        dualquery.evaluate(made, people().with_columns(age=pl.lit(1000)))


@pytest.mark.parametrize(
    ("options", "message"), [({"threads": 0}, "--threads is 0"), ({"seed": -1}, "--seed is -1")]
)
def test_bad_options(made, options, message) -> None:
    with pytest.raises(BadInputError, match=message):
        dualquery.evaluate(made, people(), **options)


def test_errors_by_hand() -> None:
    errors = Errors.between(np.array([0.5, 0.0]), np.array([0.2, 0.4]))
    assert errors.max_error == pytest.approx(0.4)
    assert errors.mean_error == pytest.approx(0.35)
    assert errors.rmse == pytest.approx(np.sqrt((0.09 + 0.16) / 2))
    assert errors.brief() == {"max_error": errors.max_error, "mean_error": errors.mean_error}
