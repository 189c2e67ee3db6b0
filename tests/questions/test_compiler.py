"""What questions ask of a schema, against all raw records of a small one, one by one."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data import Binary, Categorical, Dates, ItemSchema, Numeric, TableSchema
from dualquery.questions.allowed_values import Span, pieces_of
from dualquery.questions.compiler import ask
from dualquery.questions.plain_parser import read_question
from dualquery.questions.syntax_tree import Flag, Not, Or, Question
from dualquery.runtime.errors import BadInputError

SCHEMA = TableSchema(
    (
        Numeric("age", (0.0, 3.0, 4.0, 9.0), integer=True, missing="category"),
        Categorical("edu", (("1",), ("2", "3"), ("10",)), outside="other"),
        Binary("flag", zero="no", one="yes"),
        Categorical("sex", (("Male",), ("Female",))),
    ),
    declared=True,
)
AGES, EDUS = (*range(10), None), (1, 2, 3, 10, "x")
RAW = list(itertools.product(AGES, EDUS, (0, 1), ("Male", "Female")))
"""All rows that differ; "x" is an undeclared value."""
BUCKET = {age: 0 if age < 3 else 1 if age == 3 else 2 for age in AGES if age is not None}


def cell(row) -> tuple[int, ...]:
    age, edu, flag, sex = row
    places = {1: 0, 2: 1, 3: 1, 10: 2, "x": 3}
    return (BUCKET.get(age, 3), places[edu], flag, ("Male", "Female").index(sex))


CELLS = np.array([cell(row) for row in RAW])
EVERY = np.array(list(itertools.product(range(4), range(4), range(2), range(2))))
OWN = np.array([int(np.flatnonzero((each == EVERY).all(axis=1))[0]) for each in CELLS])


def over_cells(values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return least, mean and largest value of the raw rows of every cell."""
    values = np.array(values, float)
    groups = [values[number == OWN] for number in range(len(EVERY))]
    return tuple(np.array([f(group) for group in groups]) for f in (np.min, np.mean, np.max))


SIMPLE = {
    "flag": lambda age, edu, flag, sex: flag == 1,
    "flag=no": lambda age, edu, flag, sex: flag == 0,
    "sex=Female": lambda age, edu, flag, sex: sex == "Female",
    "sex!=Female": lambda age, edu, flag, sex: sex != "Female",
    "edu=2": lambda age, edu, flag, sex: edu in (2, 3),
    "edu=(other)": lambda age, edu, flag, sex: edu == "x",
    "edu in (1, 10)": lambda age, edu, flag, sex: edu in (1, 10),
    "edu not in (1, 3)": lambda age, edu, flag, sex: edu not in (1, 2, 3),
    "edu>1": lambda age, edu, flag, sex: edu in (2, 3, 10),
    "edu<=5": lambda age, edu, flag, sex: edu in (1, 2, 3),
    "edu between 2 and 3": lambda age, edu, flag, sex: edu in (2, 3),
    "age=0-3": lambda age, edu, flag, sex: age is not None and age < 3,
    "age=5": lambda age, edu, flag, sex: age is not None and age >= 4,
    "age=(missing)": lambda age, edu, flag, sex: age is None,
    "age in (3, (missing))": lambda age, edu, flag, sex: age in (3, None),
    "age>=4": lambda age, edu, flag, sex: age is not None and age >= 4,
    "age<9": lambda age, edu, flag, sex: age is not None and age < 9,
    "age<=1.5": lambda age, edu, flag, sex: age is not None and age <= 1,
    "age>6": lambda age, edu, flag, sex: age is not None and age > 6,
    "age=2-6": lambda age, edu, flag, sex: age is not None and 2 <= age <= 6,
    "age=3-4": lambda age, edu, flag, sex: age in (3, 4),
    "age between 1 and 7": lambda age, edu, flag, sex: age is not None and 1 <= age <= 7,
    "age in (1-2, 3, 5-8)": lambda age, edu, flag, sex: age in (1, 2, 3, 5, 6, 7, 8),
    "age>=100": lambda age, edu, flag, sex: False,
    "age>=-100": lambda age, edu, flag, sex: age is not None,
}
"""Literals and what they say of a raw row."""


