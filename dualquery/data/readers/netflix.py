"""``netflix``: the files of the Netflix Prize; row = user, item = a movie that the user rated.

The files list the users of each movie: a line ``MOVIE:``, then a line ``USER,RATING,DATE`` for each
rating: one file a movie, ``mv_*.txt``, or a few files, ``combined_data_*.txt``. Rows come in the
order of the user ids; users without any rating are not there. The movies, 1 to 17770, are public.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.opening import CHUNK_BYTES, line_chunks
from dualquery.data.readers.source import BLOCK_ROWS, ItemRows, ItemSource
from dualquery.data.schema.items import ItemSchema
from dualquery.runtime.errors import BadInputError

MOVIES = 17_770
LARGEST_USER = 2**22  # ids of the prize end at 2,649,429; the table is as long as the largest id

_LINE = r"^(?<number>\d{1,9})(?<kind>:|,[1-5],[\d-]{10})\r?$"

PATTERNS = ("mv_*.txt", "combined_data_*.txt")


@dataclass(frozen=True)
class NetflixSource(ItemSource):
    """A folder of the prize's files, or one of them, gzipped or not.

    A user's row is complete only once the last file is read: the ratings are held, in some 20 bytes
    each (2 GB for the 100 million of the prize).
    """

    path: Path
    label: str
    chunk_bytes: int = CHUNK_BYTES
    block_rows: int = BLOCK_ROWS

    @cached_property
    def schema(self) -> ItemSchema:  # type: ignore[override]
        """The movies of the prize."""
        return ItemSchema(np.arange(1, MOVIES + 1, dtype=np.int64), "netflix", declared=True)

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block (see the class for the memory that takes)."""
        from scipy.sparse import coo_array

        both = np.concatenate([np.zeros((2, 0), np.int32), *self._ratings()], axis=1)
        if not both.size:
            return
        by_user = coo_array((np.ones(both.shape[1], np.int8), tuple(both))).tocsr()
        indptr = np.unique(by_user.indptr).astype(np.int64)  # of users with a rating
        for start in range(0, len(indptr) - 1, self.block_rows):
            piece = indptr[start : start + self.block_rows + 1]
            yield ItemRows(piece - piece[0], by_user.indices[piece[0] : piece[-1]].astype(np.int64))

    def _ratings(self) -> Iterator[NDArray[np.int32]]:
        """Yield pairs of users and movies that they rated: shape ``(2, ratings)``."""
        seen = np.zeros(MOVIES + 1, np.bool_)
        for path in self._files():
            label = self.label if path == self.path else f"{self.label}: {path.name}"
            movie = 0
            for first_line, chunk in line_chunks(path, label, self.chunk_bytes):
                users, movies, of_users = _parse(chunk, label, first_line)
                repeated = seen[movies] | (np.bincount(movies, minlength=1)[movies] > 1)
                if repeated.any():
                    again = movies[np.argmax(repeated)]
                    raise BadInputError(f"{label}: movie {again} is listed a second time")
                seen[movies] = True
                known = np.append(movie, movies)  # the first began in the chunk before
                if len(users) and not known[of_users[0]]:
                    raise BadInputError(
                        f"{label}: line {first_line}: a rating before the first line MOVIE:"
                    )
                yield np.stack([users, known[of_users]]).astype(np.int32)
                movie = known[-1]

    def _files(self) -> list[Path]:
        """Return the files with ratings, in the order of their names."""
        if not self.path.is_dir():
            return [self.path]
        patterns = (each + end for each in PATTERNS for end in ("", ".gz"))
        if not (found := [file for pattern in patterns for file in self.path.glob(pattern)]):
            raise BadInputError(
                f"{self.label}: the folder has no file {' or '.join(PATTERNS)}; name the folder "
                "that holds them, or one file"
            )
        return sorted(found)


def _parse(
    chunk: bytes, label: str, first_line: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the users of a chunk, its movies, and how many of these stand before each user."""
    text = pl.Series("line", chunk.decode("latin-1").split("\n")[:-1], dtype=pl.String)
    found = text.str.extract_groups(_LINE).struct.unnest()
    number = found["number"].cast(pl.Int64, strict=False)
    if len(wrong := (number.is_null() & (text.str.strip_suffix("\r") != "")).arg_true()):
        raise BadInputError(
            f"{label}: line {first_line + wrong[0]}: {text[wrong[0]][:60]!r} found where MOVIE: or "
            "USER,RATING,DATE (such as 1488844,3,2005-09-06) is expected"
        )
    heads = (found["kind"] == ":").fill_null(False)
    rated = number.is_not_null() & ~heads
    movies, users = number.filter(heads).to_numpy(), number.filter(rated).to_numpy()
    if len(beyond := movies[(movies < 1) | (movies > MOVIES)]):
        raise BadInputError(f"{label}: movie {beyond[0]}; movies are numbered 1 to {MOVIES}")
    if users.max(initial=0) > LARGEST_USER:
        raise BadInputError(f"{label}: user {users.max()}; ids up to {LARGEST_USER} can be read")
    return users, movies, heads.cum_sum().filter(rated).to_numpy().astype(np.int64)
