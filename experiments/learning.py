"""Records for learning: train on the records of ``--target``, test on real rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dualquery
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run

if TYPE_CHECKING:
    from dualquery.data.schema.table import TableSchema

EPSILONS = (0.1, 1.0)
RUNS = 3
REAL, INDEPENDENT, DEFAULT, TARGET = "real rows", "independent", "default workload", "--target"
MORE = "--target, 100,000 records"
COMPARED = (REAL, INDEPENDENT, DEFAULT, TARGET, MORE)
MANY = 100_000
BARS = {0.1: 0.85, 1.0: 0.90}
ADULT, GENERATED = "Adult", "generated"
_WITHOUT = "--quick splits the 30,162 rows of the package"


def plan(choices: Choices) -> Sequence[Run]:
    """Train on each kind of records of both tables, at both budgets."""
    train = test = None
    if not choices.quick:
        train = str(choices.data.path("adult-train", _WITHOUT))
        test = str(choices.data.path("adult-test", _WITHOUT))
    return [
        {
            "table": table,
            "train": train if table == ADULT else None,
            "test": test if table == ADULT else None,
            "rows": 6_000 if choices.quick else 30_000,
            "records": kind,
            "epsilon": epsilon,
            "seed": seed,
        }
        for table in (ADULT, GENERATED)
        for epsilon in (EPSILONS[1:] if choices.quick else EPSILONS)
        for kind in (COMPARED[:-1] if choices.quick else COMPARED)
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Make the records, train on them, and test on real rows."""
    if run["table"] == ADULT:
        rows, held_back, schema, target = adult(run)
    else:
        rows, held_back, schema, target = _generated(run["rows"])
    trained = rows
    if run["records"] != REAL:
        asked: dict[str, Any] = {"target": target}
        if run["records"] == DEFAULT:
            asked = {}
        if run["records"] == INDEPENDENT:
            asked = {"mechanism": "independent", "queries": 100}
        if run["records"] == MORE:
            asked = {**asked, "records": min(MANY, 4 * rows.height)}
        made = dualquery.release(
            rows, schema=schema, epsilon=run["epsilon"], seed=run["seed"], threads=threads, **asked
        )
        assert made.synthetic is not None
        trained = made.synthetic
    return [{"auc": auc(trained, held_back, schema, target)}]


def auc(rows: pl.DataFrame, held_back: pl.DataFrame, schema: TableSchema, target: str) -> float:
    """Return the area under the curve of gradient boosting, trained on one table, on another."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    _, column = schema.column(target)
    positive = column.labels[0]
    texts = [name not in _numbers(schema) for name in schema.column_names if name != target]
    model = HistGradientBoostingClassifier(
        categorical_features=np.array(texts), early_stopping=False, random_state=0
    )
    model.fit(_features(rows, schema, target), (rows[target] == positive).to_numpy())
    chances = model.predict_proba(_features(held_back, schema, target))[:, 1]
    return float(roc_auc_score((held_back[target] == positive).to_numpy(), chances))


def _numbers(schema: TableSchema) -> set[str]:
    from dualquery.data.schema.numeric import Numeric

    return {column.name for column in schema.columns if isinstance(column, Numeric)}


def _features(rows: pl.DataFrame, schema: TableSchema, target: str) -> NDArray[np.float64]:
    """Return numbers as they are and other values by their place in the schema; NaN if unknown."""
    numbers, found = _numbers(schema), []
    for column in schema.columns:
        if column.name == target:
            continue
        values = rows[column.name]
        if column.name not in numbers:
            codes = {text: float(code) for code, text in enumerate(column.labels)}
            texts = values.cast(pl.String)
            values = texts.replace_strict(codes, default=None, return_dtype=pl.Float64)
        found.append(values.cast(pl.Float64).to_numpy())
    return np.column_stack(found)


def adult(run: Run) -> tuple[pl.DataFrame, pl.DataFrame, TableSchema, str]:
    """Return Adult's training rows, its test rows, the schema and the target."""
    from dualquery.data import load_schema
    from dualquery.data.builtin import dataset_path
    from dualquery.rows.engines import load

    schema: Any = load_schema("adult")
    if run["train"] is None:
        whole = pl.read_parquet(dataset_path("adult").read_bytes()).sample(
            fraction=1.0, shuffle=True, seed=0
        )
        return whole[: run["rows"]], whole[20_000:], schema, "income"
    cells = pl.all().str.strip_chars().replace({"?": None, "": None})  # as UCI's own files need
    texts = (pl.read_csv(run[name], infer_schema=False) for name in ("train", "test"))
    train, test = (each.select(cells) for each in texts)
    test = test.with_columns(pl.col("^income$").str.strip_chars_end("."))
    for known in (train := train.drop_nulls()), test.drop_nulls():
        load(known, schema)  # says what does not fit
    return train, test.filter(pl.col("income").is_not_null()), schema, "income"


