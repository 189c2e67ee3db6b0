"""Other libraries of private synthetic data beside ours, on the same tables of category codes.

Each library has an environment of its own and each run a process of its own, which is given the
table, its columns' numbers of categories, and the budget. All protect a row that is added or
removed. Ours keeps the number of rows private; smartnoise-synth and dpmm are told it, the others
estimate it. Into private-pgm's environment its folder `mechanisms` is copied by hand.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dualquery
from dualquery.data import schema_from_dict
from dualquery.data.domain import column_values, rows_of_values
from dualquery.privacy.calibrate import rho_for
from dualquery.queries.derived_queries import Cuboids
from dualquery.releases.compare.evaluation import Errors
from dualquery.requests import WorkloadRequest
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError
from experiments import gate, learning, nist
from experiments.comparing import means
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.harness.run_folder import TOO_LONG
from experiments.nist_scores import k_marginal

PACKAGES: Mapping[str, Sequence[str]] = {
    "private-pgm": ("mbi==2.0.0", "pandas==2.3.3", "matplotlib"),
    "smartnoise": ("smartnoise-synth==1.0.8", "mbi==1.1.0"),
    "opendp": ("opendp[mbi]==0.16.0", "pandas==2.3.3"),
    "dpmm": ("dpmm==0.1.9",),
}
"""Library -> what is installed in its environment."""
PEERS = tuple(f"{library} {mechanism}" for library in PACKAGES for mechanism in ("MST", "AIM"))
OURS, INDEPENDENT = "ours auto", "ours independent"
CONTENDERS = (OURS, INDEPENDENT, *PEERS)
ADULT, WIDE, CENSUS = "adult", "wide", "census"
TABLES = (ADULT, *nist.EXCERPTS, WIDE)
EPSILONS: Mapping[str, Sequence[float]] = {ADULT: (1.0, 0.1, 10.0)}
"""Table -> budgets; of others 1."""
DELTA = 1e-9
PROGRAM = Path(__file__).with_name("peer_program.py")
COMPARED = ("pairs", "worst_pair", "triples", "max_error", "mean_error", "k_marginal", "auc")
LARGER_IS_BETTER = ("k_marginal", "auc")


def plan(choices: Choices) -> Sequence[Run]:
    """Plan a run for each table at hand, budget and library; make environments that are missing."""
    wanted = choices.named("peer", CONTENDERS) or CONTENDERS
    tables = choices.named("table", TABLES)
    own = choices.options
    if choices.quick:
        if wanted is not CONTENDERS or tables:
            raise BadInputError("--quick compares two of ours on its own table: no --peer, --table")
        tables, wanted = (CENSUS,), (OURS, INDEPENDENT)
    elif not own.get("peer_env"):
        raise BadInputError(
            "--peer-env: name a folder for the environments of other libraries, which are made if "
            "they are not there. Without it, --quick compares ours with independent columns"
        )
    files = ("adult-train", "adult-test", *nist.EXCERPTS)
    has = choices.data
    needed = {*tables, *(files[:2] if files[0] in has or files[1] in has else ())}
    paths = {x: str(has.path(x, "")) if x in has or x in needed else None for x in files}
    asked = [each for each in PACKAGES if any(name.startswith(f"{each} ") for name in wanted)]
    pythons = {each: _environment(Path(own["peer_env"][-1]), each) for each in asked}
    return [
        {"table": table, "files": [paths.get(table), paths["adult-train"], paths["adult-test"]],
         "contender": name, "python": pythons.get(name.split()[0], sys.executable),
         "limit": (own.get("limit") or [3_600.0])[-1], "epsilon": epsilon, "seed": seed}
        for table in tables or [x for x in TABLES if x not in nist.EXCERPTS or paths[x]]
        for epsilon in EPSILONS.get(table, (1.0,))
        for name in wanted
        for seed in choices.seeds(1)
    ]  # fmt: skip


def _environment(folder: Path, library: str) -> str:
    """Return the Python of a library's environment, which is made if it is not there."""
    own = folder.resolve() / library
    python = own / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    whole, packages = own / "whole", " ".join(PACKAGES[library])
    try:
        if not whole.exists() or whole.read_text("utf-8") != packages:
            venv.create(own, with_pip=True)
            install = [str(python), "-m", "pip", "install", *PACKAGES[library]]
            if subprocess.run(install, check=False).returncode == 0:  # noqa: S603
                whole.write_text(packages, "utf-8")
    except OSError as error:
        raise BadInputError(f"--peer-env {folder}: {error.strerror}") from error
    return str(python)


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Make records once, and measure them, and the answers of ours; or say why there are none."""
    data, held_back = _table(run["table"], *run["files"])
    domain = data.schema.domain
    truth = column_values(data.records.dense_rows(0, data.n), domain)
    library, mechanism = run["contender"].split()
    sizes = {f"c{at}": max(int(size), 2) for at, size in enumerate(domain.sizes)}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        job = {"library": library, "mechanism": mechanism, "sizes": sizes, "delta": DELTA,
               "epsilon": run["epsilon"], "rho": rho_for(run["epsilon"], DELTA),
               "seed": run["seed"], "schema": data.schema.to_dict()}  # fmt: skip
        np.save(home / "table.npy", truth)
        (home / "job.json").write_text(json.dumps(job), "utf-8")
        took = _called(home, run["python"], run["limit"])
        if "failure" in took:
            return [{"of": "records", **took}]
        made = np.load(home / "records.npy")
        release = dualquery.load_release(home / "release") if library == "ours" else None
    pairs: Any = "all" if comb(len(sizes), 2) <= 1_000 else 1_000
    requests = (WorkloadRequest(marginals=pairs, way=2), WorkloadRequest(marginals=64),
                WorkloadRequest(queries=1_000))  # fmt: skip
    asked = [request.build(data.schema, data.n) for request in requests]
    exact, answers = (
        [queries.answers_on(rows_of_values(codes, domain), threads) for queries in asked]
        for codes in (truth, made)
    )
    names = list(data.schema.column_names)
    row: dict[str, Any] = {"of": "records", **_errors(asked, answers, exact)}
    tables = [pl.DataFrame(codes, names) for codes in (truth, made)]
    if "DENSITY" in names:  # NIST's bins are of its values
        labels = pl.Series(data.schema.column("DENSITY")[1].labels)
        tables = [each.with_columns(labels[each["DENSITY"]].alias("DENSITY")) for each in tables]
    row["k_marginal"] = k_marginal(*tables)
    if held_back is not None:
        records = data.schema.decode(rows_of_values(made, domain))
        row["auc"] = learning.auc(records, held_back, data.schema, names[-1])
    rows = [row]
    if release is not None:
        assert release.model is not None
        answers = [release.model.answers(queries) for queries in asked]
        rows.append({"of": "answers", **_errors(asked, answers, exact)})
    return [{**row, **took} for row in rows]


def _table(
    name: str, path: str | None, train: str | None, test: str | None
) -> tuple[Any, pl.DataFrame | None]:
    """Return a table, without rules, and real rows that are held back for learning."""
    if name == WIDE:
        return load(gate.TABLES["wide and dense"]()), None
    if name == CENSUS:
        return load(gate.census().head(3_000), gate.CENSUS), None
    if name == ADULT:
        rows, held_back, schema, _ = learning.adult({"train": train, "test": test, "rows": 20_000})
        return load(rows, schema), held_back
    names = nist.TEN if name == "national2019" else nist.ALL
    unruled = schema_from_dict({**nist.schema(names, name), "rules": []})
    return load(nist.read(path or "", names), unruled), None


def _errors(asked: Sequence[Any], answers: Sequence[Any], exact: Sequence[Any]) -> dict[str, float]:
    """Return L1 distances of marginals, and errors of conjunctions."""
    pairs, triples = (
        np.add.reduceat(abs(found - true)[known.members], known.indptr[:-1])
        for known, found, true in zip(map(Cuboids.of, asked[:2]), answers, exact, strict=False)
    )
    errors = Errors.between(answers[2], exact[2])
    return {"pairs": float(pairs.mean()), "worst_pair": float(pairs.max()),
            "triples": float(triples.mean()), **errors.brief()}  # fmt: skip


def _called(home: Path, python: str, limit: float) -> dict[str, Any]:
    """Run the program in a folder; return what it took, and why it failed, if it did."""
    shutil.copy(PROGRAM, home)
    packages = str(PROGRAM.parents[1]) if python == sys.executable else ""
    failure: dict[str, Any] = {}
    with (home / "log").open("w+", encoding="utf-8") as log:
        try:
            subprocess.run(  # noqa: S603
                [python, PROGRAM.name], cwd=home, env={**os.environ, "PYTHONPATH": packages},
                stdout=log, stderr=log, timeout=limit, check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            failure = {"failure": f"{TOO_LONG} in {limit:,.0f} s"}
        except subprocess.CalledProcessError as error:
            log.seek(0)
            said = [line for line in f"{error}\n{log.read()}".splitlines() if len(line.strip()) > 9]
            killed = f"killed by signal {-error.returncode}" if error.returncode < 0 else ""
            failure = {"failure": killed or said[-1].strip()[:120]}
        except OSError as error:
            failure = {"failure": f"its Python does not run: {error.strerror}"}
    if sys.platform == "win32":
        return failure
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = float((home / "kib").read_text("utf-8")) / 1024 if (home / "kib").exists() else None
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "mib": peak, **failure}


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return means over the seeds that have records; those that have none have their own line."""
    empty = pl.DataFrame(schema={**dict.fromkeys(COMPARED, pl.Float64), "failure": pl.String})
    of, first = (*COMPARED, "cpu_seconds", "mib"), ("failure",)
    whole = pl.concat([empty, table], how="diagonal_relaxed").with_columns(
        failed=pl.col("failure").is_not_null()
    )
    by = ("table", "epsilon", "contender", "of", "failed")
    return means(*by, of=of, first=first)(whole).drop("failed")


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Say which libraries' records are closer than ours, and in what."""
    found = []
    records = summarise(table).filter(of="records")
    for (name, epsilon), here in records.group_by("table", "epsilon", maintain_order=True):
        both = [
            (f"{line['contender']}: {metric}", line[metric], own[metric], metric)
            for own in here.filter(contender=OURS).iter_rows(named=True)
            for line in here.filter(pl.col("contender").is_in(PEERS)).iter_rows(named=True)
            for metric in COMPARED
            if None not in (line[metric], own[metric])
        ]
        closer = [
            f"{said} {theirs:.4g} against {ours:.4g}"
            for said, theirs, ours, metric in both
            if (theirs > ours if metric in LARGER_IS_BETTER else theirs < ours)
        ]
        found.append(
            Finding(
                f"{name}, epsilon {epsilon:g}: no other library's records are closer",
                "; ".join(closer) or "none",
                not closer if both else None,
            )
        )
    return found


RECIPE = Recipe(
    name="peers",
    title="Other libraries of private synthetic data beside ours",
    setting=(
        "MST and AIM of four libraries, with their own defaults, beside ours with the default "
        "workload: category codes, delta 1e-9, neighbours add or remove one row, no rules. Mean L1 "
        "distance of all 2-way marginals (of 1,000 at most), its maximum, that of 64 3-way ones; "
        "errors of 1,000 signed conjunctions; k-marginal; area under the curve of boosting."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    options=(
        Option("peer_env", str, "Folder of the libraries' environments; missing ones are made."),
        Option("peer", str, f"Only this: {', '.join(CONTENDERS)}."),
        Option("table", str, f"Only this table: {', '.join(TABLES)}."),
        Option("limit", float, "Seconds that a library may take, 3600 by default."),
    ),
    fresh=True,
)  # fmt: skip
