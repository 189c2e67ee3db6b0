"""``netflix``: the files of the Netflix Prize; row = user, item = a movie that the user rated.

The files list the users of each movie: a line ``MOVIE:``, then a line ``USER,RATING,DATE`` for each
rating. There is one file a movie, ``mv_*.txt``, or all movies in a few files,
``combined_data_*.txt``. Rows come in the order of the user ids; users without any rating are not
in the data. The movies, 1 to 17770, are public, and so are their titles in ``movie_titles.csv``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualquery.data.opening import CHUNK_BYTES, FilePath, line_chunks, open_bytes, read_whole
from dualquery.data.readers.integers import LINE_FEED, line_of
from dualquery.data.readers.python_objects import BLOCK_ROWS
from dualquery.data.readers.source import ItemRows
from dualquery.data.schema.items import ItemSchema
from dualquery.runtime.errors import BadInputError

MOVIES = 17_770
LARGEST_USER = 2**22
"""User ids of the prize end at 2,649,429; the table of users is as long as the largest."""

MOST_RATINGS = 2**27
"""The prize has 100,480,507."""

LONGEST_TITLES = 1 << 24
"""Bytes of ``movie_titles.csv``, which has half a megabyte."""

PATTERNS = ("mv_*.txt", "combined_data_*.txt")
TITLES = "movie_titles.csv"


@dataclass(frozen=True)
class NetflixSource:
    """A folder of the prize's files, or one of them, gzipped or not.

    A user's row is complete only once the last file is read: the ratings are held, as 6 bytes
    each, until the rows have been taken out (600 MB for the 100 million of the prize), and 40
    bytes for each user up to the largest.
    """

    path: Path
    label: str
    chunk_bytes: int = CHUNK_BYTES
    block_rows: int = BLOCK_ROWS

    def width(self) -> int | None:
        """Return None: ids begin at 1 (see `schema`)."""
        return None

    def schema(self) -> ItemSchema:
        """Return the movies of the prize, by title and year if ``movie_titles.csv`` is there.

        A movie without a title, or with the title and year of another, is called by its number.

        Raises
        ------
        BadInputError
            If a line of that file is not ``MOVIE,YEAR,TITLE``.
        """
        movies = np.arange(1, MOVIES + 1, dtype=np.int64)
        titles = self._titles()
        if not titles:
            return ItemSchema(movies, "netflix", declared=True)
        uses = Counter(titles.values())
        usable = {
            m: title for m, title in titles.items() if uses[title] == 1 and not title.isdigit()
        }
        names = tuple(usable.get(movie, str(movie)) for movie in movies.tolist())
        return ItemSchema(movies, "netflix", names=names, declared=True)

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block (see the class for the memory that takes).

        Raises
        ------
        BadInputError
            If there is no file, a line is neither form, an id is out of its range, or a movie
            occurs twice.
        """
        from dualquery.data.readers import netflix_kernels as kernels

        lists: list[tuple[int, NDArray[np.int32]]] = []
        ratings = np.zeros(0, np.int32)
        total = 0
        for movie, users in self._lists():
            needed = int(users.max(initial=-1)) + 1
            if needed > len(ratings):
                ratings = np.concatenate((ratings, np.zeros(needed - len(ratings), np.int32)))
            kernels.count_users(users, ratings)
            lists.append((movie, users))
            total += len(users)
            if total > MOST_RATINGS:
                raise BadInputError(
                    f"{self.label}: more than {MOST_RATINGS:,} ratings; the prize has 100,480,507"
                )
        ends = np.cumsum(ratings, dtype=np.int64)
        movies = np.empty(ends[-1] if len(ends) else 0, np.uint16)
        place = ends - ratings
        for movie, users in lists:
            kernels.place_movie(users, movie, place, movies)
        lists.clear()
        indptr = np.concatenate(([0], ends[ratings > 0]))
        for start in range(0, len(indptr) - 1, self.block_rows):
            piece = indptr[start : start + self.block_rows + 1]
            yield ItemRows(piece - piece[0], movies[piece[0] : piece[-1]].astype(np.int64))

    def _titles(self) -> dict[int, str]:
        """Return ``TITLE (YEAR)`` for movies in the file beside the ratings; none without it."""
        folder = self.path if self.path.is_dir() else self.path.parent
        path = folder / TITLES
        titles: dict[int, str] = {}
        if not path.is_file():
            return titles
        label = f"{folder.name}/{TITLES}"
        with open_bytes(path, label) as stream:
            content = read_whole(stream, label, LONGEST_TITLES)
        lines = content.decode("latin-1").splitlines()
        for number, line in enumerate(lines, 1):
            # A title may hold commas and is not quoted.
            movie, *rest = line.split(",", 2)
            if not (movie.isascii() and movie.isdigit() and len(movie) < 10) or len(rest) != 2:
                raise BadInputError(
                    f"{label}: line {number}: {line[:40]!r} found where MOVIE,YEAR,TITLE is "
                    "expected"
                )
            year, title = rest
            titles[int(movie)] = f"{title.strip()} ({year})" if year.isdigit() else title.strip()
        return titles

    def _lists(self) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """Yield the users who rated a movie; a movie cut by a chunk's end comes in pieces."""
        seen: set[int] = set()
        for path in self._files():
            label = self.label if path == self.path else f"{self.label}: {path.name}"
            movie = 0
            for first_line, chunk in line_chunks(path, label, self.chunk_bytes):
                users, movies, bounds = _parse(np.frombuffer(chunk, np.uint8), label, first_line)
                repeated = _first_repeated(movies, seen)
                if repeated:
                    raise BadInputError(f"{label}: movie {repeated} is listed a second time")
                if not movie and len(users) and (not len(bounds) or bounds[0]):
                    raise BadInputError(
                        f"{label}: line {first_line}: a rating before the first line MOVIE:"
                    )
                edges = np.concatenate(([0], bounds, [len(users)]))
                for number, start, stop in zip(
                    [movie, *movies], edges[:-1], edges[1:], strict=True
                ):
                    if stop > start:
                        yield number, users[start:stop]
                    movie = number

    def _files(self) -> list[Path]:
        """Return the files with ratings, in the order of their names."""
        if not self.path.is_dir():
            return [self.path]
        found = (
            sorted({*self.path.glob(pattern), *self.path.glob(f"{pattern}.gz")})
            for pattern in PATTERNS
        )
        kinds = list(filter(None, found))
        if not kinds:
            raise BadInputError(
                f"{self.label}: the folder has no file {' or '.join(PATTERNS)}; name the folder "
                "that holds them, or one file"
            )
        if len(kinds) > 1:
            raise BadInputError(
                f"{self.label}: both {kinds[0][0].name} and {kinds[1][0].name} are there, two "
                "forms of the same ratings; leave one in the folder"
            )
        return kinds[0]


