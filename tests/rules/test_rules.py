"""Rules against the evaluation of every record: reading, constraints, repair, forced answers."""

import itertools

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from dualquery.data import Binary, Categorical, Dates, Numeric, TableSchema
from dualquery.data.domain import axis_sizes, column_values, rows_of_values
from dualquery.data.schema.rules import Follows
from dualquery.data.schema.schema_files import schema_from_dict
from dualquery.mechanisms.protocol import Task
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.rows.engines import load
from dualquery.rules.constraints import constraints_of, solved_record
from dualquery.rules.forbidden import Forbidden
from dualquery.rules.legal import forced_answers, legal_classes, nearest_classes, no_record_in
from dualquery.rules.reading import rules_of
from dualquery.rules.repair import repaired
from dualquery.runtime.errors import BadInputError
from solvers import BestResponse

COLUMNS = (
    Numeric("age", (0, 15, 30, 60, 100), integer=True, missing="category"),
    Categorical("marital", (("never",), ("married",), ("other",))),
    Binary("flag"),
    Numeric("start", (0, 10, 20, 30)),
    Numeric("end", (0, 10, 25)),
)
RULES = (
    "age < 15 => marital = never",
    "not (flag & marital = other)",
    "start <= end",
    "age >= 60 or start < 20",
    "flag => age in (15-30, 30-60)",
)


def schema(*rules: str, columns: tuple = COLUMNS) -> TableSchema:
    return TableSchema(columns, declared=True, rules=rules)


def every_record(made: TableSchema) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    values = np.array(list(itertools.product(*map(range, axis_sizes(made.domain)))))
    return values, rows_of_values(values, made.domain)


def random_rules(made: TableSchema, generator: np.random.Generator) -> Forbidden:
    """Return forbidden boxes that leave some record legal."""
    sizes = axis_sizes(made.domain)
    while True:
        boxes = []
        for _ in range(generator.integers(1, 9)):
            named = generator.choice(len(sizes), generator.integers(1, 4), replace=False)
            boxes.append({int(c): int(generator.integers(1, 2 ** sizes[c])) for c in sorted(named)})
        buckets = np.array([getattr(column, "buckets", 0) for column in made.columns])
        texts = tuple(f"rule {box}" for box in boxes)
        rules = Forbidden(made.domain, texts, tuple(boxes), tuple(range(len(boxes))), buckets)
        if legal_classes(rules) is not None:
            return rules


def test_a_rule_forbids_what_it_says() -> None:
    values, records = every_record(schema())
    age, marital, flag, start, end = values.T
    expected = {
        RULES[0]: (age == 0) & (marital != 0),
        RULES[1]: (flag == 1) & (marital == 2),
        RULES[2]: start > end,  # 20-30 and 10-25 have numbers in order
        RULES[3]: (age != 3) & (start == 2),  # a missing age is not >= 60
        RULES[4]: (flag == 1) & (age != 1) & (age != 2),
    }
    expected[RULES[2]] &= ~((start == 2) & (end == 1))
    for rule, broken in expected.items():
        assert np.array_equal(rules_of(schema(rule)).broken(records) >= 0, broken), rule
    every = rules_of(schema(*RULES))
    assert np.array_equal(every.broken(records) >= 0, np.any(list(expected.values()), axis=0))


@pytest.mark.parametrize("seed", range(8))
def test_random_rules_agree_with_every_record(seed: int, monkeypatch) -> None:
    """Evaluation, linear constraints and forced answers, over all records of a schema."""
    values, records = every_record(schema())
    rules = random_rules(schema(), np.random.default_rng(seed))
    inside = [[all(box[c] >> row[c] & 1 for c in box) for row in values] for box in rules.boxes]
    broken = np.any(inside, axis=0)
    assert np.array_equal(rules.broken(records) >= 0, broken)
    nothing = np.zeros((0, 1), np.int32), np.zeros(0)
    problem = BestResponse(rules.domain.bits, *nothing, constraints=constraints_of(rules))
    assert np.array_equal([not problem.feasible(record) for record in records], broken)
    workload = random_conjunctions(rules.domain, 200, 3, seed=seed)
    truth = workload.answers_on(records[~broken])
    forced = np.where(truth == 0, 0.0, np.where(truth == 1, 1.0, np.nan))
    assert np.array_equal(forced_answers(rules, workload.literals), forced, equal_nan=True)
    shorter = Task.without_implied(workload, rules)
    assert np.array_equal(shorter.answers_on(records[~broken]), truth)
    assert (shorter.literals >= 0).sum() < (workload.literals >= 0).sum()
    monkeypatch.setattr("dualquery.rules.legal._BUDGET", 1)
    assert not no_record_in(rules, [{}])  # undecided is not impossible


