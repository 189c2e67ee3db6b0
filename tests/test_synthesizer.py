"""fit, sample and fit_sample, as users of other synthesizers know them."""

import datetime
import pickle
from collections import Counter

import numpy as np
import polars as pl
import pytest

from dualquery import BudgetFile, Synthesizer
from dualquery.data.frames import FrameKind, as_table
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, people

SMALL = {"schema": SCHEMA, "queries": 30, "way": 2, "options": {"rounds": 12, "samples": 5}}


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    asked = {"epsilon": 1.0, "neighbours": "add-remove", "rows": 300, "means": "age"}
    return Synthesizer(**asked, **SMALL).fit(people())


def test_fit_sample_has_as_many_rows_as_the_table() -> None:
    rows = Synthesizer(epsilon=1.0, **SMALL).fit_sample(people(120))
    assert rows.height == 120
    assert rows.columns == people().columns
    assert rows.schema["age"].is_integer()


def test_sampling_costs_nothing_and_a_seed_repeats_it(fitted) -> None:
    before = fitted.release
    one, other = (fitted.sample(50, seed=3) for _ in range(2))
    assert one.equals(other)
    assert not one.equals(fitted.sample(50, seed=4))
    assert fitted.release is before


def test_an_option_that_release_lacks_is_named_at_once() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilonn'"):
        Synthesizer(epsilonn=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'table'"):
        Synthesizer(table=people())


def test_options_are_those_of_release(tmp_path) -> None:
    made = Synthesizer(0.5, 1e-3, **SMALL, accountant="zcdp").fit(people()).release
    assert (made.options["epsilon"], made.options["delta"]) == (0.5, 1e-3)
    assert made.options["accountant"] == "zcdp"
    with pytest.raises(BadInputError, match="--epsilon is 0"):
        Synthesizer(0).fit(people())
    file = BudgetFile.create(tmp_path / "b", epsilon=1, delta=0)
    with pytest.raises(BadInputError, match="makes no synthetic records"):
        Synthesizer(mechanism="laplace", schema=SCHEMA, budget=file.path).fit(people())
    assert file.read().releases == {}


@pytest.fixture(scope="module")
def typed() -> pl.DataFrame:
    return people().with_columns(
        pl.col("age").cast(pl.Int16),
        pl.col("job").cast(pl.Categorical),
        pl.col("flag").cast(pl.Float32),
        pl.col("constant").cast(pl.Enum(["b", "a", "of one row"])),
    )


QUICK = {"schema": SCHEMA, "queries": 20, "way": 2, "mechanism": "independent", "epsilon": 5.0}


def test_polars_comes_back_with_its_types(typed) -> None:
    fitted = Synthesizer(**QUICK).fit(typed)
    rows = fitted.sample(200)
    assert b"of one row" not in pickle.dumps(fitted)
    assert rows.schema == {**typed.schema, "constant": pl.Categorical()}
    assert rows["job"].null_count() > 0


def test_pandas_comes_back_with_its_types(typed) -> None:
    pandas = pytest.importorskip("pandas")
    table = typed.with_columns(pl.col("age").cast(pl.Int32)).to_pandas()
    table["constant"] = pandas.Categorical(["a"] * len(table), ["of one row", "a"], ordered=True)
    table["sex"] = table["sex"].astype(object)
    fitted = Synthesizer(**QUICK).fit(table)
    rows = fitted.sample(200)
    assert b"of one row" not in pickle.dumps(fitted)
    assert {*rows["sex"]} == {"Female", "Male"}
    assert (rows.dtypes["age"], rows.dtypes["flag"]) == (table.dtypes["age"], "float32")
    assert {*rows["constant"].cat.categories} <= {"a", "b"}
    assert {*rows["job"].cat.categories} <= {"nurse", "smith", "clerk"}
    assert rows["job"].isna().any()


def test_the_type_of_a_column_says_how_its_values_come_back() -> None:
    pandas = pytest.importorskip("pandas")
    made = pl.DataFrame({"flag": ["true", None], "code": [1, None], "*": ["true", "False"]})
    made = made.with_columns(pl.Series("time", [datetime.datetime(2020, 1, 1)] * 2))
    made = made.with_columns(pl.Series("odd", ["True", "(other)"]))
    zoned = pandas.Series([datetime.datetime(2020, 1, 1)]).dt.tz_localize("Europe/Berlin")
    for cell in (None, True):  # which a private row may hold or not
        flag = pandas.Series([cell], dtype=object)
        table = {"flag": flag, "code": ["7"], "*": [True], "time": zoned, "odd": [True]}
        rows = FrameKind.of(pandas.DataFrame(table).astype({"code": "string"})).made_of(made)
        assert (rows["flag"].dtype, rows["flag"].to_list()) == (object, [True, None])
        assert (rows["code"][0], rows["odd"][0], rows["*"][1]) == ("1", "True", False)
        assert rows["time"].dtype == zoned.dtype


def test_no_type_moves_a_number_to_another_bucket() -> None:
    made = pl.DataFrame({"part": [-0.5, 2.5], "cent": [0.25, 1.125], "whole": [3.0, None]})
    kinds = {"part": pl.Int64, "cent": pl.Decimal(9, 2), "whole": pl.UInt8}
    assert FrameKind("polars", kinds).made_of(made).schema == {**made.schema, "whole": pl.UInt8}
    flags = pl.DataFrame({"f": ["true", "False"]})
    flags = FrameKind("polars", {"f": "bool[pyarrow]"}).made_of(flags)
    assert flags["f"].to_list() == [True, False]
    pd, pa = map(pytest.importorskip, ("pandas", "pyarrow"))
    pandas = FrameKind("pandas", {"part": np.dtype("int64")}).made_of(made)
    assert pandas["part"].tolist() == [-0.5, 2.5]
    codes = FrameKind("pandas", {"n": pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))})
    assert codes.made_of(pl.DataFrame({"n": [1, 2]}))["n"].tolist() == [1, 2]
    lima = FrameKind("pandas", {"n": pd.ArrowDtype(pa.timestamp("us", "America/Lima"))})
    assert lima.made_of(pl.DataFrame({"n": [datetime.datetime(2020, 1, 1)]}))["n"][0].day == 1
    narrow = FrameKind("pandas", {"n": np.dtype("int8")})
    assert narrow.made_of(pl.DataFrame({"n": [1, 300]}))["n"].tolist() == [1, 300]
    for texts, expected in ((["7", "8"], [7, 8]), (["7", "300"], ["7", "300"])):
        assert narrow.made_of(pl.DataFrame({"n": texts}))["n"].tolist() == expected


