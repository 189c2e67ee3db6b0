"""Answers to questions: a list of lines that shows, saves and loads itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

_TEXTS = ("query", "answered", "source", "basis")
_COLUMNS = ("query", "answered", "answer", "low", "high", "level", "source", "basis")


class Answers(list[dict[str, Any]]):
    """One line a question, as `dualquery.releases.answering.answer_queries` says."""

    def frame(self) -> pl.DataFrame:
        """Return the answers as a table: a row a question, without what is kept for old scripts."""
        import polars as pl

        kinds = {name: pl.String if name in _TEXTS else pl.Float64 for name in _COLUMNS}
        return pl.DataFrame([{name: line[name] for name in kinds} for line in self], schema=kinds)

    def _repr_html_(self) -> str:
        return self.frame()._repr_html_()

    def save(self, path: str | Path) -> Path:
        """Write the answers as a new file, CSV or Parquet by its ending.

        Raises
        ------
        BadInputError
            If the file exists already or cannot be written; nothing is left behind then.
        """
        from dualquery.releases.table_files import check_target, write_frames

        target = Path(path)
        check_target(target)
        write_frames([self.frame()], target)
        return target

    @classmethod
    def load(cls, path: str | Path) -> Answers:
        """Return the answers that `save`, or ``dualquery answer --out``, wrote.

        Raises
        ------
        BadInputError
            If the file cannot be read, or holds something else.
        """
        import polars as pl

        read = pl.read_parquet if Path(path).suffix == ".parquet" else pl.read_csv
        try:
            found = read(path)
            lines = found.cast(cls().frame().schema).select(_COLUMNS).to_dicts()
        except (OSError, pl.exceptions.PolarsError) as fault:
            raise BadInputError(f"{path}: no answers that were saved ({fault})") from None
        for line in lines:
            line["basis"] = line["basis"] or ""
            line["interval"] = None if line["low"] is None else (line["low"], line["high"])
        return cls(lines)