def _generated(rows: int) -> tuple[pl.DataFrame, pl.DataFrame, TableSchema, str]:
    """Return a table whose target depends on single columns and on pairs."""
    from dualquery.data.schema.columns import Categorical
    from dualquery.data.schema.numeric import Numeric
    from dualquery.data.schema.table import TableSchema

    generator = np.random.default_rng(20_261_121)
    n, columns = rows + 15_000, 9
    factor = generator.normal(size=(n, 3))
    hidden = 0.7 * factor @ generator.normal(size=(3, columns))
    hidden += generator.normal(size=(n, columns))
    values = np.clip(np.round(2 * hidden).astype(int) + 6, 0, 11)
    own = generator.normal(size=(columns, 12)) * 0.6
    logit = sum(own[column, values[:, column]] for column in range(columns))
    for one, other in ((0, 4), (2, 7), (5, 8)):
        logit = logit + generator.normal(size=(12, 12))[values[:, one], values[:, other]]
    label = np.where(logit - 1.0 > generator.logistic(size=n), "yes", "no")
    frame = pl.DataFrame(
        {f"c{c}": values[:, c] if c < 4 else values[:, c].astype(str) for c in range(columns)}
    ).with_columns(label=pl.Series(label.tolist()))
    kinds: list[Any] = [
        Numeric(f"c{c}", tuple(np.arange(13) - 0.5), integer=True)
        if c < 4
        else Categorical(f"c{c}", tuple((str(v),) for v in range(12)))
        for c in range(columns)
    ]
    schema = TableSchema((*kinds, Categorical("label", (("yes",), ("no",)))), declared=True)
    return frame[:rows], frame[rows:], schema, "label"


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the mean area under the curve, a column for each budget."""
    return (
        table.with_columns(at=pl.format("epsilon {}", "epsilon"))
        .pivot("at", index=["table", "records"], values="auc", aggregate_function="mean")
        .with_columns(pl.col(pl.Float64).round(4))
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare the target's workload with the default one, and Adult with its bars."""
    found = []
    means = table.group_by("table", "records", "epsilon", maintain_order=True).agg(pl.mean("auc"))
    for (name, epsilon), lines in means.group_by("table", "epsilon", maintain_order=True):
        by = dict(zip(lines["records"], lines["auc"], strict=True))
        found.append(
            Finding(
                f"{name}, epsilon {epsilon}: --target beats the default workload",
                f"AUC {by[TARGET]:.4f} against {by[DEFAULT]:.4f}; real rows {by[REAL]:.4f}",
                bool(by[TARGET] > by[DEFAULT]),
            )
        )
        if name == ADULT and table["train"][0] is not None:
            bar = BARS[float(epsilon)]
            found.append(
                Finding(
                    f"Adult's own test file, epsilon {epsilon}: AUC at least {bar}",
                    f"{by[TARGET]:.4f}; of 100,000 records {by[MORE]:.4f}",
                    bool(by[MORE] >= bar),
                )
            )
    return found


RECIPE = Recipe(
    name="learning",
    title="Train on the records of --target, test on real rows",
    setting=(
        "Area under the curve of scikit-learn's gradient boosting, trained on synthetic records "
        "and tested on real rows that no release has seen: Adult (its complete training rows, its "
        "own test file, the built-in schema) and a generated table. "
        "Delta 1/n^2, neighbours replace one row. The quick form has 6,000 of the package's rows."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
)
