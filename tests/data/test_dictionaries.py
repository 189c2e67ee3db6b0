"""Data dictionaries of other tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dualquery.data.schema.columns import Binary, Categorical, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.dictionaries import schema_of_dictionary
from dualquery.data.schema.files import load_schema
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
