"""Questions as text: what is printed is read back, and what is wrong is named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.questions import syntax_tree
from dualquery.questions.parser import LONGEST, parse_question
from dualquery.questions.syntax_tree import And, Comparison, Flag, Not, Or, Question
from dualquery.runtime.errors import BadInputError

NAMES = st.one_of(
    st.sampled_from(
        ["age", "or", "given", "a & b", "not x", "x in y", "share", "mean", "#1", "17"]
    ),
    st.text(min_size=1, max_size=6),
)
VALUES = st.one_of(
    st.sampled_from([">50K", "<=50K", "", "=5", "(missing)", ") or x=1", "a, b", "1-2", "A and B"]),
    st.text(max_size=6) | st.just("A and!B"),
)
RELATIONS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
LITERALS = st.one_of(
    st.builds(Flag, NAMES),
    st.builds(Comparison, NAMES, RELATIONS, VALUES),
    st.builds(syntax_tree.Among, NAMES, st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    st.builds(syntax_tree.Between, NAMES, VALUES, VALUES),
)


def _joined(inner):
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(Not, inner), st.builds(And, several), st.builds(Or, several))


CONDITIONS = st.recursive(LITERALS, _joined, max_leaves=8)
GIVEN, LEVELS = st.none() | CONDITIONS, st.floats(0, 1, exclude_min=True, exclude_max=True)
QUESTIONS = st.one_of(
    st.builds(Question, st.sampled_from(["share", "count"]), st.none() | CONDITIONS, given=GIVEN),
    st.builds(Question, st.sampled_from(["mean", "sum"]), column=NAMES, given=GIVEN),
    st.builds(Question, st.just("quantile"), column=NAMES, level=LEVELS, given=GIVEN),
)


@given(QUESTIONS)
@settings(max_examples=400, deadline=None)
def test_what_is_printed_is_read_back(question: Question) -> None:
    assert parse_question(syntax_tree.print_question(question)) == question


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("income=>50K", Comparison("income", "=", ">50K")),
        ("age BETWEEN 18 AND 64", syntax_tree.Between("age", "18", "64")),
        ('edu in ((missing), "a, b")', syntax_tree.Among("edu", ("(missing)", "a, b"))),
        ("not age between 1 and 2", Not(syntax_tree.Between("age", "1", "2"))),
        ("a or b & c", Or((Flag("a"), And((Flag("b"), Flag("c")))))),
        ("(a or b) and c", And((Or((Flag("a"), Flag("b"))), Flag("c")))),
        ("!(a & !b)", Not(And((Flag("a"), Not(Flag("b")))))),
        ('"or"=1 or "given"', Or((Comparison("or", "=", "1"), Flag("given")))),
        ("marital status=Never married & a", And((
            Comparison("marital status", "=", "Never married"), Flag("a")))),
        ("country=Outlying-US(Guam) or a", Or((
            Comparison("country", "=", "Outlying-US(Guam)"), Flag("a")))),
    ],
)  # fmt: skip
def test_precedence(text: str, condition) -> None:
    assert parse_question(text) == Question("share", condition)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("count(*)", Question("count")),
        ("Count (a or b)", Question("count", Or((Flag("a"), Flag("b"))))),
        ("mean(income) given a & b", Question(
            "mean", column="income", given=And((Flag("a"), Flag("b"))))),
        ("median(x)", Question("quantile", column="x")),
        ("quantile(x, 0.25)", Question("quantile", column="x", level=0.25)),
        ("a given b", Question("share", Flag("a"), given=Flag("b"))),
    ],
)  # fmt: skip
def test_measures(text: str, question: Question) -> None:
    assert parse_question(text) == question


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the name of a column is missing"),
        ("a &", "the name of a column is missing"),
        ("(a", "closing parenthesis is missing"),
        ("a given b given c", "'given' stands once"),
        ("mean(x given a)", "'given' stands outside of all parentheses"),
        ("quantile(x, 1.5)", "the level of a quantile is '1.5'"),
        ("quantile(x, 0,5)", "0,5 has other signs than 1234.5"),
        ("variance(x)", r"no variance\(...\). What can be asked is share, count, mean"),
        ("quantille(x, 0.5)", "did you mean 'quantile'"),
        ('a=x"y"', "quotation marks stand around a whole name or value"),
        ("(" * 5000 + "a", "inside each other"),
        ("a" * (LONGEST + 1), "at most 20,000 are read"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        parse_question(text)
