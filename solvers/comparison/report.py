"""A comparison's files: every call as Parquet, and all of it as JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from solvers.comparison.runs import Measurement, NamedProblem
from solvers.comparison.summary import best_known, summarise


def report(
    problems: Sequence[NamedProblem],
    measurements: Sequence[Measurement],
    limit: float,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a comparison as one JSON-able object; what is infinite becomes None."""
    best = best_known(measurements)
    return {
        "settings": {"limit": limit, **settings},
        "instances": [
            {
                "name": named.name,
                "attributes": named.problem.attributes,
                "terms": len(named.problem.terms),
                "groups": len(named.problem.groups),
                "constraints": len(named.problem.constraints),
                "best_known": best.get(named.name),
            }
            for named in problems
        ],
        "measurements": [_finite(asdict(each)) for each in measurements],
        "summary": [_finite(asdict(each)) for each in summarise(measurements)],
    }


def write_report(folder: Path, content: dict[str, Any]) -> None:
    """Write ``comparison.json`` and ``measurements.parquet`` into a folder."""
    import polars as pl

    table = pl.DataFrame(content["measurements"], infer_schema_length=None)
    with (folder / "measurements.parquet").open("wb") as file:  # whatever bytes its path has
        table.write_parquet(file)
    text = json.dumps(content, indent=2, allow_nan=False)
    (folder / "comparison.json").write_text(text + "\n", encoding="utf-8")


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in values.items()
    }
