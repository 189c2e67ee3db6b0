"""NIST's benchmark of its Collaborative Research Cycle: excerpts of the American Community Survey.

The schema is written from NIST's data dictionary and the Census Bureau's definitions of families,
of present spouses, and of whose poverty is known. Ages are cut at those of schooling and rules, and
every five years; weights, about 100, more widely the larger they are. Codes of industries and
densities of areas are public facts, which the published excerpts list.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dualquery
from dualquery.runtime.errors import BadInputError
from experiments.comparing import means
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.nist_scores import scores

EXCERPTS = {"national2019": r"(?!25|48)", "ma2019": "25", "tx2019": "48"}
"""Excerpt -> how its PUMAs begin: a state's number; the national excerpt has the other states."""
GENERATED = "generated"
SCHEMA = Path(__file__).parent / "schemas" / "nist.json"
FIELDS: dict[str, Any] = json.loads(SCHEMA.read_text("utf-8"))
DENSITIES: Mapping[str, str] = FIELDS.pop("densities")
"""PUMA -> its density, which every row there has."""
ALL = tuple(column["name"] for column in FIELDS["columns"])
TEN = ("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET",
       "DEYE")  # fmt: skip
"""The basic features of NIST's page of the Collaborative Research Cycle."""
FEATURES: Mapping[str, Sequence[str]] = {"ten": TEN, "all": ALL}
EPSILONS = (1.0, 0.1, 10.0)
DELTA = 1e-9
OURS, INDEPENDENT, PERMUTED, BOOTSTRAP = "auto", "independent", "permuted", "bootstrap"
UNPRIVATE = (PERMUTED, BOOTSTRAP)
BARS = {("national2019", "ten"): 983, ("national2019", "all"): 790, ("ma2019", "all"): 855,
        ("tx2019", "all"): 850}  # fmt: skip
RUNS = 2


