"""Schemas, queries, questions, configuration files."""

import functools
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from dualquery.cli.main import USAGE_ERROR, app
from dualquery.data.readers.formats import source_of
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.schema_files import format_schema, load_schema, schema_from_dict
from dualquery.queries.generate.query_files import read_queries, workload_of_texts
from dualquery.questions.compiler import ask
from dualquery.questions.plain_parser import read_question
from dualquery.requests import ReleaseSpec
from dualquery.runtime.documents import parse_json
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import built
from tests.hostile.mutation import spoil_json, spoil_text
from tests.hostile.parser import Parser, texts
from tests.hostile.tables import ITEMS, legal_rows
from tests.tables import SCHEMA


def _schema_examples() -> list[bytes]:
    items = ItemSchema(np.array([3, 4, 9]), names=("a", "b", "c"), declared=True)
    numeric = (
        b'{"columns": [{"name": "i", "kind": "numeric", "edges": [-1, 0, 2.5], "missing": '
        b'"category", "unparsable": "missing", "outside": "clip"}], "declared": true}'
    )
    return [
        numeric,
        format_schema(SCHEMA).encode(),
        format_schema(ITEMS).encode(),
        format_schema(items).encode(),
        b'{"items": "0-5,9", "declared": true, "max_ones_per_row": 2}',
        b'{"columns": [{"name": "c", "kind": "categorical", "values": ["x", ["y", "z"], 3]}]}',
        b'{"columns": [{"name": "d", "kind": "date", "from": "2020-01", "to": "2020-12", '
        b'"every": "month"}], "declared": true}',
    ]


_TOML_SCHEMA = b"""name = "survey"
declared = true
missing_values = ["", "n/a"]
[[columns]]
name = "age"
kind = "numeric"
edges = [0, 18, 30.5]
missing_values = [99, "k.A."]
[[columns]]
name = "member"
kind = "binary"
zero = "no"
one = "yes"
"""


def _read_schema(ending: str, data: bytes, folder: Path) -> None:
    path = folder / f"schema{ending}"
    path.write_bytes(data)
    schema = load_schema(path)
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema
    assert replace(schema_from_dict(parse_json(format_schema(schema))), name=schema.name) == schema
    assert schema.domain.columns == len(schema.column_names)
    if schema.domain.bits <= 100_000:
        assert len(schema.bit_labels()) == schema.domain.bits
        records = np.zeros((1, schema.domain.bits), np.uint8)
        records[0, schema.domain.offsets[:-1][schema.domain.sizes > 1]] = 1
        rows = legal_rows(source_of(schema.decode(records)), schema)
        assert rows == [np.flatnonzero(records[0]).tolist()]


_QUERIES = (
    "age=0-25 & flag",
    "!flag & job!=nurse & sex=Male",
    '"age"="75-100" & job="(missing)"',
    "age=50 & constant=a",
    "sex = Female & flag=1",
)


_QUESTIONS = (
    *_QUERIES,
    "age=20-60 & (flag or sex=Male)",
    "job in (nurse, smith) given not age >= 50",
    "mean(age) given flag",
    "quantile(age, 0.25)",
    "count(job=clerk) ",
    "age not between 10 and 30",
)


def _read_question(data: bytes, folder: Path) -> None:
    """Read a question twice, which must be equal, and see what it asks."""
    del folder
    text = data.decode("utf-8", "replace")
    question = read_question(text, SCHEMA)
    assert read_question(text, SCHEMA) == question
    ask(question, SCHEMA)


def _read_query_file(ending: str, data: bytes, folder: Path) -> None:
    path = folder / f"queries{ending}"
    path.write_bytes(data)
    workload = read_queries(path, SCHEMA)
    again = workload_of_texts(workload.text(SCHEMA), SCHEMA, "again", str)
    assert np.array_equal(again.literals, workload.literals)


_CONFIG = b"""epsilon = 0.5
queries = 100
way = 2
mechanism = "dualquery"
option = {free = "coins", burn_in = 0}
seed = 3
columns = "age,sex"
quiet = true
"""


@functools.cache
def _release_command() -> Any:
    command: Any = typer.main.get_command(app)
    return command.commands["release"]


def _read_config(data: bytes, folder: Path) -> None:
    path = folder / "config.toml"
    path.write_bytes(data)
    try:
        context = _release_command().make_context("release", ["--config", str(path)])
    except USAGE_ERROR as error:  # as of what is typed
        raise BadInputError(error.format_message()) from None
    built(ReleaseSpec, context.params)


SETTINGS: dict[str, Parser] = {
    "schema.json": Parser(_schema_examples, spoil_json, partial(_read_schema, ".json")),
    "schema.toml": Parser(lambda: [_TOML_SCHEMA], spoil_text, partial(_read_schema, ".toml")),
    "query file": Parser(
        texts("\n".join(_QUERIES), "# x\nflag\n"), spoil_text, partial(_read_query_file, ".txt")
    ),
    "question": Parser(texts(*_QUESTIONS), spoil_text, _read_question),
    "config": Parser(lambda: [_CONFIG], spoil_text, _read_config),
}