def _combined(inner):
    several = st.lists(inner, min_size=2, max_size=3)

    def join(word, rule):
        return several.map(
            lambda parts: (
                "(" + word.join(text for text, _ in parts) + ")",
                [rule(each) for each in zip(*(held for _, held in parts), strict=True)],
            )
        )

    negated = inner.map(lambda part: (f"not {part[0]}", [not held for held in part[1]]))
    return st.one_of(join(" or ", any), join(" & ", all), negated)


CONDITIONS = st.recursive(
    st.sampled_from([(text, [rule(*row) for row in RAW]) for text, rule in SIMPLE.items()]),
    _combined,
    max_leaves=5,
)


@given(CONDITIONS)
@settings(max_examples=150, deadline=None)
def test_a_share_is_that_of_the_raw_rows(case) -> None:
    text, held = case
    asked = ask(read_question(text, SCHEMA), SCHEMA)
    least, mean, most = over_cells(held)
    bounds = asked.numerator
    np.testing.assert_allclose(bounds.likely.on_values(EVERY), mean, atol=1e-12)
    assert (bounds.low.on_values(EVERY) <= least + 1e-12).all()
    assert (bounds.high.on_values(EVERY) >= most - 1e-12).all()
    if (least == most).all():
        assert bounds.exact or "lay evenly" in asked.remark
    again = ask(read_question(asked.text, SCHEMA), SCHEMA)
    np.testing.assert_allclose(again.numerator.likely.on_values(EVERY), mean, atol=1e-12)


@given(CONDITIONS)
@settings(max_examples=80, deadline=None)
def test_forms_are_their_conjunctions(case) -> None:
    text, _ = case
    form = ask(read_question(text, SCHEMA), SCHEMA).numerator.likely
    literals, coefficients, constant = form.conjunctions()
    offsets, total = SCHEMA.domain.offsets, np.full(len(EVERY), constant)
    for row, coefficient in zip(literals, coefficients, strict=True):
        holds = np.ones(len(EVERY), bool)
        for code in row[row >= 0].tolist():
            column = int(SCHEMA.domain.column_of_bit[code >> 1])
            place = 1 if SCHEMA.domain.sizes[column] == 1 else (code >> 1) - offsets[column]
            holds &= (EVERY[:, column] == place) ^ bool(code & 1)
        total += coefficient * holds
    np.testing.assert_allclose(total, form.on_values(EVERY), atol=1e-12)
    np.testing.assert_allclose(form.table(range(4)).ravel(), form.on_values(EVERY), atol=1e-12)


@given(CONDITIONS, st.sampled_from(["age", "edu"]))
@settings(max_examples=80, deadline=None)
def test_means_and_sums_are_those_of_the_raw_rows(case, column) -> None:
    text, held = case
    numbers = [row[["age", "edu"].index(column)] for row in RAW]
    # A merged category stands for the mean of its numbers, an undeclared one for none.
    known = [isinstance(each, int) for each in numbers]
    cells = [*zip(held, known, numbers, strict=True)]
    for measure in ("sum", "mean"):
        asked = ask(read_question(f"{measure}({column}) given {text}", SCHEMA), SCHEMA)
        bounds = asked.numerator
        worth = [h * (each - asked.nearest) if k else 0 for h, k, each in cells]
        least, mean, most = over_cells(worth)
        np.testing.assert_allclose(bounds.likely.on_values(EVERY), mean, atol=1e-12)
        assert (bounds.low.on_values(EVERY) <= least + 1e-12).all()
        assert (bounds.high.on_values(EVERY) >= most - 1e-12).all()
    _, share, _ = over_cells([h and k for h, k in zip(held, known, strict=True)])
    np.testing.assert_allclose(asked.denominator.likely.on_values(EVERY), share, atol=1e-12)