def plan(choices: Choices) -> Sequence[Run]:
    """Plan a run for each excerpt at hand, set of features, epsilon and way to make records."""
    named = choices.named("excerpt", EXCERPTS) or [x for x in EXCERPTS if x in choices.data]
    without = "Without it, --quick has a generated table."
    paths: dict[str, str | None] = {GENERATED: None}
    if choices.quick and choices.options.get("excerpt"):
        raise BadInputError("--excerpt: --quick has its own table")
    if not choices.quick:
        paths = {name: str(choices.data.path(name, without)) for name in named or [*EXCERPTS][:1]}
    wanted = choices.named("features", FEATURES) or tuple(FEATURES)[: 1 if choices.quick else 2]
    return [
        {"excerpt": name, "path": path, "features": features, "contender": contender,
         "epsilon": epsilon, "seed": seed}
        for name, path in paths.items()
        for features in wanted
        for epsilon in (EPSILONS[:1] if choices.quick else EPSILONS)
        for contender in (OURS, INDEPENDENT, *UNPRIVATE)
        if contender not in UNPRIVATE or epsilon == EPSILONS[0]
        for seed in choices.seeds(RUNS)
    ]  # fmt: skip


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Make records once, and score them."""
    names = list(FEATURES[run["features"]])
    path = run["path"]
    truth = generated(3_000).select(names) if path is None else read(path, names)
    seed, start = run["seed"], time.process_time()
    if run["contender"] == BOOTSTRAP:
        made = truth.sample(fraction=1.0, with_replacement=True, seed=seed)
    elif run["contender"] == PERMUTED:
        made = truth.select(
            pl.col(name).shuffle(seed=1_000 * seed + at) for at, name in enumerate(names)
        )
    else:
        asked = {name: run[name] for name in ("epsilon", "seed")}
        if run["contender"] == INDEPENDENT:
            asked["mechanism"] = INDEPENDENT
        made = _released(truth, names, {**asked, "threads": threads}, run["excerpt"])
    seconds = time.process_time() - start
    return [
        {**scores(truth, made), "cpu_seconds": seconds, "true_slope": scores(truth, truth)["slope"]}
    ]


def read(path: str, names: Sequence[str]) -> pl.DataFrame:
    """Return columns of an excerpt as texts, whole numbers without a point, as SDNist does."""
    table = pl.read_csv(path, infer_schema=False, glob=False, raise_if_empty=False)
    if lacking := [name for name in names if name not in table.columns]:
        raise BadInputError(f"{path}: there is no column {', '.join(lacking)}")
    if table.is_empty():
        raise BadInputError(f"{path}: there are no rows")
    return table.select(pl.col(names).str.replace(r"^(-?\d+)\.0+$", "$1"))


def _released(
    table: pl.DataFrame, names: Sequence[str], asked: Mapping[str, Any], excerpt: str = GENERATED
) -> pl.DataFrame:
    release = dualquery.release(
        table, schema=schema(names, excerpt), delta=DELTA, records=table.height, **asked
    )
    assert release.synthetic is not None
    return release.synthetic.select(pl.col(names).cast(pl.String).fill_null("N"))


def schema(names: Sequence[str], excerpt: str = GENERATED) -> dict[str, Any]:
    """Return the schema of some columns of an excerpt, with the rules about them alone."""
    others = set(ALL).difference(names)
    state = EXCERPTS.get(excerpt, "")
    density = {puma: value for puma, value in DENSITIES.items() if re.match(state, puma)}
    values = {"PUMA": [*density], "DENSITY": sorted(set(density.values()), key=float)}
    rules = [
        *FIELDS["rules"],
        *(f"PUMA = {at} => DENSITY = {value}" for at, value in density.items()),
    ]
    return {
        **FIELDS,
        "columns": [
            {**column, "values": values[column["name"]]} if column["name"] in values else column
            for column in FIELDS["columns"]
            if column["name"] in names
        ],
        "rules": [rule for rule in rules if not others.intersection(re.findall(r"\w+", rule))],
    }


def generated(rows: int) -> pl.DataFrame:
    """Return a table of random values, but that it keeps the rules."""
    generator = np.random.default_rng(39)
    values = {
        column["name"]: np.array(column.get("values") or column["edges"][:-1]).astype(str)
        for column in schema(ALL)["columns"]
    }
    places = {name: generator.beta(1.0, 2.0, rows) * len(values[name]) for name in ALL}
    table = pl.DataFrame({name: values[name][places[name].astype(int)].tolist() for name in ALL})
    return _released(table, ALL, {"epsilon": 10.0, "mechanism": INDEPENDENT, "seed": 1})


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare with the bars for epsilon 1."""
    found = []
    ours = RECIPE.summarise(table).filter(contender=OURS, epsilon=EPSILONS[0])
    for line in ours.iter_rows(named=True):
        at = f"{line['excerpt']}, {line['features']} features"
        score = line["k_marginal"]
        bar = BARS.get((line["excerpt"], line["features"]), 0)
        off = abs(line["slope"] - line["true_slope"])
        found += [
            Finding(f"{at}: a k-marginal of at least {bar}", f"{score:.1f}",
                    score >= bar if bar else None),
            Finding(f"{at}: no record is inconsistent", f"{line['inconsistent']:.1f}",
                    line["inconsistent"] == 0),
            Finding(f"{at}: the slope is within .03 of the excerpt's", f"{off:.3f} off",
                    off <= 0.03 if bar else None),
        ]  # fmt: skip
    return found


RECIPE = Recipe(
    name="nist",
    title="NIST's benchmark: records of census excerpts by the scores of SDNist",
    setting=(
        "Records of `auto` with its default workload, and of independent columns, from three "
        "excerpts of the American Community Survey of 2019: ten basic features and all 24, delta "
        "1e-9, neighbours replace one row. Permuted columns and rows drawn anew (bootstrap) are "
        "not private. Scores are computed here as SDNist defines them, without its program."
    ),
    plan=plan,
    perform=perform,
    summarise=means(
        "excerpt", "features", "epsilon", "contender",
        of=("k_marginal", "pearson", "propensity", "inconsistent", "slope", "unique_matches",
            "cpu_seconds"),
        first=("true_slope",),
    ),
    expect=expect,
    options=(
        Option("excerpt", str, f"Only this excerpt: {', '.join(EXCERPTS)}."),
        Option("features", str, f"Only these features: {', '.join(FEATURES)}."),
    ),
)  # fmt: skip