def distances(
    record: NDArray[np.int64], legal: NDArray[np.int64], rules: Forbidden
) -> NDArray[np.float64]:
    """Return the changed columns, and the part of their buckets as decimals behind them."""
    moved = np.zeros(len(legal))
    for column in range(len(record)):
        buckets = int(rules.buckets[column])
        one, others = record[column], legal[:, column]
        ordered = (one < buckets) & (others < buckets) & (buckets > 1)
        share = np.abs(one - others) / max(buckets - 1, 1)
        moved += np.where(one == others, 0.0, 1000 + np.where(ordered, share, 1.0))
    return moved


@pytest.mark.parametrize("seed", range(8))
def test_a_record_alone_becomes_a_nearest_legal_one(seed: int) -> None:
    """It has no other to exchange values with."""
    values, records = every_record(schema())
    generator = np.random.default_rng(100 + seed)
    rules = random_rules(schema(), generator)
    legal = values[rules.broken(records) < 0]
    for at in generator.choice(len(records), size=60, replace=False):
        found = repaired(records[at : at + 1], rules, np.random.default_rng(0))
        assert (rules.broken(found) < 0).all()
        nearest = distances(values[at], legal, rules).min()
        after = column_values(found, rules.domain)
        assert distances(values[at], after, rules)[0] == pytest.approx(nearest)


@pytest.mark.parametrize("seed", range(4))
def test_records_exchange_values_and_come_nearer_to_a_legal_table(seed: int) -> None:
    """A legal table loses its rules where each column is shuffled; exchanges bring them back."""
    generator = np.random.default_rng(seed)
    values, records = every_record(schema())
    rules = rules_of(schema(*RULES))
    legal = np.flatnonzero(rules.broken(records) < 0)
    weights = generator.dirichlet(np.full(len(legal), 0.3))
    table = values[generator.choice(legal, size=3_000, p=weights)]
    columns = np.column_stack([generator.permutation(column) for column in table.T])
    shuffled = rows_of_values(columns, rules.domain)
    found = repaired(shuffled, rules, generator)
    assert (rules.broken(shuffled) >= 0).mean() > 0.2
    assert (rules.broken(found) < 0).all()
    assert np.abs(found.mean(axis=0) - shuffled.mean(axis=0)).max() < 0.01
    asked = random_conjunctions(rules.domain, 300, 3, seed=seed)
    truth = asked.answers_on(rows_of_values(table, rules.domain))
    before, after = (np.abs(asked.answers_on(r) - truth).mean() for r in (shuffled, found))
    assert after < before


def test_shares_come_back_where_exchanges_are_stuck() -> None:
    rules = rules_of(schema("A => B", "B => C", "D => not C", columns=tuple(map(Binary, "ABCD"))))
    drawn = np.random.default_rng(0).random((5_000, 4)) < (0.3, 0.4, 0.5, 0.5)
    found = repaired(drawn.astype(np.uint8), rules, np.random.default_rng(1))
    assert (rules.broken(found) < 0).all()
    # By nearest records alone it was 0.03.
    assert np.abs(found.mean(axis=0) - drawn.mean(axis=0)).max() < 0.015


def test_what_nobody_asked_about_gives_way() -> None:
    rules = rules_of(schema("A => B & C", "B or C => A", columns=tuple(map(Binary, "ABC"))))
    drawn = (np.random.default_rng(0).random((5_000, 3)) < (0.7, 0.2, 0)).astype(np.uint8)
    found = repaired(drawn, rules, np.random.default_rng(1), np.array([False, True, True]))
    assert (found == drawn[:, :1]).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_solver_finds_a_nearest_record_too(seed: int) -> None:
    """What a search leaves open, a solver decides: here both do."""
    generator = np.random.default_rng(seed)
    values, records = every_record(schema())
    rules = random_rules(schema(), generator)
    classes = rules.classes(records)
    legal = classes[rules.broken(records) < 0]
    for at in generator.integers(len(values), size=5):
        found = solved_record(rules, classes[at])
        assert found is not None
        fewest = (legal != classes[at]).sum(axis=1).min()
        assert (found != classes[at]).sum() == fewest
        near = nearest_classes(rules, classes[at], legal, 1 << 40)  # no search, nor a solver
        assert ((near != classes[at]).sum(axis=1) == fewest).all()
        assert (nearest_classes(rules, classes[at], legal[:0], 1 << 40) == legal).all(axis=1).any()