def test_a_quantile_asks_for_the_shares_below() -> None:
    asked = ask(read_question("median(age) given flag & age>1", SCHEMA), SCHEMA)
    np.testing.assert_array_equal(asked.low, [0, 2, 3, 4])
    np.testing.assert_array_equal(asked.high, [1, 2, 3, 8 + 1])
    for place, most in enumerate((1, 2, 3, 9)):
        held = [r[2] == 1 and r[0] is not None and 1 < r[0] <= most for r in RAW]
        np.testing.assert_allclose(
            asked.below[place].likely.on_values(EVERY), over_cells(held)[1], atol=1e-12
        )


@pytest.mark.parametrize("text", ["age<=1.5 or sex=Female", "not (age>1.5 & sex=Male)"])
def test_a_cut_bucket_opens_as_few_rows_in_any_order(text: str) -> None:
    """Where women are counted no age is open: a cell had 2 as its upper end, 0 as its lower."""
    asked = ask(read_question(text, SCHEMA), SCHEMA)
    assert (asked.numerator.low.on_values(EVERY)[EVERY[:, 3] == 1] == 1).all()
    assert asked.numerator.high.on_values(EVERY).max() == 1
    forms = [f"{text} or age<=1", f"age<=1 or {text}"]
    one, other = (ask(read_question(each, SCHEMA), SCHEMA).numerator.high for each in forms)
    assert (one.on_values(EVERY) == other.on_values(EVERY)).all()


def test_given_rows_that_are_all_rows_need_no_given() -> None:
    """So a mean that was bought answers them, too."""
    asked = ask(read_question("mean(age) given sex in (Male, Female)", SCHEMA), SCHEMA)
    assert asked.question == ask(read_question("mean(age)", SCHEMA), SCHEMA).question


def test_a_negative_worth_has_the_other_bound() -> None:
    schema = TableSchema(
        (Numeric("gain", (-4.0, 0.0, 4.0)), Numeric("age", (0.0, 2.0, 4.0))), declared=True
    )
    asked = ask(read_question("sum(gain) given age>=1", schema), schema)
    values = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    np.testing.assert_allclose(asked.numerator.low.on_values(values), [-4, -4, 0, 0])
    np.testing.assert_allclose(asked.numerator.likely.on_values(values), [-1, -2, 1, 2])
    np.testing.assert_allclose(asked.numerator.high.on_values(values), [0, 0, 4, 4])


CLINIC = TableSchema(
    (
        Numeric("Wait (min)", (0.0, 30.0, 60.0), integer=True, missing="category"),
        Numeric("Age", (0.0, 50.0, 100.0), integer=True, outside="clip"),
        Dates("Visit", "month", "2022-01-01", "2023-12-28", format="%d.%m.%Y"),
        Dates("Born", "year", "1920-01-01", "2019-12-31"),
        Categorical("Referrer", (("self",), ("Dr. No",)), missing="category"),
        Dates("Seen", "month", "2022-01-01", "2023-12-31", "%d.%m.%Y %H:%M", outside="clip"),
        Categorical("Zip", (("01067",), ("04109",), ("10115",))),
    ),
    declared=True,
    missing_values=("", "?"),
)


@pytest.mark.parametrize(
    ("schema", "text", "shown"),
    [
        (SCHEMA, "age=2-6", "age between 2 and 6"),
        (SCHEMA, "age=1 or flag", "age=0-3 or flag"),
        (SCHEMA, "flag=yes or flag!=1", "flag=yes or flag!=1"),
        (SCHEMA, "median(age) given sex=Male", "median(age) given sex=Male"),
        (CLINIC, "Visit=2023-02-28", "Visit=2023-02"),
        (CLINIC, "Seen<2023-03-05", "Seen<2023-03"),
        (CLINIC, "Seen=05.03.2023 17:30", "Seen=2023-03"),
        (CLINIC, "Seen between 05.03.2023 and 2023-05-01", "Seen between 2023-03 and 2023-05"),
        (CLINIC, "Age in (33, 40-60)", "Age in (0-50, 40-60)"),
    ],
)
def test_the_canonical_text_shows_what_a_value_stands_for(schema, text: str, shown: str) -> None:
    assert ask(read_question(text, schema), schema).text == shown