@pytest.mark.filterwarnings("ignore")  # what the checks fit has no schema, so nothing is private
def test_scikit_learns_own_checks_of_estimators() -> None:
    """All that apply; of one row the message says "1 record", the check wants "1 sample"."""
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    tried = Synthesizer(way=1, mechanism="independent", schema_from_data=True)
    found = checks.check_estimator(tried, on_fail=None)
    failed = {each["check_name"]: each["exception"] for each in found if each["status"] == "failed"}
    assert list(failed) == ["check_fit2d_1sample"]
    assert "Got 1 record" in str(failed["check_fit2d_1sample"])
    assert Counter(each["status"] for each in found)["passed"] >= 25


def test_scikit_learn_clones_and_refuses_unknown_parameters(fitted) -> None:
    copy = pytest.importorskip("sklearn.base").clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "release_")
    assert repr(copy.set_params(epsilon=2.0)).startswith("Synthesizer(epsilon=2.0, schema=")
    with pytest.raises(ValueError, match="no parameter 'epsilonn'; did you mean 'epsilon'"):
        copy.set_params(epsilonn=1)


def test_a_matrix_comes_back_as_one() -> None:
    matrix = people().select("age", "flag").to_numpy()
    schema = {"columns": [
        {"name": "0", "kind": "numeric", "edges": [0, 30, 60, 120], "integer": True},
        {"name": "1", "kind": "binary"},
    ], "declared": True}  # fmt: skip
    small = {"mechanism": "independent", "way": 2, "schema": schema}
    rows = Synthesizer(**small).fit(matrix).sample(50)
    assert isinstance(rows, np.ndarray)
    assert rows.shape == (50, 2)
    assert set(rows[:, 1].tolist()) <= {0, 1}
    # Whether it is a table says the schema, not whether a row has another number than 0 and 1.
    assert [as_table(each, None).width for each in (np.eye(3), 2 * np.eye(3))] == [3, 3]
    assert Synthesizer(**small).fit(np.minimum(matrix, 1)).sample(50).shape == (50, 2)
    bits = np.eye(3)[[0, 1, 2, 0] * 5]
    assert Synthesizer(mechanism="independent", way=2).fit_sample(bits == 1, 7).shape == (7, 3)


def test_what_was_fitted_is_saved_and_loaded(fitted, tmp_path) -> None:
    fitted.save(tmp_path / "release")
    again = Synthesizer.load(tmp_path / "release", like=people())
    assert again.sample(20, seed=1).equals(fitted.sample(20, seed=1))
    assert (again.epsilon, again.neighbours, again.rows) == (1.0, "add-remove", 300)
    assert again.means == ["age"]
    assert len(again.queries) == len(fitted.release.workload)
    assert again.release.privacy == fitted.release.privacy
    assert again.options.items() >= SMALL["options"].items()
    with pytest.raises(BadInputError, match="call fit"):
        Synthesizer().save(tmp_path / "other")