@pytest.mark.parametrize(("region", "written"), [("region",) * 2, ('"region"', '"""region"""')])
def test_a_mapping_forbids_all_other_values(region: str, written: str) -> None:
    columns = (
        Categorical("district", (("d1",), ("d2",), ("d3",), ("d4",)), missing="category"),
        Categorical(region, (("north",), ("south",), ("west",))),
    )
    mapping = {"d1": "north", "d2": "south", "d3": "north"}
    made = schema_from_dict(
        {
            "columns": [column.to_dict() for column in columns],
            "rules": [{"rule": f"{written} follows from district", "mapping": mapping}],
        }
    )
    values, records = every_record(made)
    allowed = {0: [0], 1: [1], 2: [0], 3: [0, 1, 2], 4: [0, 1, 2]}
    legal = [own in allowed[district] for district, own in values.tolist()]
    assert np.array_equal(rules_of(made).broken(records) < 0, legal)
    assert schema_from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (("agee < 15 => flag",), "did you mean 'age'"),
        (("age < 18 => flag",), "age is cut within 15-30: a rule is about whole buckets"),
        (("age < 15 => flag => start < 10",), "more than one =>"),
        (("age=18 => flag",), "one bucket, 15-30, for 18 and other numbers; write age=15-30"),
        (("flag & not flag",), "contradicts itself"),
        (("marital = never", "flag => marital = other", "flag"), "no record keeps all of these"),
        (("age < 15 => marital=never | marital=other",), "write 'or'"),
        (("marital <= end",), "'marital' stands in an order, but holds texts"),
        (("start < end", "end < start"), "go in a circle"),
        (("region follows from district",), "which value follows from which"),
        (("flag given age < 15",), "is no condition of rows"),
        ((f"{' ' * 20_000}follows{' ' * 20_000}a",), "at most 20,000 are read"),
        ("flag", "rules is 'flag'; it is a list"),
    ],
)
def test_a_bad_rule_is_explained(rules: object, message: str) -> None:
    fields = {"columns": [column.to_dict() for column in COLUMNS], "rules": rules}
    fields["rules"] = list(rules) if isinstance(rules, tuple) else rules
    with pytest.raises(BadInputError, match=message):
        rules_of(schema_from_dict(fields))


@pytest.mark.parametrize("rule", ["a <= b", "b < c", "a <= 12 => b = 0-3"])
def test_a_rule_that_clipped_numbers_may_break_is_refused(rule: str) -> None:
    edges = {"a": (0, 3, 6, 8, 12), "b": (0, 3, 6), "c": (0, 1, 2)}
    columns = tuple(Numeric(name, each, outside="clip") for name, each in edges.items())
    with pytest.raises(BadInputError, match=r"outermost buckets|leave an outer end open"):
        rules_of(schema(rule, columns=columns))


def test_values_of_records_keep_the_orders() -> None:
    columns = (
        Numeric("a", (0, 10, 20, 30), within=("uniform", (12.0, 18.0), "uniform")),
        Numeric("b", (0, 10, 20, 30)),
        Numeric("c", (0, 10, 20, 30), within="uniform"),
        Dates("from", "month", "2014-01-01", "2014-06-30"),
        Dates("to", "month", "2014-03-01", "2014-08-31", missing="category"),
    )
    made = schema("a <= b", "b <= c", "to > from", columns=columns)
    _, records = every_record(made)
    legal = records[rules_of(made).broken(records) < 0]
    rows = made.decode(np.repeat(legal, 3, axis=0), np.random.default_rng(5))
    assert (rows["a"] <= rows["b"]).all()
    assert (rows["b"] <= rows["c"]).all()
    assert (rows["from"] < rows["to"]).drop_nulls().all()
    assert (rows["from"].dt.month() == rows["to"].dt.month()).any()  # its days can be in order
    # All of a, b, c that numbers in order can have: a bucket of c is never before one of a.
    kept = {(a, b, c) for a, b, c in column_values(legal, made.domain)[:, :3].tolist()}
    assert kept == {(a, b, c) for a in range(3) for b in range(a, 3) for c in range(b, 3)}
    narrow = (Numeric("a", (0, 10, 20), decimals=1), Numeric("b", (0, 10.1, 20), decimals=1))
    rows = schema("a <= b", columns=narrow).decode(np.tile(np.uint8([0, 1, 1, 0]), (9, 1)))
    assert {*rows.rows()} == {(10.0, 10.0)}
    narrow = (Numeric("a", (0, 7, 7.02, 9), decimals=2), Numeric("b", (0, 7, 7.02, 9), decimals=2))
    record = np.tile(np.uint8([0, 1, 0, 0, 1, 0]), (3_000, 1))
    assert {*schema("a < b", columns=narrow).decode(record).rows()} == {(7.0, 7.01)}
    # Where the decimals leave none, an order matters more than they do.
    narrow = (Numeric("a", (0, 7, 7.01, 9), decimals=2), Numeric("b", (0, 7, 7.01, 9), decimals=2))
    rows = schema("a < b", columns=narrow).decode(record)
    assert (rows["a"] < rows["b"]).all()