TARIFFS = TableSchema(
    (
        Categorical("tariff", (("Day",), ("Night & Heat",), ("1,5",))),
        Numeric("price", (0.0, 20.0, 2000.0), outside="clip"),
        Numeric("kwh", (0.0, 1000.0, 20_000.0), integer=True),
        Binary("change", zero="-1", one="2"),
        Binary("left", zero="yes", one="0"),
    ),
    declared=True,
)


@pytest.mark.parametrize(
    ("schema", "text", "facts"),
    [
        (SCHEMA, "AGE>=3", ("'AGE'", "'age'")),
        (SCHEMA, "sex=female or flag", ("'female'", "'Female'")),
        (SCHEMA, "mean(sex)", ("'sex'", "'Male'")),
        (SCHEMA, "sex>=3", ("'sex'", "order")),
        (SCHEMA, "age=6-2", ("6", "2")),
        (SCHEMA, "age!=2-6", ("not age=2-6",)),
        (SCHEMA, "age in (1-5, (missing))", ("'age'", "apart")),
        (SCHEMA, "count(flag) given sex=Male", ("'given'",)),
        (CLINIC, "Born between 1900-01-01 and 1990", ("1900-01-01", "1920", "2019")),
        (CLINIC, "Seen=01.03.2024", ("2022-01 to 2023-12", "Seen=2023-12")),
        (CLINIC, "Seen between 2025-01-01 and 2024-01-01", ("earlier date",)),
        (CLINIC, "Age=120", ("0 to 100", "Age=50-100")),
        (CLINIC, "Referrer=?", ("'?'", "Referrer=(missing)")),
        (TARIFFS, "tariff=Day & Heat", ("'Heat'",)),
        (TARIFFS, "price=12,50", ("'price'", "12.50")),
        (TARIFFS, "price between 1.000,5 and 2000", ("point",)),
        (TARIFFS, "left=1", ("'left' has no value '1'",)),
        *((TARIFFS, f"change={bit}", (f"'change' has no value '{bit}'",)) for bit in (0, 1)),
        (CLINIC, "Seen=\udce9", ("udce9",)),  # what a terminal of another encoding sends
    ],
)
def test_what_is_wrong_with_a_question_is_said(schema, text, facts) -> None:
    with pytest.raises(BadInputError) as told:
        ask(read_question(text, schema), schema)
    assert [fact for fact in facts if fact not in str(told.value)] == []


def test_items_are_flags() -> None:
    schema = ItemSchema(np.array([3, 17]), "items", declared=True)
    form = ask(read_question("3 or not 17", schema), schema).numerator.likely
    values = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(form.on_values(values), [1, 0, 1, 1])


def test_signs_and_words_in_known_names_and_values_need_no_quotation_marks() -> None:
    column = Categorical("a or b", (("x and y",), (":)",)))
    schema = TableSchema((column, Binary("not it")), declared=True)
    form = ask(read_question("a or b=x and y & not it", schema), schema).numerator.likely
    np.testing.assert_array_equal(form.on_values(np.array([[0, 1], [1, 1], [0, 0]])), [1, 0, 0])
    form = ask(read_question('not "a or b"=":)" or "not it"', schema), schema).numerator.likely
    np.testing.assert_array_equal(form.on_values(np.array([[0, 0], [1, 1], [1, 0]])), [1, 1, 0])


