"""Answers of questions from a release, and how often their intervals hold the truth."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dualquery
from dualquery.data import Binary, Categorical, Numeric, TableSchema
from dualquery.data.domain import column_values
from dualquery.estimates.intervals import LEVEL, Total
from dualquery.estimates.measurements import Measurements
from dualquery.models.mixture import ProductMixture
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.answer.cross_tables import cross_table
from dualquery.releases.answer.knowledge import Knowledge
from dualquery.room.row_count import RowCount, bought_epsilon
from dualquery.runtime.errors import BadInputError
from tests.cases import functionals
from tests.tables import SCHEMA as PEOPLE
from tests.tables import people, random_records

SCHEMA = TableSchema(
    (
        Numeric("age", (0.0, 10.0, 20.0, 40.0, 80.0), integer=True),
        Categorical("sex", (("Male",), ("Female",))),
        Binary("smoker"),
        Categorical("edu", (("1",), ("2",), ("3",)), outside="other"),
    ),
    declared=True,
)
DOMAIN = SCHEMA.domain
ROWS = random_records(DOMAIN, 3_000, np.random.default_rng(0))
ROWS[ROWS[:, 4] == 1, 6] = 0  # no man smokes
VALUES = column_values(ROWS, DOMAIN)
AGE = np.random.default_rng(2).integers(
    np.array([0, 10, 20, 40])[VALUES[:, 0]], np.array([10, 20, 40, 81])[VALUES[:, 0]]
)
FEMALE, SMOKER, EDU = VALUES[:, 1] == 1, VALUES[:, 2] == 1, VALUES[:, 3]


def pairs() -> np.ndarray:
    bits = [[2 * b for b in range(4)], [8, 10], [12, 13], [14, 16, 18, 20]]
    found = [(a, b) for i in range(4) for j in range(i + 1, 4) for a in bits[i] for b in bits[j]]
    return np.array(found, np.int32)


@dataclass
class Made:
    """A release as far as answers look at it."""

    measurements: Measurements | None
    model: Any = None
    records: Any = None
    intervals: Any = None
    n: int = len(ROWS)
    means: Any = ()
    schema: TableSchema = SCHEMA
    read_by: TableSchema = SCHEMA
    options: Any = None
    workload: Any = None
    answers: Any = None

    @property
    def base(self) -> Total:
        relation = Neighbours.of_options(self.options)
        bought = bought_epsilon(relation, self.options["rows"], self.options["epsilon"])
        return Total.of(RowCount(self.n, relation, bought, self.n))

    def __post_init__(self) -> None:
        self.options = self.options or {"neighbours": "replace-one", "rows": None, "epsilon": 1.0}
        self.workload = self.workload or Workload(np.array([[12]]), DOMAIN)
        self.answers = np.array([0.25])


def noisy(seed: int, deviation: float = 0.01, literals=None) -> Made:
    literals = pairs() if literals is None else literals
    plain = Measurements.of_codes(literals, np.zeros(len(literals)), deviation)
    true = functionals(plain, ROWS, DOMAIN).mean(axis=1)
    noise = np.random.default_rng(seed).normal(scale=deviation, size=len(literals))
    model = ProductMixture.single(DOMAIN, ROWS.mean(axis=0))
    return Made(Measurements.of_codes(literals, true + noise, deviation), model)


QUESTIONS = {
    "sex=Female": FEMALE.mean(),
    "age>=20": (AGE >= 20).mean(),
    "age between 10 and 39 & sex=Female": ((AGE >= 10) & (AGE < 40) & FEMALE).mean(),
    "smoker or sex=Male": (SMOKER | ~FEMALE).mean(),
    "not (smoker or edu in (1, 2))": (~(SMOKER | (EDU < 2))).mean(),
    "count(edu>=2)": np.isin(EDU, (1, 2)).sum(),
    "smoker given sex=Female": SMOKER[FEMALE].mean(),
    "age>=20 given smoker": (AGE[SMOKER] >= 20).mean(),
    "mean(edu)": (EDU[EDU < 3] + 1).mean(),
    "mean(edu) given sex=Female": (EDU[(EDU < 3) & FEMALE] + 1).mean(),
    "sum(edu) given smoker": (EDU + 1)[(EDU < 3) & SMOKER].sum(),
}
"""Linear questions and ratios, without a cut: their intervals should hold in 95% of all runs."""

LOOSE = {
    "age>=25": (AGE >= 25).mean(),
    "age between 5 and 50 & smoker": ((AGE >= 5) & (AGE <= 50) & SMOKER).mean(),
    "mean(age)": AGE.mean(),
    "mean(age) given age>=30 & smoker": AGE[(AGE >= 30) & SMOKER].mean(),
    "median(age)": np.quantile(AGE, 0.5, method="inverted_cdf"),
    "quantile(age, 0.1) given sex=Female": np.quantile(AGE[FEMALE], 0.1, method="inverted_cdf"),
    "median(edu)": np.quantile(EDU[EDU < 3] + 1, 0.5, method="inverted_cdf"),
}
"""Questions whose intervals allow for more than noise: at least 95%."""


def test_intervals_hold_as_often_as_they_say() -> None:
    """60 draws of the noise. A question is rejected with chance 0.001 over all of them."""
    asked, truth = list(QUESTIONS | LOOSE), np.array(list((QUESTIONS | LOOSE).values()))
    held = np.zeros((60, len(asked)), bool)
    for draw in range(60):
        found = answer_queries(noisy(draw), asked)
        low, high = (np.array([line[end] for line in found]) for end in ("low", "high"))
        answers = np.array([line["answer"] for line in found])
        assert ((low <= answers) & (answers <= high))[: len(QUESTIONS)].all()
        held[draw] = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
    assert held.sum(axis=0).min() >= binom.ppf(0.001 / len(asked), 60, 0.95)
    assert 0.92 <= held[:, : len(QUESTIONS)].mean() <= 0.98
    assert held[:, len(QUESTIONS) :].mean() >= 0.95


def test_intervals_of_a_whole_table_hold_at_once() -> None:
    """20 draws: all 16 cells in at least 95%, rejected with chance 0.001; each by itself less."""
    once, each = 0, 0
    for draw in range(20):
        for simultaneous in (True, False):
            made = cross_table(noisy(draw), "age", "edu", value="count", simultaneous=simultaneous)
            all_in = all(
                cell["low"] <= ((VALUES[:, 0] == place // 4) & (place % 4 == EDU)).sum()
                <= cell["high"]
                for place, cell in enumerate(made.cells)
            )  # fmt: skip
            once, each = once + (all_in and simultaneous), each + (all_in and not simultaneous)
    assert once >= binom.ppf(0.001, 20, 0.95)
    assert each < once


def test_where_the_number_of_rows_is_private_intervals_allow_for_it() -> None:
    """Shares of a public N = 3,050 rows, of which 50 are not there; and of a bought number."""
    plain = noisy(3, 1e-6)
    measured = Measurements.of_codes(pairs(), plain.measurements.values * 3_000 / 3_050, 1e-6)
    bought = Made(measured, plain.model, n=3_050,
                  options={"neighbours": "add-remove", "rows": None, "epsilon": 1.0})  # fmt: skip
    for text, truth in QUESTIONS.items():
        (found,) = answer_queries(bought, [text])
        assert found["low"] - 1e-4 <= truth <= found["high"] + 1e-4, text
        assert found["level"] == LEVEL
    stated = Made(measured, plain.model, n=3_050,
                  options={"neighbours": "add-remove", "rows": 3_050, "epsilon": 1.0})  # fmt: skip
    assert "as was stated" in answer_queries(stated, ["sex=Female"])[0]["basis"]


def test_what_was_not_measured_is_said() -> None:
    (found,) = answer_queries(noisy(0), ["smoker & sex=Female & age>=20"])
    assert (found["low"], found["interval"], found["source"]) == (None, None, "model")
    assert "not spanned by measured conjunctions" in found["basis"]
    assert 0 < found["answer"] < 1
    (cut,) = answer_queries(noisy(0), ["smoker & sex=Female & age>=25"])
    assert cut["low"] is None
    assert "cut within 20-40" in cut["basis"]
    assert "interval allows" not in cut["basis"]  # there is none


def test_a_mean_far_from_zero_is_no_surer_and_no_less_exact() -> None:
    """Nothing but another column was asked about: the answer is the middle of all buckets."""
    for first in (0.0, 1.7e9):
        column = Numeric("at", tuple(first + np.arange(0.0, 31.0, 10.0)))
        table = pl.DataFrame(
            {"at": np.repeat([first + 5.0, first + 25.0], [180, 20]), "s": [0] * 200}
        )
        schema = TableSchema((column, Binary("s")), declared=True)
        made = dualquery.release(table, schema=schema, queries=["s"], mechanism="matrix")
        for found in answer_queries(made, ["mean(at)", "mean(at) given s=0"]):
            assert found["answer"] - first == pytest.approx(15.0, abs=1e-4)
            assert found["interval"] is None


@pytest.mark.parametrize("ends", [(0, 9, 50, 1e9), (-1e9, 0, 9, 20), (1e9, 1e9 + 9, 1e9 + 20)])
def test_means_and_sums_keep_their_digits_though_chances_are_rounded(ends) -> None:
    """A model keeps them with 24 bits, so that they add up to 1 but for rounding."""
    column = Numeric("x", tuple(map(float, ends)))
    schema, near = TableSchema((column, Binary("s")), declared=True), min(ends, key=abs)
    for seed in range(20):
        shares = np.random.default_rng(seed).random(column.buckets) * (np.diff(ends) < 1e8)
        shares /= shares.sum()
        model = ProductMixture.single(schema.domain, np.append(shares, 0.3))
        made = Made(None, model, schema=schema, read_by=schema)
        mean, given, whole = answer_queries(made, ["mean(x)", "mean(x) given s", "sum(x)"])
        for answer in (mean["answer"], given["answer"], whole["answer"] / made.n):
            assert answer - near == pytest.approx(shares @ (column.means - near), abs=1e-4)


def test_a_query_of_the_workload_keeps_its_released_answer_within_its_interval() -> None:
    found, count = answer_queries(noisy(0), ["smoker", "count(smoker)"])
    assert found["low"] < SMOKER.mean() < found["high"]
    assert (found["answer"], found["source"]) == (min(0.25, found["high"]), "released")
    assert (count["answer"], count["source"]) == (min(750, count["high"]), "released")
    table = SCHEMA.decode(ROWS[:50])
    made = dualquery.release(table, schema=SCHEMA, queries="all", way=1, mechanism="barak")
    asked = made.answer_table["query"].to_list()
    for line, stored in zip(answer_queries(made, asked), made.answers, strict=True):
        assert line["answer"] == pytest.approx(stored) or "in answers.parquet" in line["basis"]
    (other,) = answer_queries(noisy(3), ["smoker"])
    assert other["low"] <= other["answer"] <= other["high"]


def test_a_number_that_is_nearly_all_noise_moves_no_answer_far() -> None:
    """The pair's, 1.5: it is no more than its rarest literal's share. What was released stays."""
    codes = np.array([[10, -1], [12, -1], [10, 12]], np.int32)
    found = Measurements.of_codes(codes, np.array([0.5, 0.1, 1.5]), np.array([0.01, 0.01, 0.5]))
    own = SimpleNamespace(of=lambda _: (0.2, 0.3), basis="its own noise", level=LEVEL)
    made = Made(found, noisy(0).model, intervals=own)
    both, kept = answer_queries(made, ["smoker & sex=Female", "smoker"])
    assert 0.0 <= both["low"] <= both["answer"] <= both["high"] < 0.15
    assert kept["low"] < 0.1 < kept["answer"] == kept["high"] == 0.25


def test_impossible_and_nearly_empty_questions_do_not_crash() -> None:
    made = noisy(0)
    shares = answer_queries(made, ["smoker & !smoker", "age>=100", "smoker or !smoker"])
    assert [line["answer"] for line in shares] == [0, 0, 1]
    assert [line["interval"] for line in shares] == [(0, 0), (0, 0), (1, 1)]
    for text in (
        "sex=Female given smoker & !smoker",
        "median(age) given age>=100",
        "mean(age) given age>=100",
    ):
        (empty,) = answer_queries(made, [text])
        assert empty["answer"] is None, text
        assert "no row of the schema can be like" in empty["basis"]
    (rare,) = answer_queries(made, ["sex=Female given smoker & sex=Male"])
    assert (rare["low"], rare["high"]) == (0, 1)
    assert "may be none" in rare["basis"]


def test_a_step_that_nothing_was_measured_of_may_hold_a_quantile() -> None:
    """The upper two buckets and what lies below were measured; the tenth part ends below."""
    shares = ROWS.mean(axis=0)
    shares[0], shares[2] = 0.0, shares[0] + shares[2]
    measured = noisy(0, literals=np.array([[4], [6]]))
    made = replace(measured, model=ProductMixture.single(DOMAIN, shares))
    found, upper = answer_queries(made, ["quantile(age, 0.1)", "quantile(age, 0.9)"])
    assert found["low"] == 0
    assert found["high"] < 20
    assert upper["low"] >= 20


def test_steps_alike_do_not_end_an_interval_of_a_quantile_early() -> None:
    """Of 20 intervals of a median at one of two ends, more than 3 miss with a chance of 1.6%."""
    ends = pl.DataFrame({"x": [0, 1, 98, 99] * 250})
    schema = TableSchema((Numeric("x", tuple(range(101)), integer=True),), declared=True)
    asked = {"mechanism": "gaussian", "marginals": "all", "way": 1, "epsilon": 1.0, "delta": 1e-6}
    made = [dualquery.release(ends, schema=schema, **asked, seed=seed) for seed in range(20)]
    (found,) = zip(*(answer_queries(each, ["median(x)"]) for each in made), strict=True)
    assert sum(not line["low"] <= 1 <= line["high"] for line in found) <= 3


def test_nothing_is_said_to_be_known_of_given_rows_beyond_the_edges() -> None:
    (age, *others) = SCHEMA.columns
    clips = replace(SCHEMA, columns=(replace(age, outside="clip"), *others))
    made = replace(noisy(0), schema=clips, read_by=clips)
    for text in ("smoker given age>90", "mean(age) given age>90", "median(age) given age>90"):
        (beyond,) = answer_queries(made, [text])
        assert beyond["answer"] is None, text
        assert "whether there are rows like the given ones is not known" in beyond["basis"]
        assert "estimate" not in beyond["basis"]


def test_cut_buckets_are_said_and_bounded() -> None:
    (found,) = answer_queries(noisy(0, 1e-9), ["age>=25"])
    assert found["answered"] == "age>=25"
    assert "cut within 20-40" in found["basis"]
    assert "the interval allows for any values in these buckets" in found["basis"]
    assert found["low"] == pytest.approx((VALUES[:, 0] == 3).mean(), abs=1e-6)
    assert found["high"] == pytest.approx((VALUES[:, 0] >= 2).mean(), abs=1e-6)


def test_numbers_on_an_edge_may_be_all_of_the_bucket_above_it() -> None:
    """Of numbers that need not be whole: 20 and all that follows up to 40 is one bucket."""
    made = noisy(0, 1e-9)
    columns = (replace(SCHEMA.columns[0], integer=False), *SCHEMA.columns[1:])
    made.schema = made.read_by = replace(SCHEMA, columns=columns)
    below, upto, above = answer_queries(made, ["age<20", "age<=20", "age>20"])
    exact, with_next = (VALUES[:, 0] < 2).mean(), (VALUES[:, 0] <= 2).mean()
    assert below["interval"] == pytest.approx((exact, exact), abs=1e-6)
    assert upto["interval"] == pytest.approx((exact, with_next), abs=1e-6)
    assert above["low"] == pytest.approx(1 - with_next, abs=1e-6)
    assert "cut within 20-40" in upto["basis"]


def test_nothing_is_certain_of_numbers_beyond_the_edges_of_a_column_that_clips() -> None:
    """The last bucket holds all numbers from 40 on: how many of them are above 80 nobody says."""
    made = noisy(0)
    columns = (replace(SCHEMA.columns[0], outside="clip"), *SCHEMA.columns[1:])
    made.schema = made.read_by = replace(SCHEMA, columns=columns)
    texts = ["age>80", "age<=80", "count(age>80)", "age>80 given smoker", "age>=40"]
    above, inside, count, of_smokers, last = answer_queries(made, texts)
    assert (above["low"], inside["high"]) == (0, 1)
    assert above["high"] == pytest.approx(last["high"], rel=0.1)
    assert inside["low"] == pytest.approx(1 - last["high"], rel=0.1)
    assert count["high"] == pytest.approx(3_000 * above["high"])
    assert of_smokers["low"] == 0
    assert 0.1 < of_smokers["high"] < 1
    for line in (above, inside, count, of_smokers):
        assert "numbers of age beyond 0-10 and 40-80" in line["basis"]
    (mean,) = answer_queries(made, ["mean(age) given age>80"])
    assert (mean["answer"], mean["low"], mean["high"]) == (None, 0, 80)
    assert "those above 80 as 80" in mean["basis"]


def test_without_a_model_answers_come_from_records_or_the_measurements() -> None:
    made = replace(noisy(0, 1e-9), model=None)
    (measured,) = answer_queries(made, ["smoker given sex=Female"])
    assert measured["source"] == "measured"
    assert measured["answer"] == pytest.approx(SMOKER[FEMALE].mean(), abs=1e-6)
    with pytest.raises(BadInputError, match="do not determine its answer"):
        answer_queries(made, ["smoker & sex=Female & age>=20"])
    made.records = ROWS
    (synthetic,) = answer_queries(made, ["smoker & sex=Female & age>=20"])
    assert synthetic["source"] == "synthetic"
    assert synthetic["answer"] == pytest.approx((SMOKER & FEMALE & (VALUES[:, 0] >= 2)).mean())


def test_what_a_condition_was_measured_with_determines_its_answer() -> None:
    queries = ["flag & job!=nurse", "flag & job=nurse"]
    made = dualquery.release(people(), schema=PEOPLE, queries=queries, mechanism="gaussian")
    (found,) = answer_queries(made, ["!flag given !flag or job=nurse"])
    assert found["low"] <= found["answer"] <= found["high"]


def test_a_list_is_put_together_from_released_parts_where_nothing_else_is_known() -> None:
    texts = ["smoker or edu=1", "smoker given sex=Female", "count(age<40)"]
    truths = (SMOKER | (EDU == 0)).mean(), SMOKER[FEMALE].mean(), (VALUES[:, 0] < 3).sum()
    made = dualquery.release(
        SCHEMA.decode(ROWS), schema=SCHEMA, queries=texts, mechanism="randomized-response",
        epsilon=400.0, delta=0.0, seed=0,
    )  # fmt: skip
    for line, truth in zip(answer_queries(made, texts), truths, strict=True):
        assert (line["answer"], line["source"]) == (pytest.approx(truth, rel=1e-6), "released")


def test_a_release_answers_questions() -> None:
    made = dualquery.release(
        "adult", columns="age,sex,income", queries="all", way=2, options={"components": 16},
        mechanism="matrix", seed=0,
    )  # fmt: skip
    assert 0.6 < made.answer("age between 25 and 59") < 0.8
    assert 35 < made.answer("mean(age) given sex=Female") < 40
    assert math.isnan(made.answer("mean(age) given sex=Female & sex=Male"))
    with pytest.raises(BadInputError, match="did you mean 'income'"):
        made.answer("mean(age) given Income=>50K")


def test_answers_show_and_save_themselves(tmp_path: Path) -> None:
    found = answer_queries(noisy(0), ["smoker", "count(sex=Female)", "median(age)"])
    page = found._repr_html_()
    assert "count(sex=Female)" in page
    assert "<table" in page
    for name, read in (("a.csv", pl.read_csv), ("a.parquet", pl.read_parquet)):
        assert read(found.save(tmp_path / name)).equals(found.frame())
    with pytest.raises(BadInputError, match="exists already"):
        found.save(tmp_path / "a.csv")


CRITICAL = 1.959964
DEVIATION = 0.01


def interval(numerator: float, denominator: float) -> tuple[float, float]:
    """Return the interval of a share of given rows, both sums with noise of their own."""
    knows: Any = SimpleNamespace(base=SimpleNamespace(known="exact"), basis="noise")
    found: Any = SimpleNamespace(
        # The least and largest numerator are one number, and so are the denominators.
        values=np.array([numerator, numerator, denominator, denominator]),
        covariance=DEVIATION**2 * np.kron(np.eye(2), np.ones((2, 2))),
        critical=lambda level, combination: CRITICAL,
        absent=np.zeros(4),
    )
    limits = Knowledge._ratio(knows, found, (0.0, 1.0), 0.95)
    return limits.low, limits.high


def test_intervals_of_ratios_near_an_end_hold_as_often_as_they_say() -> None:
    """Of 1,000 draws each, at 95%: five standard errors are 3.4%."""
    generator = np.random.default_rng(1)
    for truth in (0.0, 0.02, 0.98, 1.0):
        noise = DEVIATION * generator.standard_normal((1_000, 2))
        ends = [interval(truth * 0.2 + above, 0.2 + below) for above, below in noise.tolist()]
        lows, highs = np.array(ends).T
        assert ((lows <= truth) & (truth <= highs)).mean() > 0.95 - 0.034
        assert (highs - lows).min() > 0.01
