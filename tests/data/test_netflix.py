"""The Netflix Prize files: both forms give the same rows, and every fault names file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data import schema_from_dict
from dualquery.data.readers.netflix import MOVIES, NetflixSource
from dualquery.queries.text import parse_query, print_queries
from dualquery.rows.dataset import load
from dualquery.runtime.errors import BadInputError

RATED = {8: [30, 6, 1_488_844], 1: [6, 7], 17_770: [2_649_429], 5: [1_488_844, 7, 6, 30]}
USERS = sorted({user for users in RATED.values() for user in users})


def text(movie: int, ending: str = "\n") -> str:
    lines = [f"{movie}:", *(f"{user},{1 + user % 5},2005-09-06" for user in RATED[movie])]
    return "".join(line + ending for line in lines)


def rows_of(source: object, columns: str | None = None) -> dict[int, set[int]]:
    """Return the movies of each row, by the number of the row."""
    data = load(source, columns=columns)
    items = data.schema.items  # type: ignore[union-attr]
    dense = data.records.dense_rows(0, data.n)
    return {row: set(items[np.flatnonzero(bits)].tolist()) for row, bits in enumerate(dense)}


EXPECTED = {
    row: {movie for movie, users in RATED.items() if user in users}
    for row, user in enumerate(USERS)
}


def separate(folder: Path, zipped: bool) -> None:
    for movie in RATED:
        content = text(movie).encode()
        if zipped:
            (folder / f"mv_{movie:07}.txt.gz").write_bytes(gzip.compress(content))
        else:
            (folder / f"mv_{movie:07}.txt").write_bytes(content)


def combined(folder: Path, ending: str = "\n") -> None:
    first, *others = RATED
    (folder / "combined_data_1.txt").write_bytes(text(first, ending).encode())
    rest = "".join(text(movie, ending) for movie in others)
    (folder / "combined_data_2.txt").write_bytes(rest.removesuffix(ending).encode())


@pytest.mark.parametrize("zipped", [False, True])
def test_one_file_a_movie(tmp_path: Path, zipped: bool) -> None:
    separate(tmp_path, zipped)
    assert rows_of(f"netflix:{tmp_path}") == EXPECTED


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_many_movies_a_file(tmp_path: Path, ending: str) -> None:
    combined(tmp_path, ending)
    assert rows_of(f"netflix:{tmp_path}") == EXPECTED


def test_one_file_alone(tmp_path: Path) -> None:
    combined(tmp_path)
    assert rows_of(f"netflix:{tmp_path / 'combined_data_1.txt'}") == {0: {8}, 1: {8}, 2: {8}}


def test_other_files_of_the_folder_are_no_ratings(tmp_path: Path) -> None:
    combined(tmp_path)
    for name in ("probe.txt", "qualifying.txt", "README"):
        (tmp_path / name).write_text("1:\n30878\n")
    assert rows_of(f"netflix:{tmp_path}") == EXPECTED


def test_the_movies_of_the_prize_are_declared(tmp_path: Path) -> None:
    combined(tmp_path)
    data = load(f"netflix:{tmp_path}")
    assert data.schema.declared
    assert data.schema.domain.bits == MOVIES
    assert (data.schema.bit_label(0), data.schema.bit_label(MOVIES - 1)) == ("1", "17770")


def test_selected_movies(tmp_path: Path) -> None:
    combined(tmp_path)
    found = rows_of(f"netflix:{tmp_path}", columns="1-5")
    assert found == {row: movies & {1, 5} for row, movies in EXPECTED.items()}


@settings(max_examples=60, deadline=None)
@given(
    rated=st.dictionaries(
        st.integers(1, MOVIES), st.sets(st.integers(0, 40), min_size=0, max_size=20), max_size=8
    ).filter(lambda lists: any(lists.values())),
    chunk=st.integers(1, 200),
    block=st.integers(1, 9),
)
def test_chunks_and_blocks_do_not_show(
    tmp_path_factory: pytest.TempPathFactory, rated: dict[int, set[int]], chunk: int, block: int
) -> None:
    path = tmp_path_factory.mktemp("netflix") / "combined_data_1.txt"
    lines = []
    for movie, users in rated.items():
        lines += [f"{movie}:", *(f"{user},3,2004-02-29" for user in users)]
    path.write_text("\n".join(lines))
    users = sorted(set().union(*rated.values()))
    found = rows_of(NetflixSource(path, "test", chunk_bytes=chunk, block_rows=block))
    assert found == {
        row: {movie for movie, raters in rated.items() if user in raters}
        for row, user in enumerate(users)
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("8:\n6,3,2005-09-06\nx,3,2005-09-06\n", "line 3: 'x,3,2005-09-06' found where MOVIE: or"),
        ("8:\n6,3,2005-9-6\n", "line 2: '6,3,2005-9-6' found where"),
        ("8:\n6,7,2005-09-06\n", "line 2: '6,7,2005-09-06' found where"),
        ("8:\n6,3\n", "line 2: '6,3' found where"),
        ("8:\n6,\n", "line 2: '6,' found where"),
        ("8:\n6\n", "line 2: '6' found where"),
        ("8:\n6", "line 2: '6' found where"),
        ("8: 6,3,2005-09-06\n", "line 1: '8: 6,3,2005-09-06' found where"),
        ("8:\n1234567890,3,2005-09-06\n", "line 2: '1234567890,3,2005-09-06' found where"),
        ("8:\n-6,3,2005-09-06\n", "line 2: '-6,3,2005-09-06' found where"),
        ("8:\n6,3,2005-09-06,\n", "line 2: '6,3,2005-09-06,' found where"),
        ("6,3,2005-09-06\n8:\n", "line 1: a rating before the first line MOVIE:"),
        ("8:\n6,3,2005-09-06\n8:\n", "movie 8 is listed a second time"),
        ("0:\n6,3,2005-09-06\n", "movie 0; movies are numbered 1 to 17770"),
        ("17771:\n", "movie 17771; movies are numbered 1 to 17770"),
        ("8:\n999999999,3,2005-09-06\n", "user 999999999; user ids up to 4194304 can be read"),
        ("", "the file is empty"),
        ("8:\n", "no rows, so there is nothing to release"),
        ("\r\r", "line 1: '\\r\\r' found where MOVIE:"),
    ],
)
def test_faults_name_the_file_and_the_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mv_0000001.txt").write_bytes(b"1:\n\n\r\n5,1,2000-01-01\n")
    path = tmp_path / "mv_0000008.txt"
    path.write_bytes(content.encode())
    with pytest.raises(BadInputError) as error:
        load(f"netflix:{path}")
    assert message in str(error.value)
    if "no rows" not in message:
        with pytest.raises(BadInputError, match=r"mv_0000008\.txt") as error:
            load(f"netflix:{tmp_path}")
        assert message in str(error.value)


def test_a_truncated_gzip_file_is_explained(tmp_path: Path) -> None:
    content = "8:\n" + "".join(f"{user},3,2005-09-06\n" for user in range(5_000))
    whole = gzip.compress(content.encode())
    (tmp_path / "mv_0000008.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInputError, match=r"mv_0000008.txt.gz: the gzip file ends in the middle"):
        load(f"netflix:{tmp_path}")


def test_folders_that_hold_no_ratings_or_both_forms_are_explained(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"the folder has no file mv_\*.txt or combined_data"):
        load(f"netflix:{tmp_path}")
    combined(tmp_path)
    separate(tmp_path, zipped=False)
    with pytest.raises(BadInputError, match=r"both mv_0000001.txt and combined_data_1.txt are"):
        load(f"netflix:{tmp_path}")
    with pytest.raises(BadInputError, match="a folder, not a file"):
        load(f"fimi:{tmp_path}")
    with pytest.raises(BadInputError, match="there is no such file"):
        load(f"netflix:{tmp_path / 'nowhere'}")


TITLES = b"1,2003,Dinosaur Planet\n2,NULL,Am\xe9lie, or Not\n3,1990,It\n4,1990,It\n5,NULL,1984\n"


def test_movies_are_called_by_title_and_year(tmp_path: Path) -> None:
    """Titles may hold commas and Latin letters; those of two movies are their numbers."""
    combined(tmp_path)
    assert load(f"netflix:{tmp_path}").schema.column_names[0] == "1"
    (tmp_path / "movie_titles.csv").write_bytes(TITLES)
    for path in (tmp_path, tmp_path / "combined_data_1.txt"):
        data = load(f"netflix:{path}")
        names = ["Dinosaur Planet (2003)", "Amélie, or Not", "3", "4", "5", "6"]
        assert list(data.schema.column_names[:6]) == names
        assert data.schema.declared
    literals = np.array([[0, 3, 5]], np.int32)
    printed = print_queries(literals, data.schema)[0]
    assert printed == "Dinosaur Planet (2003) & !Amélie, or Not & !3"
    np.testing.assert_array_equal(parse_query(printed, data.schema), literals[0])
    np.testing.assert_array_equal(parse_query("1 & !2 & !3", data.schema), literals[0])
    kept = load(f"netflix:{tmp_path}", columns="2-3").schema
    assert kept.column_names == ("Amélie, or Not", "3")
    assert schema_from_dict(kept.to_dict()) == kept


def test_a_line_that_is_no_title_is_explained(tmp_path: Path) -> None:
    combined(tmp_path)
    (tmp_path / "movie_titles.csv").write_bytes(b"1,2003,A\nB,C\n")
    with pytest.raises(BadInputError, match=r"movie_titles.csv: line 2: 'B,C' found where MOVIE"):
        load(f"netflix:{tmp_path}")
