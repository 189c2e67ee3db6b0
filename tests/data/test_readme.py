"""The schema reference: its examples load, and its tables name what there is."""

import inspect
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np
import polars as pl

from dualquery.data import Binary, Categorical, Dates, ItemSchema, Numeric, TableSchema
from dualquery.data.builtin import DATASETS, SCHEMAS
from dualquery.data.readers.formats import FORMATS, GENERATORS
from dualquery.data.schema.schema_files import load_schema
from dualquery.rows.engines import load

TEXT = (Path(__file__).resolve().parents[2] / "dualquery/data/README.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```(json|toml)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
KINDS = {"binary": Binary, "categorical": Categorical, "numeric": Numeric, "date": Dates}
SURVEY = TableSchema(
    (
        Binary("member", "no", "yes"),
        Categorical("sex", (("Female", "F"), ("Male", "M")), outside="other"),
        Numeric("age", (0.0, 18.0, 30.0, 50.0, 120.0), integer=True, outside="clip"),
        Numeric("income", (-1000.0, 0.0, 1000.0, 1e5), missing="category", unparsable="missing"),
    ),
    name="survey",
    missing_values=("", "n/a"),
    declared=True,
)


def test_the_examples_load(tmp_path: Path) -> None:
    loaded = []
    for ending, example in EXAMPLES:
        path = tmp_path / f"s.{ending}"
        path.write_text(example, encoding="utf-8")
        loaded.append(load_schema(path))
    items = ItemSchema(np.array([*range(1000), 2000]), name="s.json", outside="drop", declared=True)
    partial, *plain, ruled = loaded
    assert partial.partial
    assert plain == [SURVEY, items]
    assert [str(rule) for rule in ruled.rules] == [
        "age < 15 => marital = never",
        "start <= end",
        "region follows from district",
    ]


def keys() -> str:
    """Return the table of a column's keys: those of files, with the words of the classes."""
    rows = ["| kind | key | meaning | default |", "|---|---|---|---|"]
    for name, kind in KINDS.items():
        page = inspect.getdoc(kind) or ""
        said = page.partition("Parameters\n----------\n")[2].partition("\n\nRaises")[0]
        words = re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?)+)", said, re.MULTILINE)
        meanings = {key: " ".join(text.split()) for g, text in words for key in g.split(", ")}
        for field in fields(kind)[1:]:
            first = re.match(r".*?[.;](?= |$)", meanings[field.name])
            words_of = first[0].rstrip(".;").replace("``", "`").replace("|", "or")
            given = (field.default, "must be there", "none")
            default = given[1] if given[0] is MISSING else given[2]
            if isinstance(field.default, str | bool):
                default = f"`{json.dumps(field.default)}`"
            rows.append(f"| `{name}` | `{field.name}` | {words_of} | {default} |")
    return "\n".join(rows)


def test_the_table_of_keys_is_that_of_the_classes() -> None:
    assert TEXT.partition("test_readme -->\n")[2].partition("\n<!-- end")[0] == keys()


def test_the_example_reads_a_table() -> None:
    cells = [["yes", "F", "130", "n/a"], ["no", "unknown", "18", "-5"]]
    data = load(pl.DataFrame(cells, ["member", "sex", "age", "income"], orient="row"), SURVEY)
    decoded = data.schema.decode(data.records.dense_rows(0, 2))
    assert decoded.select("member", "sex").rows() == [("yes", "Female"), ("no", "(other)")]
    assert decoded["income"][0] is None
    assert 50 <= decoded["age"][0] <= 120
    assert 18 <= decoded["age"][1] < 30
    assert -1000 <= decoded["income"][1] < 0


def test_the_formats_of_text_hold_the_same_rows(tmp_path: Path) -> None:
    names = [name for name in FORMATS if f"```{name}\n" in TEXT]
    assert names == ["fimi", "matrix", "bitstring"]
    for name in names:
        (example,) = re.findall(rf"^```{name}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
        path = tmp_path / name
        path.write_text(example, encoding="utf-8")
        records = load(f"{name}:{path}").records
        assert records.dense_rows(0, records.n).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]], name


def test_the_tables_are_complete() -> None:
    _, formats = TEXT.split("## Formats")
    table = re.search(r"^\| format .*?\n\n", formats, re.MULTILINE | re.DOTALL)
    rows = dict(re.findall(r"^\| `([a-z0-9]+)` \|([^|]*)\|", table[0], re.MULTILINE))
    assert rows.keys() == FORMATS.keys()
    for name, form in FORMATS.items():
        assert set(re.findall(r"`([^`]+)`", rows[name])) == set(form.extensions)
    assert all(f"`{name}" in TEXT for name in (*SCHEMAS, *DATASETS, *GENERATORS))
    for key in {key for column in SURVEY.columns for key in column.to_dict()} | {*SURVEY.to_dict()}:
        assert f"`{key}`" in TEXT


if __name__ == "__main__":
    print(keys())
