"""What runs in a process of its own, and for a peer in its own environment, without our packages.

The working folder holds ``job.json`` and ``table.npy``, a row of category codes for each row. It
gets ``records.npy``, of the same columns; with our own library a release, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def smartnoise(job: dict[str, Any], table: Any) -> Any:
    """Let smartnoise-synth make records, each column's categories known beforehand."""
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    columns = [LabelTransformer(nullable=False) for _ in job["sizes"]]
    for column, size in zip(columns, job["sizes"], strict=True):
        column.fit(list(range(size)))
    asked = {"epsilon": job["epsilon"], "delta": job["delta"]}
    made = Synthesizer.create(job["mechanism"].lower(), **asked)
    frame = pd.DataFrame(table, columns=_names(job))
    made.fit(frame, transformer=TableTransformer(columns))
    return made.sample(len(table))[_names(job)].to_numpy()


def opendp(job: dict[str, Any], table: Any) -> Any:
    """Let OpenDP make records; a cut after each code but the last makes each a category."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    frame = pl.DataFrame({name: table[:, at] for at, name in enumerate(_names(job))})
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=job["rho"]),
        split_evenly_over=1,
    )
    cuts = {name: list(range(job["sizes"][at] - 1)) for at, name in enumerate(_names(job))}
    algorithm = getattr(dp.mbi, job["mechanism"])()
    made = context.query().contingency_table(cuts=cuts, algorithm=algorithm).release()
    return made.synthesize().select(_names(job)).to_numpy()


def dpmm(job: dict[str, Any], table: Any) -> Any:
    """Let dpmm make records; 80 MB is the model size that its AIM class has by default."""
    import pandas as pd
    from dpmm import pipelines

    made = getattr(pipelines, f"{job['mechanism']}Pipeline")(
        epsilon=job["epsilon"], delta=job["delta"], max_model_size=80, disable_processing=True
    )
    domain = dict(zip(_names(job), job["sizes"], strict=True))
    made.fit(pd.DataFrame(table, columns=_names(job)), domain, random_state=job["seed"])
    return made.generate(len(table), random_state=job["seed"])[_names(job)].to_numpy()


def ours(job: dict[str, Any], table: Any) -> Any:
    """Let this project make a release, which is saved, and records."""
    import dualquery
    from dualquery.data import schema_from_dict
    from dualquery.data.domain import column_values, rows_of_values

    schema = schema_from_dict(job["schema"])
    release = dualquery.release(
        schema.decode(rows_of_values(table, schema.domain)),
        schema=schema,
        neighbours="add-remove",
        **{name: job[name] for name in ("mechanism", "epsilon", "delta", "seed")},
    )
    assert release.records is not None
    release.save("release")
    return column_values(release.records, schema.domain)


def _names(job: dict[str, Any]) -> list[str]:
    return [f"c{at}" for at in range(len(job["sizes"]))]


if __name__ == "__main__":
    given = json.loads(Path("job.json").read_text("utf-8"))
    np.random.seed(given["seed"])  # noqa: NPY002
    makers = {"smartnoise": smartnoise, "opendp": opendp, "dpmm": dpmm, "ours": ours}
    found = makers[given["library"]](given, np.load("table.npy"))
    np.save("records.npy", np.asarray(found).astype(np.int64))
