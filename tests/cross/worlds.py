"""Raw tables, their schemas and their truth, which comes from Polars and the raw table only."""

import datetime as dt
import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

ROWS = 2_400
MOST_ROWS, MOST_WEIGHT = 2, 4
ITEMS, MOST_ITEMS = 8, 5
AGES = (18, 30, 45, 60, 75, 91)
PAYS = (0, 1000, 2000, 4000, 8000)


ALL = pl.lit(True)


@dataclass(frozen=True)
class Asked:
    """A question as text, and what it asks: share, count, sum, mean or a quantile's level."""

    text: str
    measure: str | float
    where: pl.Expr
    column: str = ""
    given: pl.Expr = field(default_factory=lambda: ALL)  # older Polars: no hash


@dataclass(frozen=True)
class World:
    """A table in a file, its schema, its rows after and before any cut to units, and labels."""

    path: Path
    schema: Path | None
    rows: pl.DataFrame
    every: pl.DataFrame
    labels: dict[tuple[str, str], pl.Expr]
    bounds: dict[str, tuple[float, float]]

    @property
    def total(self) -> float:
        return float(self.rows["weight"].sum())

    def weight(self, where: pl.Expr) -> float:
        return float(self.rows.filter(where)["weight"].sum())

    def truth(self, asked: Asked) -> tuple[float, float]:
        """Return the least and the largest number that is a true answer."""
        rows = self.rows.filter(asked.given)
        if asked.measure in ("share", "count"):
            found = float(rows.filter(asked.where)["weight"].sum())
            found /= float(rows["weight"].sum()) if asked.measure == "share" else 1.0
            return found, found
        low, high = self.bounds[asked.column]
        known = rows.filter(pl.col(asked.column).is_not_null())
        numbers = known[asked.column].clip(low, high).to_numpy()
        weights = known["weight"].to_numpy()
        if asked.measure in ("sum", "mean"):
            found = float(numbers @ weights) / (weights.sum() if asked.measure == "mean" else 1.0)
            return found, found
        order = np.argsort(numbers, kind="stable")
        reached = np.cumsum(weights[order]) / weights.sum()
        ends = np.searchsorted(reached, float(asked.measure) + np.array([-1e-12, 1e-12]))
        first, last = numbers[order][np.minimum(ends, len(order) - 1)]
        return float(first), float(last)

    def condition(self, text: str) -> pl.Expr:
        """Return the rows of a conjunction as `answers.parquet` writes it."""
        found = pl.lit(True)
        for part in text.split(" & "):
            name, sign, label = re.fullmatch(r"!?([\w-]+)(?:(!?=)(.+))?", part).groups()
            there = self.labels[name, label or "1"]
            found = found & (~there if part.startswith("!") or sign == "!=" else there)
        return found