def test_a_condition_of_too_many_cases_is_refused() -> None:
    schema = ItemSchema.numbered(60, "items")
    text = " & ".join(f"({i} or {i + 20} or {i + 40})" for i in range(20))
    with pytest.raises(BadInputError, match="more than 2,000 cases"):
        ask(read_question(text, schema), schema)
    wide = " or ".join(map(str, range(60)))
    assert len(ask(read_question(wide, schema), schema).numerator.likely.terms) == 60
    with pytest.raises(BadInputError, match="a question of 101 conditions; at most 100"):
        ask(read_question(" or ".join(["1"] * 101), schema), schema)


def test_contradictions_have_no_boxes() -> None:
    asked = ask(read_question("flag & !flag", SCHEMA), SCHEMA)
    assert asked.numerator.likely.terms == ()
    assert not ask(read_question("age<=1 & sex=Male or sex=Female", SCHEMA), SCHEMA).numerator.exact
    assert not asked.numerator.likely.on_values(EVERY).any()
    whole = ask(Question("share", Or((Flag("flag"), Not(Flag("flag"))))), SCHEMA)
    assert whole.numerator.likely.terms == ({},)
    assert math.isclose(whole.numerator.likely.conjunctions()[2], 1.0)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("flag & sex=Female & age=3", [[2, 16, 20], [2, 16, 20]]),
        ("sex!=Female", [[21], [18]]),
        ("edu in (3) & not flag", [[10, 17]]),
        ("not edu=10 or edu=10 & edu=1", [[13]]),
        ("age between 0 and 2", [[0]]),
        ("age between 0 and 1", []),
        ("flag or sex=Male", []),
    ],
)
def test_conjunctions_are_recognised(text: str, codes: list[list[int]]) -> None:
    found = ask(read_question(text, SCHEMA), SCHEMA).conjunctions
    assert [each.tolist() for each in found] == codes


def test_a_bucket_has_the_mean_that_its_schema_states_unless_it_is_cut() -> None:
    pay = Numeric("pay", (0.0, 100.0, 1000.0), within=((10.0, 20.0), "uniform"))
    assert pieces_of(pay, []).mean.tolist() == [15.0, 550.0]
    cut = pieces_of(pay, [(Span(0.0, 50.0),)])
    assert cut.mean.tolist() == [15.0, 75.0, 550.0]
    assert cut.part.tolist() == [1.0, 0.0, 1.0]


def test_a_number_that_a_bucket_is_said_to_hold_is_on_the_right_side_of_a_range() -> None:
    """Rates of exactly 0 and 1, in buckets of their own: from 0 to 1 is everything."""
    rate = Numeric("rate", (0, 0.01, 1, 1.05), within=(0.0, "uniform", 1.0))
    schema = TableSchema((rate, Binary("flag")), declared=True)
    for question, parts in {
        "rate between 0 and 1": [1, 1, 1],
        "rate between 0 and 0": [1, 0, 0],
        "rate<=0": [1, 0, 0],
        "rate>0": [0, 1, 1],
        "rate<1": [1, 1, 0],
        "rate>=1": [0, 0, 1],
        "rate>1": [0, 0, 0],
    }.items():
        terms = ask(read_question(question, schema), schema).numerator.likely.terms
        assert (terms[0][0].tolist() if terms else [0, 0, 0]) == parts, question


def test_the_upper_edge_of_all_is_in_the_last_bucket() -> None:
    schema = TableSchema((Numeric("score", (0.0, 50.0, 100.0)), Binary("flag")), declared=True)
    for question, low, high in (
        ("score>=100", [0, 0], [0, 1]), ("score<100", [1, 0], [1, 1]), ("score<=99", [1, 0], [1, 1])
    ):  # fmt: skip
        bounds = ask(read_question(question, schema), schema).numerator
        ends = (each.on_values(np.array([[0, 0], [1, 0]])) for each in (bounds.low, bounds.high))
        assert [each.tolist() for each in ends] == [low, high]


def test_merged_categories_that_overlap_have_no_quantile() -> None:
    schema = TableSchema((Categorical("k", (("1", "100"), ("4",))), Binary("flag")), declared=True)
    with pytest.raises(BadInputError, match="overlap"):
        ask(read_question("median(k)", schema), schema)