DAYS = Dates("day", "quarter", "2014-01-31", "2014-12-31")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("day >= 2014-02-15 => flag", "by quarter for 2014-02-15 and other dates"),
        ("day = 2014-02 => flag", "by quarter for 2014-02 and"),
        ("day between 2014 and 2014-05 => flag", "by quarter for 2014-05 and"),
        (Follows("flag", "age", (("18", "1"),)), "one bucket, 15-30, for 18 and other numbers"),
        ("kids <= end", "merges '2'"),
    ],
)
def test_what_stands_for_others_too_is_refused(rule, message: str) -> None:
    columns = (*COLUMNS, DAYS, Categorical("kids", (("0",), ("1", "2"))))
    with pytest.raises(BadInputError, match=message):
        rules_of(schema(rule, columns=columns))


@pytest.mark.parametrize("day", ["day >= 2014-Q2", "day < 2014-07-01", "day <= 2014-06-30"])
def test_dates_at_the_ends_of_buckets_are_taken(day: str) -> None:
    assert rules_of(schema(f"{day} or day = 2014 => flag", columns=(*COLUMNS, DAYS))).boxes


def test_a_chain_says_nothing_where_its_middle_has_no_number() -> None:
    edges = (0, 1, 2, 3)
    middle = Numeric("b", edges, missing="category")
    made = schema("a <= b", "b <= c", columns=(Numeric("a", edges), middle, Numeric("c", edges)))
    (a, b, c), records = every_record(made)[0].T, every_record(made)[1]
    assert np.array_equal(rules_of(made).broken(records) < 0, (b == 3) | ((a <= b) & (b <= c)))
    # What a record then has keeps the orders of those before the middle, too.
    whole = [(0, 10, 20), (0, 12, 30), (0, 10, 30), (0, 10, 30)]
    kinds = zip("wxyz", whole, ["error", "error", "category", "error"], strict=True)
    columns = tuple(Numeric(name, ends, integer=True, missing=kind) for name, ends, kind in kinds)
    made = schema("w <= x", "x <= y", "y <= z", columns=columns)
    record = np.array([[0, 1, 1, 0, 0, 0, 1, 1, 0]], np.uint8)
    rows = made.decode(np.repeat(record, 200, axis=0), np.random.default_rng(1))
    assert (rows["w"] <= rows["x"]).all()


def test_rows_may_hold_what_records_do_not() -> None:
    """Numbers that ``within`` does not list, and days before the first one."""
    columns = (
        Numeric("a", (0, 10, 20), within=("uniform", (12.0, 18.0))),
        Numeric("b", (0, 10, 11.5, 20)),
        Dates("from", "month", "2014-01-31", "2014-06-30"),
        Dates("to", "month", "2014-01-01", "2014-06-30"),
    )
    made, days = schema("a <= b", "from < to", columns=columns), ["2014-01-05", "2014-01-20"]
    held = {"a": [11.0], "b": [11.2], "from": days[:1], "to": days[1:]}
    record = load(pl.DataFrame(held), made).records.dense_rows(0, 1)
    assert rules_of(made).broken(record).tolist() == [-1]
    rows = made.decode(np.repeat(record, 9, axis=0), np.random.default_rng(1))
    assert (rows["a"] <= rows["b"]).all()
    assert (rows["from"] < rows["to"]).all()