def people(folder: Path, features: Iterable[str], seed: int = 0) -> World:
    """Return persons in homes, some of them with weights, gaps, or values beyond the edges."""
    features, rng = set(features), np.random.default_rng(seed)
    age = rng.integers(18, 91, ROWS)
    if "clipped" in features:
        age[: ROWS // 20] = rng.choice([5, 95, 103], ROWS // 20)
    pay = np.round(rng.gamma(2.0, 1200.0, ROWS), 2)
    pay = np.minimum(pay, 7999.0) if "clipped" not in features else pay
    days = rng.integers(0, 731, ROWS)
    frame = pl.DataFrame(
        {
            "home": [f"h{h}" for h in np.repeat(np.arange(ROWS), rng.integers(1, 4, ROWS))[:ROWS]],
            "w": rng.integers(1, 7, ROWS),
            "smoker": (rng.random(ROWS) < np.where(age < 45, 0.4, 0.15)).astype(int),
            "owner": (rng.random(ROWS) < 0.6).astype(int),
            "sex": np.where(rng.random(ROWS) < 0.45, "F", "M"),
            "age": age,
            "grade": rng.integers(1, 7, ROWS),
            "pay": pay,
            "seen": [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in days],
            "job": np.where(
                age < 30, "student", np.where(rng.random(ROWS) < 0.5, "smith", "nurse")
            ),
        }
    )
    gaps = rng.random((ROWS, 2)) < 0.1
    if features & {"missing", "incomplete"}:
        frame = frame.with_columns(
            pl.when(pl.Series(gaps[:, 0])).then(None).otherwise(pl.col("pay")).alias("pay"),
            pl.when(pl.Series(gaps[:, 1])).then(None).otherwise(pl.col("owner")).alias("owner"),
        )
    if "missing" in features:  # a binary column has no such category
        frame = frame.with_columns(pl.col("owner").fill_null(0))
    path = folder / "people.csv"
    frame.write_csv(path)
    every, counted = _counted(frame, features - {"unit"}), _counted(frame, features)
    return World(path, _people_schema(folder, features), counted, every, *_people_truth())


def _counted(frame: pl.DataFrame, features: set[str]) -> pl.DataFrame:
    """Return the rows that count: whole ones, then the first of each home; and their weights."""
    if "incomplete" in features:
        frame = frame.drop_nulls()
    if "unit" in features:
        frame = frame.filter(pl.int_range(pl.len()).over("home") < MOST_ROWS)
    weight = pl.col("w").clip(None, MOST_WEIGHT) if "weight" in features else pl.lit(1)
    return frame.with_columns(weight.cast(pl.Float64).alias("weight"))


def _people_schema(folder: Path, features: set[str]) -> Path:
    clip = {"outside": "clip"} if "clipped" in features else {}
    missing = {"missing": "category"} if "missing" in features else {}
    columns = [
        {"name": "smoker", "kind": "binary"},
        {"name": "owner", "kind": "binary"},
        {"name": "sex", "kind": "categorical", "values": ["F", "M"]},
        {"name": "age", "kind": "numeric", "edges": AGES, "integer": True, **clip},
        {"name": "grade", "kind": "numeric", "edges": [*range(1, 8)], "integer": True},
        {"name": "pay", "kind": "numeric", "edges": PAYS, **clip, **missing},
        {"name": "job", "kind": "categorical", "values": ["student", "smith", "nurse"]},
    ]
    if "dates" in features:
        ends = {"first": "2020-01-01", "last": "2021-12-31"}
        columns.append({"name": "seen", "kind": "date", "by": "quarter", **ends})
    schema = {
        "name": "people",
        "declared": True,
        "columns": columns,
        "drop_incomplete": "incomplete" in features,
        "rules": ["age < 30 => job = student"] if "rules" in features else [],
    }
    path = folder / "people.json"
    path.write_text(json.dumps(schema), "utf-8")
    return path


def _people_truth() -> tuple[dict[tuple[str, str], pl.Expr], dict[str, tuple[float, float]]]:
    column = pl.col
    labels = {(name, "1"): column(name) == 1 for name in ("smoker", "owner")}
    labels |= {("sex", value): column("sex") == value for value in "FM"}
    labels |= {("job", value): column("job") == value for value in ("student", "smith", "nurse")}
    labels |= {("grade", str(value)): column("grade") == value for value in range(1, 7)}
    labels["grade", "6-7"] = column("grade") == 6
    labels["pay", "(missing)"] = column("pay").is_null()
    for name, edges in (("age", AGES), ("pay", PAYS)):
        for low, high in itertools.pairwise(edges):
            inside = column(name).clip(edges[0], edges[-1] - 1e-6).is_between(low, high, "left")
            # A gap lies in no bucket, so a negation holds for it.
            labels[name, f"{low}-{high}"] = inside.fill_null(False)
    for quarter in range(8):
        label = f"{2020 + quarter // 4}-Q{quarter % 4 + 1}"
        year = column("seen").dt.year() == 2020 + quarter // 4
        labels["seen", label] = year & (column("seen").dt.quarter() == quarter % 4 + 1)
    return labels, {"age": (18, 91), "grade": (1, 6), "pay": (0, 8000)}


def about_people(features: Iterable[str]) -> list[Asked]:
    c = pl.col
    old, young, female = c("age") >= 45, c("age") < 30, c("sex") == "F"
    smoker, owner, good = c("smoker") == 1, c("owner") == 1, c("grade") >= 5
    conditions = {
        "smoker": smoker,
        "not owner": ~owner,
        "sex=F": female,
        "age<30": young,
        "age>=45": old,
        "age=30-44": c("age").is_between(30, 44),
        "age>=60 or age<30": (c("age") >= 60) | young,
        "grade>=5": good,
        "grade>=7": pl.lit(False),
        "grade in (1, 6)": c("grade").is_in([1, 6]),
        "pay<2000": (c("pay") < 2000).fill_null(False),
        "job=nurse": c("job") == "nurse",
        "smoker & sex=F": smoker & female,
        "smoker & age>=45": smoker & old,
        "sex=F & grade>=5": female & good,
        "owner & job!=student": owner & (c("job") != "student"),
        "age<30 & job!=student": young & (c("job") != "student"),
        "smoker or owner": smoker | owner,
    }
    if "dates" in features:
        conditions["seen=2020-Q3"] = (c("seen").dt.year() == 2020) & (c("seen").dt.quarter() == 3)
        conditions["seen>=2021"] = c("seen").dt.year() >= 2021
    asked = [Asked(text, "share", where) for text, where in conditions.items()]
    asked += [Asked(f"count({text})", "count", where) for text, where in conditions.items()]
    asked += [
        Asked("count(*)", "count", ALL),
        Asked("smoker given sex=F", "share", smoker, given=female),
        Asked("sex=F given age>=45", "share", female, given=old),
        Asked("mean(grade) given smoker", "mean", ALL, "grade", smoker),
        Asked("median(age)", 0.5, ALL, "age"),
        Asked("quantile(grade, 0.95)", 0.95, ALL, "grade"),
        Asked("quantile(pay, 0.25)", 0.25, ALL, "pay"),
    ]
    for name in ("age", "grade", "pay"):
        asked += [Asked(f"{kind}({name})", kind, pl.lit(True), name) for kind in ("sum", "mean")]
    return asked


def baskets(folder: Path, features: Iterable[str], seed: int = 0) -> World:
    """Return baskets of numbered items, none of which has more than may count."""
    likely = np.random.default_rng(seed).random((ROWS, ITEMS)) < np.linspace(0.6, 0.05, ITEMS)
    likely &= np.cumsum(likely, axis=1) <= MOST_ITEMS
    path = folder / "baskets.dat"
    path.write_text("".join(" ".join(map(str, np.flatnonzero(row))) + "\n" for row in likely))
    rows = pl.DataFrame({f"i{item}": likely[:, item].astype(int) for item in range(ITEMS)})
    rows = rows.with_columns(weight=pl.lit(1.0))
    labels = {(str(item), "1"): pl.col(f"i{item}") == 1 for item in range(ITEMS)}
    return World(path, None, rows, rows, labels, {})


def about_baskets(features: Iterable[str]) -> list[Asked]:
    held = [pl.col(f"i{item}") == 1 for item in range(ITEMS)]
    conditions = {str(item): there for item, there in enumerate(held)}
    for one, other in itertools.combinations(range(4), 2):
        conditions[f"{one} & {other}"] = held[one] & held[other]
        conditions[f"{one} & !{other}"] = held[one] & ~held[other]
    asked = [Asked(text, "share", where) for text, where in conditions.items()]
    asked += [Asked(f"count({text})", "count", where) for text, where in conditions.items()]
    return [*asked, Asked("0 given 1", "share", held[0], given=held[1])]
