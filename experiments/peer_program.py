"""What runs in a process of its own, and for a peer in its own environment, without our packages.

The working folder holds ``job.json`` and ``table.npy``, a row of category codes for each row. It
gets ``records.npy``, of the same columns; with our own library a release, too.
"""

import json
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


def private_pgm(job: dict[str, Any], table: Any) -> Any:
    """Let private-pgm's own programs make records, with the numbers that they have by default."""
    import jax

    jax.config.update("jax_enable_x64", True)  # as mbi 2.0 asks for
    sys.path.insert(0, str(Path(sys.prefix, "mechanisms")))
    import aim
    import mst
    from mbi import Dataset, Domain, estimation

    def named_as_before(self: Any, *args: Any, potentials: Any = None, **named: Any) -> Any:
        if sys.platform == "linux" and Path("/proc/self/maps").read_bytes().count(b"\n") > 30_000:
            jax.clear_caches()
        return estimate(self, *args, warm_start=potentials, **named)

    # Both use names that mbi 2.0 changed; AIM's compiled code needs more maps than Linux allows.
    Domain.attrs = property(lambda domain: domain.attributes)
    estimate = estimation.MirrorDescent.estimate
    estimation.MirrorDescent.estimate = named_as_before
    asked = (job["epsilon"], job["delta"])
    data = Dataset(dict(zip(job["sizes"], table.T, strict=True)), Domain.fromdict(job["sizes"]))
    if job["mechanism"] == "MST":
        made = mst.MST(data, *asked)
    else:
        pairs = [pair for pair in combinations(job["sizes"], 2) if data.domain.size(pair) <= 10_000]
        _, made = aim.AIM(*asked).run(data, [(pair, 1.0) for pair in pairs])
    return np.stack([made.to_dict()[name] for name in job["sizes"]], axis=1)


def _mend_drawing() -> None:
    """Let mbi 1.1 draw records of its own models."""
    # It gives columns that depend on the same column the same order of rows, and forgets what the
    # junction tree adds to cliques: both are mended in 2.0, which these libraries do not take.
    from mbi import MarkovRandomField, junction_tree, markov_random_field

    def in_random_order(keys: Any, **_: Any) -> Any:
        return np.lexsort((np.random.random(len(keys)), keys))  # noqa: NPY002

    def with_whole_cliques(model: Any, rows: int | None = None, method: str = "round") -> Any:
        tree, _ = junction_tree.make_junction_tree(model.domain, [*map(set, model.cliques)])
        return drawn(model.replace(potentials=model.potentials.expand([*tree])), rows, method)

    drawn = MarkovRandomField.synthetic_data
    markov_random_field.np = SimpleNamespace(**{**vars(np), "argsort": in_random_order})
    MarkovRandomField.synthetic_data = with_whole_cliques


def smartnoise(job: dict[str, Any], table: Any) -> Any:
    """Let smartnoise-synth make records, each column's categories known beforehand."""
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    _mend_drawing()
    columns = {name: LabelTransformer(nullable=False) for name in job["sizes"]}
    for name, size in job["sizes"].items():
        columns[name].fit(list(range(size)))
    asked = {name: job[name] for name in ("epsilon", "delta")}
    made = Synthesizer.create(job["mechanism"].lower(), **asked)
    known = TableTransformer([*columns.values()])
    made.fit(pd.DataFrame(table, columns=[*columns]), transformer=known)
    return made.sample(len(table)).to_numpy()


def opendp(job: dict[str, Any], table: Any) -> Any:
    """Let OpenDP make records; a cut after each code but the last makes each a category."""
    import opendp.prelude as dp
    import polars as pl
    from opendp.extras.mbi import _mst

    _mst.prior = lambda budget: budget * (1 - 1e-12)  # one float less is too little for its sums
    _mend_drawing()
    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.DataFrame(table, [*job["sizes"]]).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=job["rho"]),
        split_evenly_over=1,
    )
    cuts = {name: [*range(size - 1)] for name, size in job["sizes"].items()}
    algorithm = getattr(dp.mbi, job["mechanism"])()
    made = context.query().contingency_table(cuts=cuts, algorithm=algorithm).release()
    return made.synthesize().select([*job["sizes"]]).to_numpy()


def dpmm(job: dict[str, Any], table: Any) -> Any:
    """Let dpmm make records; 80 MB is the model size that its AIM class has by default."""
    import pandas as pd
    from dpmm import pipelines

    made = getattr(pipelines, f"{job['mechanism']}Pipeline")(
        **{name: job[name] for name in ("epsilon", "delta")}, disable_processing=True,
        max_model_size=80 if job["mechanism"] == "AIM" else None,
    )  # fmt: skip
    frame = pd.DataFrame(table, columns=[*job["sizes"]])
    seed = job["seed"]
    made.fit(frame, job["sizes"], random_state=seed)
    return made.generate(len(table), random_state=seed)[[*frame]].to_numpy()


def ours(job: dict[str, Any], table: Any) -> Any:
    """Let this project make a release, which is saved, and records."""
    import dualquery
    from dualquery.data import schema_from_dict
    from dualquery.data.domain import column_values, rows_of_values

    schema = schema_from_dict(job["schema"])
    asked = {name: job[name] for name in ("mechanism", "epsilon", "delta", "seed")}
    rows = schema.decode(rows_of_values(table, schema.domain))
    release = dualquery.release(rows, schema=schema, neighbours="add-remove", **asked)
    assert release.records is not None
    release.save("release")
    return column_values(release.records, schema.domain)


if __name__ == "__main__":
    given = json.loads(Path("job.json").read_text("utf-8"))
    np.random.seed(given["seed"])  # noqa: NPY002
    found = globals()[given["library"].replace("-", "_")](given, np.load("table.npy"))
    np.save("records.npy", np.asarray(found).astype(np.int64))
    if (status := Path("/proc/self/status")).exists():  # getrusage has the peak of who called, too
        Path("kib").write_text(status.read_text("utf-8").split("VmHWM:")[1].split()[0], "utf-8")