def test_quantiles_and_cuts_heed_how_the_schema_says_that_numbers_lie() -> None:
    hours = Numeric(
        "hours", (0, 10, 40, 50, 100), integer=True,
        within=("uniform", "log-uniform", (40, 40, 40, 45), 60.0),
    )  # fmt: skip
    schema = TableSchema((hours, Binary("flag")), declared=True)
    asked = ask(read_question("median(hours)", schema), schema)
    # Of the numbers 0 to 9 the middle is 4 or 5; of logarithms from 10 to 40 it is the root of 400.
    assert [asked.number(step, 0.5) for step in range(4)] == [5, 20, 40, 60]
    assert [asked.number(2, part) for part in (0.0, 0.75, 0.76, 1.0)] == [40, 40, 45, 45]
    assert [asked.number(0, part) for part in (0.0, 0.99, 1.0)] == [0, 9, 9]
    cut = ask(read_question("hours>=45", schema), schema)
    assert cut.numerator.likely.terms[0][0].tolist() == [0.0, 0.0, 0.25, 1.0]
    assert cut.numerator.low.terms[0][0].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert "as the schema says" in cut.remark


CLIPPED = TableSchema(
    (
        Numeric("x", (0.0, 5.0, 20.0), integer=True, missing="category", outside="clip"),
        Numeric("y", (0.0, 5.0, 20.0), outside="clip"),
    ),
    declared=True,
)
BEYOND = {
    "{}>20": lambda v: v > 20,
    "{}<=20": lambda v: v <= 20,
    "not {}>20": lambda v: v <= 20,
    "{}>=0": lambda v: v >= 0,
    "{} between -3 and 3": lambda v: -3 <= v <= 3,
    "{}<-3 or {}>=25": lambda v: v < -3 or v >= 25,
}


@pytest.mark.parametrize("text", BEYOND)
@pytest.mark.parametrize("name", ["x", "y"])
def test_a_clipped_number_may_lie_on_either_side_of_what_a_range_ends_beyond(name, text) -> None:
    """Whatever the numbers of a bucket are, the limits hold the share; they are never certain."""
    asked = ask(read_question(text.replace("{}", name), CLIPPED), CLIPPED)
    assert not asked.numerator.exact
    assert "they may be any part of " in asked.remark
    number, column = CLIPPED.column(name)
    raw = np.arange(-6, 40)
    cells = np.zeros((len(raw), 2), np.int64)
    cells[:, number] = np.where(raw < 5, 0, 1)
    true = np.array([BEYOND[text](value) for value in raw.tolist()], float)
    assert (asked.numerator.low.on_values(cells) <= true).all()
    assert (true <= asked.numerator.high.on_values(cells)).all()
    likely = asked.numerator.likely.on_values(cells[(raw >= 0) & (raw <= 20)]).mean()
    assert likely == pytest.approx(true[(raw >= 0) & (raw <= 20)].mean(), abs=0.06)
    strict = TableSchema((replace(column, outside="error"), Binary("z")), declared=True)
    assert "counted in" not in ask(read_question(text.replace("{}", name), strict), strict).remark


@pytest.mark.parametrize(
    "text", ["x>=5", "x<5", "x=0-5", "x in (5-20)", "x<5 or x>=5", "not x=(missing)"]
)
def test_open_ranges_and_buckets_have_the_numbers_beyond_the_edges(text: str) -> None:
    asked = ask(read_question(text, CLIPPED), CLIPPED)
    assert asked.numerator.exact
    assert asked.remark == ""


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (">={}3", "00011"),
        ("<{}1", "10000"),
        (">{}0", "01111"),
        (" between {}1 and {}2", "01100"),
        ("={}3.0", "00010"),
        ("<={}2.5", "11100"),
    ],
)
def test_categories_compare_whole_numbers_that_no_float_tells_apart(text, held) -> None:
    many = str(2**64)[:-1]
    column = Categorical("many", tuple((f"{many}{last}",) for last in range(5)))
    schema = TableSchema((column, Binary("z")), declared=True)
    asked = ask(read_question(f"many{text.replace('{}', many)}", schema), schema)
    cells = np.column_stack((np.arange(5), np.zeros(5, np.int64)))
    assert asked.numerator.likely.on_values(cells).tolist() == list(map(int, held))


