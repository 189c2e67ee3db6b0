"""Adult with rules between its columns, as a careful owner of the table would declare them.

What the rules say follows from what the columns mean. Five rows of the table break one all the
same, as rows of real tables do.
"""

from __future__ import annotations

import json
from pathlib import Path

from dualquery.data import load_schema
from experiments.harness.run_folder import write_whole

RULED_ADULT = "adult-rules"
"""Name of the schema."""

RULES = (
    "relationship=Husband => sex=Male",
    "relationship=Wife => sex=Female",
    "relationship in (Husband, Wife) => marital-status in (Married-civ-spouse, Married-AF-spouse)",
    "relationship=Unmarried => marital-status not in (Married-civ-spouse, Married-AF-spouse)",
    "occupation=Armed-Forces => workclass=Federal-gov",
    "occupation=Priv-house-serv => workclass=Private",
    "workclass=Without-pay => income=<=50K",
    "workclass!=Never-worked",
    "age<20 => education not in (Masters, Doctorate, Prof-school)",
    "age<25 => education!=Doctorate",
    "education=Preschool => income=<=50K",
    "education=Preschool => occupation not in (Prof-specialty, Exec-managerial, Tech-support)",
)
"""Texts for ``rules`` of a schema file."""


def ruled_adult(folder: Path) -> Path:
    """Return the file of the built-in schema ``adult-paper`` with the rules; write it if missing.

    Raises
    ------
    BadInputError
        If it cannot be written.
    """
    path = folder / f"{RULED_ADULT}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fields = {**load_schema("adult-paper").to_dict(), "name": RULED_ADULT}
        write_whole(path, json.dumps({**fields, "rules": list(RULES)}) + "\n")
    return path
