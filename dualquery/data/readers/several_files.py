"""Which files are one table: those of a folder, or those that a pattern means."""

from __future__ import annotations

from pathlib import Path

from dualquery.runtime.errors import BadInputError

ENDINGS = {"parquet": (".parquet",), "csv": (".csv", ".csv.gz"), "tsv": (".tsv", ".tab", ".tsv.gz")}
"""Formats of which several files may be one table, and how their names end."""


def several_files(form: str | None, path: str, text: str) -> tuple[str, list[Path]]:
    """Return the format and the files of a folder or a pattern, in order; none for other paths.

    Parameters
    ----------
    form
        The format that the user named, or None: then a folder is one of parquet files, and the
        ending of a pattern tells its format.
    path
        What may be a folder or a pattern.
    text
        What messages call it.

    Raises
    ------
    BadInputError
        If the folder has no file of the format that was named, or subfolders named
        ``COLUMN=VALUE``, whose files lack these values.
    """
    folder = Path(path)
    if folder.is_dir():
        named, form = form is not None, form or "parquet"
        if form not in ENDINGS:
            return form, []
        _refuse_hive(folder, form, text)
        found = [part for part in folder.iterdir() if part.name.lower().endswith(ENDINGS[form])]
        parts = sorted(part for part in found if part.is_file())
        if named and not parts:
            raise BadInputError(
                f"{text}: no file in the folder ends in {' or '.join(ENDINGS[form])}"
            )
        return form, parts
    meant = [each for each, ends in ENDINGS.items() if path.endswith(ends) and form in (each, None)]
    if not meant or folder.exists() or not set("*?[") & set(path):
        return form or "parquet", []
    top, pattern = Path(folder.anchor), str(folder.relative_to(folder.anchor))
    return meant[0], sorted(part for part in top.glob(pattern) if part.is_file())


def _refuse_hive(folder: Path, form: str, text: str) -> None:
    subfolders = (part for part in sorted(folder.iterdir()) if "=" in part.name and part.is_dir())
    hive = next(subfolders, None)
    if hive is not None and any(each.name.endswith(ENDINGS[form]) for each in hive.rglob("*")):
        raise BadInputError(
            f"{text}: the subfolder {hive.name!r} stands for a column that its files lack; write "
            "the table with all its columns in the files"
        )