YEARS = Dates("day", "year", "2010-01-01", "2012-12-31", missing="category", outside="clip")


@pytest.mark.parametrize(
    ("text", "low", "likely", "high"),
    [
        ("day>2012", "0000", "0000", "0010"),
        ("day<=2012", "1100", "1110", "1110"),
        ("not day>2012", "1101", "1111", "1111"),
        ("day>=2010", "0110", "1110", "1110"),
        ("day>=2011", "0110", "0110", "0110"),
        ("day>=2014-05-01", "0000", "0000", "0010"),
        ("day between 2013-01-01 and 2013-06-30", "0000", "0000", "0010"),
        ("day>=2013", "0000", "0000", "0010"),
        ("day<2013", "1100", "1110", "1110"),
        ("day>=2010 & day<2013", "0100", "1110", "1110"),
    ],
)
def test_dates_beyond_the_last_period_are_in_it_or_not(text, low, likely, high) -> None:
    schema = TableSchema((YEARS, Binary("flag")), declared=True)
    asked = ask(read_question(text, schema), schema)
    assert ("dates of day" in asked.remark) == (low != high)
    cells = np.column_stack((np.arange(4), np.zeros(4, np.int64)))
    forms = asked.numerator.low, asked.numerator.likely, asked.numerator.high
    for form, weights in zip(forms, (low, likely, high), strict=True):
        assert form.on_values(cells).tolist() == list(map(int, weights))
    strict = TableSchema((replace(YEARS, outside="error"), Binary("flag")), declared=True)
    if "2014" in text or "between 2013" in text:
        with pytest.raises(BadInputError, match="lies outside of its dates, 2010 to 2012"):
            ask(read_question(text, strict), strict)
        return
    certain = ask(read_question(text, strict), strict)
    assert certain.numerator.exact
    assert certain.numerator.likely.on_values(cells).tolist() == list(map(int, likely))
    assert certain.text == asked.text


@pytest.mark.parametrize(
    ("text", "shown", "days"),
    [
        ("day>=2024", "day>=2024-01-01", range(3, 10)),
        ("day<2024", "day<2024-01-01", range(3)),
        ("day=2023", "day between 2023-12-29 and 2023-12-31", range(3)),
        ("not day=2024-01", "not day between 2024-01-01 and 2024-01-07", range(3)),
        ("day between 2023 and 2024-Q1", None, range(10)),
        ("day in (2023, 2024-01-02)", "day in (2023, 2024-01-02)", (0, 1, 2, 4)),
    ],
)
def test_a_year_or_a_month_is_all_of_its_days(text, shown, days) -> None:
    schema = TableSchema((Dates("day", "day", "2023-12-29", "2024-01-07"),), declared=True)
    asked = ask(read_question(text, schema), schema)
    assert asked.numerator.exact
    assert not asked.remark
    assert shown in (None, asked.text)
    every = np.arange(10)[:, None]
    assert np.flatnonzero(asked.numerator.likely.on_values(every)).tolist() == list(days)
    assert ask(read_question(asked.text, schema), schema).text == asked.text


@pytest.mark.parametrize("text", ["edu>1", "flag or edu between 2 and 3", "mean(edu)", "edu=2"])
def test_that_undeclared_values_are_no_numbers_is_said(text) -> None:
    told = "" if text == "edu=2" else "what edu does not list, (other), counts as no number"
    assert ask(read_question(text, SCHEMA), SCHEMA).remark.partition("; ")[0] == told
