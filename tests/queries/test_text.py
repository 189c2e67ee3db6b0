"""Queries as text: what is printed is read back, and what is wrong is named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data import Binary, Categorical, Numeric, TableSchema
from dualquery.queries.generate.query_files import check_texts, workload_of_texts
from dualquery.queries.generate.workloads import count_distinct, random_conjunctions
from dualquery.queries.literals import print_queries
from dualquery.runtime.errors import BadInputError


def parse_workload(texts, schema):
    """Return the workload of a list of texts, which messages number from 1."""
    return workload_of_texts(texts, schema, "list", lambda i: f"query {i + 1}")


# Bits: flag 0, sex 1-3, income 4-5, member 6.
SCHEMA = TableSchema(
    (
        Binary("flag"),
        Categorical("sex", (("Male",), ("Female",), ("a & b",))),
        Categorical("income", ((">50K",), ("<=50K",))),
        Binary("member", zero="no", one="yes"),
    ),
    declared=True,
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("flag", [0]),
        ("!flag", [1]),
        ("sex=Female", [4]),
        ("!sex!=Female", [4]),
        ("income=>50K", [8]),
        ("income!=<=50K", [11]),
        ('"sex"="a & b"', [6]),
        ('sex != "a & b" & "flag"', [0, 7]),
        ("member=yes & sex=Male&income=>50K", [2, 8, 12]),
        ("flag & flag & sex!=Male", [0, 3]),
        ("sex=Female & sex!=Male", [4]),
    ],
)
def test_a_query_is_read(text: str, codes: list[int]) -> None:
    literals = parse_workload([text], SCHEMA).literals
    assert literals.dtype == np.int32
    assert literals.tolist() == [codes]


def test_a_conjunction_that_names_a_column_twice_is_asked_by_its_parts() -> None:
    work = parse_workload(["flag & sex!=Male & sex!=Female", "flag"], SCHEMA)
    assert work.apart.all()
    assert {tuple(row[row >= 0].tolist()) for row in work.literals} == {(0,), (0, 6)}


WITH_AGE = TableSchema(
    (*SCHEMA.columns, Numeric("age", (0.0, 10.0, 30.0, 35.0, 40.0, 90.0), integer=True)),
    declared=True,
)
"""The buckets are the bits 7 to 11."""


def test_a_list_becomes_a_workload_in_its_order() -> None:
    workload = parse_workload(["sex=Male & flag & !member", "!flag", "income=>50K & flag"], SCHEMA)
    np.testing.assert_array_equal(workload.literals, [[0, 2, 13], [1, -1, -1], [0, 8, -1]])
    assert workload.domain is SCHEMA.domain
    assert workload.description == {"kind": "list", "source": "list"}


def test_a_question_of_a_list_is_asked_by_its_parts() -> None:
    texts = ["age=30-35", "age=30-39 & flag", "sex=Male and flag", "mean(age) given sex=Male"]
    workload = parse_workload(texts, WITH_AGE)
    assert workload.literals[:2].tolist() == [[18, -1], [0, 2]]
    parts = {tuple(row[row >= 0].tolist()) for row in workload.literals[2:]}
    assert parts == {(0, 18), (0, 20), (2,), *((2, age) for age in [14, 16, 18, 20, 22])}
    assert workload.description["questions"] == texts
    assert parse_workload(["age>=30"], WITH_AGE).literals.tolist() == [[14], [16]]  # 1 less these


def test_a_question_beyond_the_edges_is_asked_by_its_limits() -> None:
    """Its bucket is what `dualquery answer` bounds it by, also where rows are given."""
    age = Numeric("age", (0.0, 30.0, 60.0, 100.0), integer=True, outside="clip")
    schema = TableSchema((age, Binary("flag")), declared=True)
    for texts, expected in (
        (["age>120"], [[4]]),
        (["age<=100"], [[4]]),
        (["age>=-5"], [[0]]),
        (["age>120 & flag"], [[4, 6]]),
        (["age>120 given flag"], [[4, 6], [6]]),
        (["age>120 or flag"], [[4, 7], [6]]),
        (["median(age) given age>120"], [[4]]),
        (["flag given age>120"], [[4], [4, 6]]),
    ):
        workload = parse_workload(texts, schema)
        assert sorted(row[row >= 0].tolist() for row in workload.literals) == expected, texts


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["flag", "age>=30", "flag or age=30", "age >= 30"], "query 4: .* same query as query 2"),
        (["flag or member", "member or", "flag"], "query 2: 'member or' is no question"),
        (["flag", "age>=-5"], "query 2: 'age>=-5' has the same answer for every table"),
        (["flag and !flag"], "query 1: 'flag and !flag' is never true"),
        (["count(flag) given member"], "query 1: a count has no 'given'"),
        (['sex=Male & sex!=Female & sex="a & b"'], "never true.*column 'sex'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_list_is_said(texts: list[str], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        parse_workload(texts, WITH_AGE)


NAMES = st.text(st.sampled_from('ab&"=!# <>é\t\x1f'), min_size=1, max_size=6)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_names_and_values_survive_printing_and_reading(data: st.DataObject) -> None:
    names = data.draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    columns: list[Binary | Categorical] = []
    for name in names:
        values = data.draw(st.lists(NAMES, min_size=2, max_size=3, unique=True))
        coded = Categorical(name, tuple((value,) for value in values))
        columns.append(Binary(name) if data.draw(st.booleans()) else coded)
    schema = TableSchema(tuple(columns), declared=True)
    workload = random_conjunctions(schema.domain, min(50, count_distinct(schema.domain, 2)), 2)
    printed = print_queries(workload.literals, schema)
    np.testing.assert_array_equal(parse_workload(printed, schema).literals, workload.literals)
    check_texts(printed.to_list(), names)  # nor are they refused before values are known


def test_however_long_a_list_s_texts_are_they_are_not_refused_before_values_are_known() -> None:
    check_texts(
        ["&".join(f"name {number}={each * 99}" for number in range(300)) for each in "xy"],
        [f"name {number}" for number in range(300)],
    )
    with pytest.raises(BadInputError, match="query 1: there is no column 'c'"):
        check_texts(["a=1", "c=1"], ["a"])
    with pytest.raises(BadInputError, match="query 1: 'a=1' is repeated"):
        check_texts(["a=1", "a=1"], ["a"])
