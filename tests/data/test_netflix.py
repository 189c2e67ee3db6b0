"""The Netflix Prize files: both forms give the same rows, and every fault names file and line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.readers.netflix import MOVIES, NetflixSource
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError

RATED = {8: [30, 6, 1_488_844], 1: [6, 7], 17_770: [2_649_429], 5: [1_488_844, 7, 6, 30]}
USERS = sorted({user for users in RATED.values() for user in users})


def text(movie: int, ending: str = "\n") -> str:
    lines = [f"{movie}:", *(f"{user},{1 + user % 5},2005-09-06" for user in RATED[movie])]
    return "".join(line + ending for line in lines)


def rows_of(source: object, columns: str | None = None) -> dict[int, set[int]]:
    data = load(source, columns=columns)
    items = data.schema.items  # type: ignore[union-attr]
    dense = data.records.dense_rows(0, data.n)
    return {row: set(items[np.flatnonzero(bits)].tolist()) for row, bits in enumerate(dense)}


EXPECTED = {
    row: {movie for movie, users in RATED.items() if user in users}
    for row, user in enumerate(USERS)
}


def separate(folder: Path, zipped: bool) -> None:
    ending, pack = (".gz", gzip.compress) if zipped else ("", bytes)
    for movie in RATED:
        (folder / f"mv_{movie:07}.txt{ending}").write_bytes(pack(text(movie).encode()))


def combined(folder: Path, ending: str = "\n") -> None:
    first, *others = RATED
    (folder / "combined_data_1.txt").write_bytes(text(first, ending).encode())
    rest = "".join(text(movie, ending) for movie in others)
    (folder / "combined_data_2.txt").write_bytes(rest.removesuffix(ending).encode())


@pytest.mark.parametrize(
    ("write", "how"), [(separate, False), (separate, True), (combined, "\n"), (combined, "\r\n")]
)
def test_one_file_a_movie_or_many_movies_a_file(tmp_path: Path, write, how: bool | str) -> None:
    write(tmp_path, how)
    assert rows_of(f"netflix:{tmp_path}") == EXPECTED


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
    path, lines = tmp_path_factory.mktemp("netflix") / "combined_data_1.txt", []
    for movie, users in rated.items():
        lines += [f"{movie}:", *(f"{user},3,2004-02-29" for user in users)]
    path.write_text("\n".join(lines))
    users = sorted(set().union(*rated.values()))
    assert rows_of(NetflixSource(path, "test", chunk_bytes=chunk, block_rows=block)) == {
        row: {movie for movie, raters in rated.items() if user in raters}
        for row, user in enumerate(users)
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("8:\n6,3,2005-09-06\nx,3,2005-09-06\n", "line 3: 'x,3,2005-09-06' found where MOVIE: or"),
        ("6,3,2005-09-06\n8:\n", "line 1: a rating before the first line MOVIE:"),
        ("8:\n6,3,2005-09-06\n8:\n", "movie 8 is listed a second time"),
        ("0:\n6,3,2005-09-06\n", "movie 0; movies are numbered 1 to 17770"),
        ("8:\n999999999,3,2005-09-06\n", "user 999999999; ids up to 4194304 can be read"),
        ("8:\n", "no rows, so there is nothing to release"),
    ],
)
def test_faults_name_the_file_and_the_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mv_0000001.txt").write_bytes(b"1:\n\n\r\n5,1,2000-01-01\n")
    (path := tmp_path / "mv_0000008.txt").write_bytes(content.encode())
    with pytest.raises(BadInputError) as error:
        load(f"netflix:{path}")
    assert message in str(error.value)
    if "no rows" not in message:
        with pytest.raises(BadInputError, match=r"mv_0000008\.txt") as error:
            load(f"netflix:{tmp_path}")
        assert message in str(error.value)


def test_folders_that_hold_no_ratings_or_both_forms_are_explained(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"the folder has no file mv_\*.txt or combined_data"):
        load(f"netflix:{tmp_path}")
    combined(tmp_path)
    separate(tmp_path, zipped=False)
    with pytest.raises(BadInputError, match=r"mv_0000001.txt: movie 1 is listed a second time"):
        load(f"netflix:{tmp_path}")
    with pytest.raises(BadInputError, match="there is no such file"):
        load(f"netflix:{tmp_path / 'nowhere'}")
