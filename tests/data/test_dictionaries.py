"""Data dictionaries of other tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dualquery.data.schema.columns import Binary, Categorical, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.dictionaries import schema_of_dictionary
from dualquery.data.schema.files import load_schema, write_schema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

FIELDS = [
    {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
    {"name": "smokes", "type": "boolean", "constraints": {"required": True}},
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 96}},
    {
        "name": "seen",
        "type": "date",
        "constraints": {"minimum": "2019-01-01", "maximum": "2026-12-31"},
    },
]


def between(kind: str, **limits: object) -> dict[str, object]:
    return {"fields": [{"name": "x", "type": kind, "constraints": limits}]}


def test_a_frictionless_table_schema(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"fields": FIELDS, "missingValues": ["", "NA"]}))
    schema = load_schema(path)
    assert not schema.declared
    assert schema.name == "schema.json"
    assert schema.missing_values == ("", "NA")  # type: ignore[union-attr]
    assert schema.columns == (  # type: ignore[union-attr]
        Categorical("sex", (("f",), ("m",))),
        Binary("smokes", "false", "true"),
        Numeric("age", tuple(range(0, 97, 6)), integer=True, missing="category"),
        Dates("seen", "year", "2019-01-01", "2026-12-31", missing="category"),
    )
    resource = {"name": "people", "schema": {"fields": FIELDS}}
    assert schema_of_dictionary(resource).column_names == schema.column_names  # type: ignore[union-attr]


def test_csv_on_the_web() -> None:
    schema = schema_of_dictionary(
        {
            "@context": "http://www.w3.org/ns/csvw",
            "tableSchema": {
                "columns": [
                    {"titles": ["sex"], "datatype": {"base": "string", "format": "f|m"}},
                    {
                        "name": "rate",
                        "required": True,
                        "datatype": {"base": "decimal", "minimum": "0", "maximum": "1.6"},
                    },
                ]
            },
        }
    )
    assert schema is not None
    sex, rate = schema.columns
    assert sex == Categorical("sex", (("f",), ("m",)), missing="category")
    assert isinstance(rate, Numeric)
    assert (rate.edges[0], rate.edges[1], rate.integer) == (0, 0.12, False)


def test_missing_values_of_a_field_take_the_place_of_those_of_all(tmp_path: Path) -> None:
    limits = {"minimum": 0, "maximum": 120}
    fields = [
        {"name": "age", "type": "integer", "constraints": limits, "missingValues": ["", "NA"]},
        {"name": "kids", "type": "integer", "constraints": limits},
        {
            "name": "sex",
            "type": "string",
            "constraints": {"enum": ["f", "m"]},
            "missingValues": [{"value": "", "label": "empty"}, {"value": "9", "label": "refused"}],
        },
    ]
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"fields": fields, "missingValues": ["", "NA", "99", "99"]}))
    schema = load_schema(path)
    assert isinstance(schema, TableSchema)
    assert schema.missing_values == ("",)
    assert [column.missing_values for column in schema.columns] == [("NA",), ("NA", "99"), ("9",)]
    write_schema(schema, tmp_path / "own.json")
    assert load_schema(tmp_path / "own.json").columns == schema.columns  # type: ignore[union-attr]
    fields[2]["missingValues"] = ["f"]
    with pytest.raises(BadInputError, match=r"column 'sex': 'f' is declared as a value and also"):
        schema_of_dictionary({"fields": fields})
    with pytest.raises(BadInputError, match=r"missing values are 9; a list of texts is expected"):
        schema_of_dictionary({"fields": fields, "missingValues": 9})


def test_null_of_a_column_on_the_web_takes_the_place_of_the_table_s() -> None:
    kind = {"base": "string", "format": "a|b"}
    columns = [
        {"name": "x", "datatype": kind},
        {"name": "y", "datatype": kind, "null": "-"},
        {"name": "z", "datatype": kind, "null": ["-", ""]},
    ]
    for null, everywhere, own in (
        ({}, (), [("",), ("-",), ("-", "")]),
        ({"null": ["-", "?"]}, ("-",), [("?",), (), ("",)]),
    ):
        for document in (
            {"tableSchema": {"columns": columns, **null}},
            {"tableSchema": {"columns": columns}, **null},
        ):
            schema = schema_of_dictionary(document)
            assert schema is not None
            assert schema.missing_values == everywhere
            assert [column.missing_values for column in schema.columns] == own


def test_a_domain_file() -> None:
    schema = schema_of_dictionary({"age": 3, "sex": 2})
    assert schema is not None
    assert schema.columns == (
        Categorical("age", (("0",), ("1",), ("2",))),
        Categorical("sex", (("0",), ("1",))),
    )


def test_other_documents_are_no_dictionaries() -> None:
    own = {"columns": [{"name": "a", "kind": "binary"}]}
    for document in ({}, own, {"items": "0-9"}, {"a": 2.5}, {"fields": [1]}, {"a": True}):
        assert schema_of_dictionary(document) is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"fields": []}, "names no column"),
        ({"fields": [{"type": "integer"}]}, "a column of the data dictionary has no name"),
        ({"fields": [{"name": "x", "type": "string"}]}, "gives neither its values nor its range"),
        (between("integer", minimum=3), "neither"),
        (between("integer", minimum="a", maximum=2), "its range is 'a' to 2; two numbers"),
        (between("date", minimum="1.1.20", maximum="z"), "two dates such as 2014-01-31"),
        (between("number", minimum=2, maximum=1), "2 to 1"),
        ({"age": 1}, "column 'age' has 1 codes; 2 to 100,000 can be"),
    ],
)
def test_a_dictionary_that_says_too_little_is_explained(document, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        schema_of_dictionary(document)


def test_a_yaml_dictionary_is_a_schema(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    for name in ("domain.yaml", "domain.yml"):
        (tmp_path / name).write_text(yaml.dump({"fields": FIELDS}))
        found = load_schema(tmp_path / name)
        assert found.columns == schema_of_dictionary({"fields": FIELDS}).columns  # type: ignore[union-attr]


def test_without_a_reader_of_yaml_the_extra_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "dualquery.runtime.yaml_text", raising=False)
    (tmp_path / "d.yaml").write_text("x: 3")
    with pytest.raises(BadInputError, match=r"no reader of YAML .*dualquery\[yaml\]"):
        load_schema(tmp_path / "d.yaml")
