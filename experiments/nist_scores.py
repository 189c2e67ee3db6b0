"""Scores of SDNist, NIST's program that compares records with an excerpt, as it defines them.

Tables have texts in all columns, with "N" for what does not apply, as NIST's files do. SDNist also
drops a column with a code that its list of the excerpt's codes lacks, and numbers PUMAs by that
list; here all columns count, and PUMAs are sorted.
"""

import math
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

GROUP = "PUMA"
RANKED = {"AGEP": 20, "POVPIP": 19, "PINCP": 19, "PWGTP": 20, "WGTP": 20}
"""Column -> its bins, of equal shares of the excerpt's rows."""
UNCORRELATED = ("POVPIP", "PINCP", "PWGTP", "WGTP", "INDP")
DENSITIES = np.array([150.0, *np.logspace(1.0, math.log10(53_364.7), 21)[8:]])
"""Upper ends of SDNist's bins of densities."""

_ADULT = ("MSP", "PINCP", "PINCP_DECILE")


def _n(name: str) -> pl.Expr:
    return pl.col(name) == "N"


def _less(name: str, other: Any) -> pl.Expr:
    than = pl.col(other).cast(pl.Int64, strict=False) if isinstance(other, str) else other
    return (pl.col(name).cast(pl.Int64, strict=False) < than).fill_null(True)


_BROKEN = (
    *(_less("AGEP", 15) & ~_n(name) for name in (*_ADULT, "DVET", "INDP", "INDP_CAT")),
    *(~_less("AGEP", 16) & _n(name) for name in (*_ADULT, "EDU", "DPHY", "DREM")),
    *(_less("AGEP", 5) & ~_n(name) for name in ("DPHY", "DREM")),
    *(_less("AGEP", age) & ~_less("EDU", least) for age, least in ((15, 12), (5, 5), (3, 1))),
    _n("INDP") != _n("INDP_CAT"),
    ~_less("NOC", "NPF"),
    (pl.col("HOUSING_TYPE") == "1") == (pl.col("OWN_RENT") == "0"),
    (pl.col("HOUSING_TYPE") == "1") == _n("NOC"),
    (pl.col("HOUSING_TYPE") != "1") & ~_n("NPF"),
)
"""SDNist's inconsistencies: which records have them."""
_WITHOUT_AGE = tuple(_n(one) != _n(other) for one, other in combinations(_ADULT, 2))
"""Those that it looks for only where there is no age."""


def scores(truth: pl.DataFrame, made: pl.DataFrame) -> dict[str, float]:
    """Return every score of records whose columns are those of the excerpt."""
    made = made.select(truth.columns)
    return {
        "k_marginal": k_marginal(truth, made),
        "pearson": pearson(truth, made),
        "inconsistent": float(inconsistent(made)),
        "slope": slope(made),
        "propensity": propensity(truth, made),
        "unique_matches": unique_matches(truth, made),
    }


def k_marginal(truth: pl.DataFrame, made: pl.DataFrame) -> float:
    """Return 1000 (1 - total variation distance) of pairs of columns with the PUMA, the mean."""
    codes = {name: _codes(truth, made, name) for name in truth.columns}
    nothing = [np.zeros(rows.height, dtype=np.int64) for rows in (truth, made)]
    within, groups = codes.pop(GROUP, (nothing, 1))
    distances = []
    for (one, size), (two, length) in combinations(codes.values(), 2):
        cells = [(at * size + a) * length + b for at, a, b in zip(within, one, two, strict=True)]
        shares = [np.bincount(each, minlength=groups * size * length) / len(each) for each in cells]
        distances.append(abs(shares[0] - shares[1]).sum() / 2.0)
    return 1000.0 * (1.0 - float(np.mean(distances)))


