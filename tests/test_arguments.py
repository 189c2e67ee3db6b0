"""The arguments of `dualquery.release`: plain values, objects, and keywords for their fields."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import dualquery
from dualquery import BadInputError, Guarantee, Run, SyntheticRecords, Table, WorkloadRequest
from dualquery.api import KEYWORDS
from tests.tables import SCHEMA, people

SMALL = {"schema": SCHEMA, "mechanism": "independent", "seed": 7, "delta": 1e-3}

OF_OBJECTS = {
    "queries": WorkloadRequest(queries=4, way=2, signed=False, seed=3, columns=["age", "sex"]),
    "records": SyntheticRecords(50),
    "guarantee": Guarantee("add-remove", rows=250, accountant="zcdp"),
    "run": Run("memory", threads=1),
}
OF_KEYWORDS = {
    "queries": 4, "way": 2, "signed": False, "workload_seed": 3, "query_columns": ["age", "sex"],
    "records": 50, "neighbours": "add-remove", "rows": 250, "accountant": "zcdp",
    "engine": "memory", "threads": 1,
}  # fmt: skip


def test_objects_and_keywords_say_the_same() -> None:
    one = dualquery.release(Table(people(), columns="age,sex"), **SMALL, **OF_OBJECTS)
    other = dualquery.release(people(), columns="age,sex", **SMALL, **OF_KEYWORDS)
    assert one.answer_table.equals(other.answer_table)
    assert one.synthetic.equals(other.synthetic)
    assert one.options == other.options
    assert one.options["rows"] == 250
    assert len(one.records) == 50
    assert [column.name for column in one.schema.columns] == ["age", "sex"]


def test_a_table_says_how_its_file_is_written(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "p.csv", separator=";")
    table = Table(tmp_path / "p.csv", csv="delimiter=;")
    assert dualquery.release(table, queries=5, **SMALL).n == 300
    with pytest.raises(BadInputError) as told:
        dualquery.release(people(), csv="delimiter=;", queries=5, **SMALL)
    assert str(told.value) == "csv says how a CSV file is written, but the table is no file"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queries": WorkloadRequest(way=2), "way": 1}, "way is given twice.*WorkloadRequest"),
        ({"guarantee": "add-remove", "neighbours": "replace-one"}, "neighbours is given twice"),
        ({"table": Table("adult", columns="0"), "columns": "1"}, "columns is given twice.*Table"),
        ({"run": Run("stream"), "engine": "memory"}, "engine is given twice.*Run"),
        ({"guarantee": Guarantee("sideways")}, "sideways"),
    ],
)
def test_a_field_is_given_once(arguments, message) -> None:
    with pytest.raises(BadInputError, match=message):
        dualquery.release(**arguments)


def test_numbers_of_numpy_are_kept(tmp_path: Path) -> None:
    numbers = {name: np.int64(2 + n) for n, name in enumerate(("way", "queries", "records"))}
    dualquery.release(people(), **SMALL, **numbers, epsilon=np.float32(1)).save(tmp_path / "made")
    made = dualquery.load_release(tmp_path / "made")
    assert (made.workload.way, len(made.workload), len(made.records)) == (2, 3, 4)


def test_a_person_can_read_the_signature() -> None:
    own = [*inspect.signature(dualquery.release).parameters]
    assert len(own) - len(["keywords"]) <= 12
    assert not {*own} & {name for names in KEYWORDS.values() for name in names}
