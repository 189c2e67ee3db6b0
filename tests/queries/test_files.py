"""Lists of queries in files."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.queries.generate.query_files import read_queries
from dualquery.runtime.errors import BadInputError

SCHEMA = TableSchema((Binary("flag"), Categorical("sex", (("Male",), ("Female",)))), declared=True)
TEXT = "# my queries\n\nflag & sex=Male\r\n  !flag  \n   # more\nsex!=Female"


@pytest.mark.parametrize("name", ["q.txt", "queries", "q.txt.gz", "q.csv", "q.csv.gz", "q.parquet"])
def test_each_kind_of_file_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    table = pl.DataFrame({"id": [1, 2, 3], "query": ["flag & sex=Male", "!flag", "sex!=Female"]})
    if ".csv" in name:
        content = table.write_csv().encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    elif name.endswith(".parquet"):
        table.write_parquet(path)
    else:
        content = TEXT.encode("utf-8-sig")
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    workload = read_queries(path, SCHEMA)
    np.testing.assert_array_equal(workload.literals, [[0, 2], [1, -1], [5, -1]])
    assert workload.description == {"kind": "list", "source": name}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "q.txt: the file is empty"),
        (b"flag\n\nage=3\n", "q.txt, line 3: there is no column 'age'"),
        (b"# x\nflag &\n", "q.txt, line 2: 'flag &' is no question"),
        (b"flag & sex=Male\n#\n!flag\nsex=Male&flag=1\n",
         "q.txt, line 4: 'sex=Male&flag=1' is the same query as .*q.txt, line 1; leave"),
        (b"flag\nsex=\xff\n", "q.txt, line 2: not UTF-8 text"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_text_file_is_said(tmp_path: Path, content: bytes, message: str) -> None:
    (path := tmp_path / "q.txt").write_bytes(content)
    with pytest.raises(BadInputError, match=message):
        read_queries(path, SCHEMA)


def test_a_table_needs_a_column_of_texts_named_query(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    pl.DataFrame({"text": ["flag"], "other": ["flag"]}).write_parquet(path)
    with pytest.raises(BadInputError, match=r"q\.parquet: no column 'query' among text, other"):
        read_queries(path, SCHEMA)
    pl.DataFrame({"query": [3]}).write_parquet(path)
    with pytest.raises(BadInputError, match=r"the column 'query' holds Int64, not texts"):
        read_queries(path, SCHEMA)
    path.write_bytes(b"no parquet")
    with pytest.raises(BadInputError, match=r"q\.parquet: not a parquet file"):
        read_queries(path, SCHEMA)


def test_a_table_names_rows(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    pl.DataFrame({"query": ["flag", None]}).write_parquet(path)
    with pytest.raises(BadInputError, match=r"q\.parquet, row 2: '' is no question"):
        read_queries(path, SCHEMA)
    pl.DataFrame({"query": []}, {"query": pl.String}).write_parquet(path)
    with pytest.raises(BadInputError, match=r"there is no query in it"):
        read_queries(path, SCHEMA)