def _codes(truth: pl.DataFrame, made: pl.DataFrame, name: str) -> tuple[list[Any], int]:
    """Return both tables' bins of a column, and their number."""
    both = pl.concat([truth[name], made[name]])
    if name in RANKED or name == "DENSITY":
        ends = DENSITIES if name == "DENSITY" else _ends(truth[name], made[name], RANKED[name])
        values = both.cast(pl.Float64, strict=False).to_numpy()
        places = np.minimum(np.searchsorted(ends, values), len(ends) - 1)
        codes = np.where(np.isnan(values), len(ends), places)
        size = len(ends) + 1
    else:
        codes = both.rank("dense").to_numpy().astype(np.int64) - 1
        size = both.n_unique()
    return [codes[: truth.height], codes[truth.height :]], size


def _ends(truth: pl.Series, made: pl.Series, bins: int) -> NDArray[np.float64]:
    """Return the largest value of each bin: percentiles, and where the records go beyond them."""
    values, others = (each.cast(pl.Float64, strict=False).drop_nulls() for each in (truth, made))
    if values.is_empty():
        return np.zeros(1)
    both = np.append(values, others)
    bins -= int(both.min() < values.min()) + int(both.max() > values.max())
    own = np.percentile(values, np.arange(bins) * (100.0 / bins), method="higher")
    ends = np.unique([both.min(), *own, values.max(), both.max()])
    return ends[1:] if len(ends) > 1 else ends


def pearson(truth: pl.DataFrame, made: pl.DataFrame) -> float:
    """Return the mean absolute difference of correlations of columns; "N" as SDNist reads it."""
    names = [name for name in truth.columns if name not in UNCORRELATED]
    found = []
    for rows in (truth, made):
        columns = []
        for name in names:
            if name in (GROUP, "DENSITY"):
                both, _ = _codes(truth, made, name)
                columns.append(both[rows is made])
            else:
                columns.append(_numbers(rows[name].replace("N", "1" if name == "NPF" else "-1")))
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(np.nan_to_num(np.corrcoef(np.array(columns, dtype=np.float64))))
    return float(abs(found[0] - found[1])[np.triu_indices(len(names), 1)].mean())


def slope(rows: pl.DataFrame) -> float:
    """Return the slope of the decile of income on education, of those who have both."""
    both = rows.filter((pl.col("EDU") != "N") & (pl.col("PINCP_DECILE") != "N"))
    x, y = _numbers(both["EDU"]), _numbers(both["PINCP_DECILE"])
    spread = float(np.var(x)) if len(x) else 0.0
    return float(np.mean((x - x.mean()) * (y - y.mean()))) / spread if spread else 0.0


def inconsistent(rows: pl.DataFrame) -> int:
    """Return the number of records with at least one inconsistency."""
    asked = _BROKEN if "AGEP" in rows.columns else (*_BROKEN, *_WITHOUT_AGE)
    tests = [broken for broken in asked if set(rows.columns).issuperset(broken.meta.root_names())]
    return int(rows.select(pl.any_horizontal(pl.lit(False), *tests).sum()).item())


def unique_matches(truth: pl.DataFrame, made: pl.DataFrame) -> float:
    """Return the percentage of the excerpt's unique rows that are among the records."""
    unique = truth.filter(truth.is_unique())
    return 100.0 * unique.join(made.unique(), on=truth.columns).height / max(unique.height, 1)


def propensity(truth: pl.DataFrame, made: pl.DataFrame) -> float:
    """Return how well a tree of depth 6 tells made rows from true ones: a mean square."""
    from sklearn.tree import DecisionTreeClassifier

    both = pl.concat((truth, made)).with_columns(pl.col("^PINCP$").replace("N", "-9001"))
    both = both.with_columns(pl.all().replace("N", "-1"))
    ranks = both.with_columns(pl.col(f"^{GROUP}$").rank("dense")).cast(pl.Float64).to_numpy()
    is_made = np.arange(both.height) >= truth.height
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(ranks, is_made)
    return float(((tree.predict_proba(ranks)[:, 1] - is_made.mean()) ** 2).mean())


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    return column.cast(pl.Float64).to_numpy()