def open_netflix(path: FilePath, label: str) -> NetflixSource:
    """Return the source for a folder or a file."""
    return NetflixSource(Path(str(path)), label)


def _parse(
    chunk: NDArray[np.uint8], label: str, first_line: int
) -> tuple[NDArray[np.int32], list[int], NDArray[np.int64]]:
    """Return the users of a chunk, its movies, and how many of the users come before each movie."""
    from dualquery.data.readers import netflix_kernels as kernels

    lines = int(np.count_nonzero(chunk == LINE_FEED))
    users = np.empty(lines, np.int32)
    movies = np.empty(lines, np.int64)
    bounds = np.empty(lines, np.int64)
    ratings, headers, fault = kernels.parse_lines(chunk, users, movies, bounds)
    if fault >= 0:
        line = bytes(chunk[fault : fault + 60]).split(b"\n")[0].decode("latin-1")
        raise BadInputError(
            f"{label}: line {line_of(chunk, fault, first_line)}: {line!r} found where MOVIE: or "
            "USER,RATING,DATE (such as 1488844,3,2005-09-06) is expected"
        )
    users, movies = users[:ratings].copy(), movies[:headers]
    wrong = movies[(movies < 1) | (movies > MOVIES)]
    if len(wrong):
        raise BadInputError(f"{label}: movie {wrong[0]}; movies are numbered 1 to {MOVIES}")
    largest = int(users.max(initial=0))
    if largest > LARGEST_USER:
        raise BadInputError(f"{label}: user {largest}; user ids up to {LARGEST_USER} can be read")
    return users, movies.tolist(), bounds[:headers]


def _first_repeated(movies: list[int], seen: set[int]) -> int:
    """Return the first movie that was seen before, or 0, and add all to ``seen``."""
    for movie in movies:
        if movie in seen:
            return movie
        seen.add(movie)
    return 0
