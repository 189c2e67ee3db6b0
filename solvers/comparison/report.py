"""A comparison's files: every call as Parquet, and all of it as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from solvers.comparison.runs import Measurement, NamedProblem
from solvers.comparison.summary import advice, best_known, summarise


def report(
    problems: Sequence[NamedProblem],
    measurements: Sequence[Measurement],
    limit: float,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a comparison as one JSON-able object; what is infinite becomes None.

    Parameters
    ----------
    problems, measurements
        What was compared, and what came of it.
    limit
        The longest time limit, seconds.
    settings
        How it was made.
    """
    best = best_known(measurements)
    summaries = summarise(measurements)
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
        "summary": [_finite(asdict(each)) for each in summaries],
        "advice": advice(summaries, limit),
    }


def write_report(folder: Path, content: dict[str, Any]) -> None:
    """Write ``comparison.json`` and ``measurements.parquet`` into a folder."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [
            ("instance", pyarrow.string()),
            ("solver", pyarrow.string()),
            ("limit", pyarrow.float64()),
            ("status", pyarrow.string()),
            ("objective", pyarrow.float64()),
            ("bound", pyarrow.float64()),
            ("incumbent_seconds", pyarrow.float64()),
            ("seconds", pyarrow.float64()),
            ("memory_mib", pyarrow.float64()),
            ("message", pyarrow.string()),
        ]
    )
    table = pyarrow.Table.from_pylist(content["measurements"], schema)
    pyarrow.parquet.write_table(table, folder / "measurements.parquet")
    text = json.dumps(content, indent=2, allow_nan=False)
    (folder / "comparison.json").write_text(text + "\n", encoding="utf-8")


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in values.items()
    }
