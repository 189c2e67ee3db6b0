"""Learning a schema: sensitivities on all neighbours, the threshold's delta, what is published."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, norm

from dualquery.audit.repeated import bounds
from dualquery.budgets.budget_file import BudgetFile
from dualquery.data.drafts import shapes
from dualquery.data.drafts.drafting import LIKELY, shape_of
from dualquery.data.drafts.shapes import Months, Numbers, Shapes, TableCounts, Values
from dualquery.data.given_table import Unit
from dualquery.data.readers.formats import source_of
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import rho_for
from dualquery.privacy.composition import Composition, Cost, PrivacyFilter
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, ThresholdedCounts
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.make.schema_learning import schema_of_table
from dualquery.releases.make.schema_price import SchemaPrice
from dualquery.room import learning, ledger
from dualquery.room.journal import NO_JOURNAL
from dualquery.room.learning import SchemaRoom, shapes_sensitivity, threshold, values_sensitivity
from dualquery.rows.units import cut_to_units
from dualquery.runtime.errors import BadInputError

RO, AR = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
CELLS = ("", "7", "-0.5", "2020-01-31", "31.01.1999", "01067", "word", "N")
"""One or two of each kind of shape."""


def shapes_of(rows: tuple[tuple[str, ...], ...]) -> np.ndarray:
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    return TableCounts(source_of(frame), ("a", "b")).shapes.ravel()


@pytest.mark.parametrize("relation", [RO, AR], ids=["replace-one", "add-remove"])
def test_no_neighbour_moves_shapes_further_and_some_move_so_far(relation) -> None:
    rows = list(itertools.product(CELLS, CELLS))
    first = shapes_of((rows[0],))
    if relation is AR:
        moved = [float(np.linalg.norm(shapes_of((rows[0], row)) - first)) for row in rows]
    else:
        vectors = [shapes_of((row,)) for row in rows]
        moved = [float(np.linalg.norm(x - y)) for x, y in itertools.combinations(vectors, 2)]
    assert max(moved) == pytest.approx(shapes_sensitivity(2, relation))


def test_every_cell_has_one_kind_and_one_size() -> None:
    for cell in (*CELLS, "1e400", "nan", "é\n", "99999999999999999999", "31.02.2020", "-", " 3 "):
        assert shapes_of(((cell, cell),)).reshape(2, -1).sum(axis=1).tolist() == [2, 2]


@pytest.mark.parametrize("how", [Values(), Numbers(60, 80, whole=False), Months(None, 1990, 40)])
def test_a_row_is_counted_once_in_each_column(how) -> None:
    room = SchemaRoom(source_of(pl.DataFrame({"a": CELLS})), ("a",), ("a",), RO)
    (counts,) = room._counts.values([("a", how)])
    total = counts["rows"].sum() if isinstance(counts, pl.DataFrame) else counts.sum()
    assert total <= len(CELLS)
    assert values_sensitivity(1, RO) == math.sqrt(2)
    assert values_sensitivity(4, AR) == 2.0


def test_a_unit_moves_as_much_as_all_its_rows() -> None:
    unit = Neighbours.parse("add-remove", Unit("home", 3))
    assert shapes_sensitivity(5, unit) == 3 * shapes_sensitivity(5, AR)
    frame = pl.DataFrame({"home": ["x"] * 9 + ["y"], "a": ["v"] * 10})
    room = SchemaRoom(cut_to_units(source_of(frame), Unit("home", 3)), ("a",), ("a",), unit)
    (counts,) = room._counts.values([("a", Values())])
    assert counts["rows"].to_list() == [4]


def published(room: SchemaRoom, scale: float, delta: float, seed: int) -> list[str]:
    room.open((ThresholdedCounts(values_sensitivity(1, RO), scale, delta),), seed, NO_JOURNAL, 1.0)
    (found,) = room.values([("a", Values())], scale, delta)
    return [*found]


WORST = ["word"] * 17, ["word"] * 16 + ["7"]
"""One table has a text of its own, of another kind and length, and fewer rows of another text."""


def schemas(table: list[str], price: SchemaPrice, seeds: range) -> np.ndarray:
    """Learn schemas of one column: noisy shapes along their difference, and which texts it has."""
    tables = (source_of(pl.DataFrame({"a": each})) for each in WORST)
    towards = np.subtract(*(TableCounts(each, ("a",)).shapes.ravel() for each in tables))
    room = SchemaRoom(source_of(pl.DataFrame({"a": table})), ("a",), ("a",), RO)
    found = np.empty((len(seeds), 3))
    for number, seed in enumerate(seeds):
        room.open(price.events, seed, NO_JOURNAL, 1.0)
        shapes = room.shapes(price.shapes.scale, -math.inf).ravel()  # all are drawn
        (texts,) = room.values([("a", Values())], price.listing.scale, price.delta)
        found[number] = shapes @ towards, "word" in texts, "7" in texts
    return found


@pytest.mark.slow
def test_the_worst_pair_shows_no_more_than_is_stated() -> None:
    """100,000 runs at (1, 1e-3): the empirical lower bound on epsilon at 95% stays below 1."""
    price, runs = SchemaPrice.whole(1.0, 1e-3, RO, (1, 1)), 50_000
    assert round(price.fewest) == 17  # a text of 17 rows is at the threshold
    one, other = (schemas(WORST[k], price, range(k * runs, (k + 1) * runs)) for k in (0, 1))
    low = max(bounds(one, other, 1e-3, error=0.05 / 4))
    print(f"{2 * runs:,} runs: epsilon at least {low:.3f}; '7' came {other[:, 2].sum():.0f} times")
    assert 0.3 < low < 1.0
    assert one[:, 2].sum() == 0


HOMES = Neighbours.parse("replace-one", Unit("home", 3))
FLAGS = {f"f{gaps}": [""] * gaps + ["0"] * 4000 + ["1"] * (6000 - gaps) for gaps in range(90)}
OTHERS = {cell: [cell] * 1000 + ["0", "1"] * 4500 for cell in CELLS[1:]}


def counted(relation: Neighbours, likely: float) -> tuple[np.ndarray, float]:
    """Return noisy shapes of flags and of others behind them, and their standard deviation."""
    frame = pl.DataFrame(FLAGS | OTHERS)
    room = SchemaRoom(source_of(frame), (*frame.columns,), (*frame.columns,), relation)
    price = SchemaPrice.whole(3.0, 1e-6, relation, (frame.width, frame.width))
    room.open(price.events, 2, NO_JOURNAL, 1.0)
    return room.shapes(price.shapes.scale, likely * price.shapes.scale), price.shapes.scale


def test_of_flags_few_shapes_are_drawn_and_their_types_are_the_same() -> None:
    """Noise is never exactly 0. What is drawn follows from the result and the number of rows."""
    (noisy, sd), (whole, _) = counted(RO, LIKELY), counted(RO, -math.inf)
    drawn = np.count_nonzero(noisy, axis=1)
    assert np.count_nonzero(whole) == whole.size == Shapes.cells * len(noisy)
    first = Shapes().places(pl.Series(["", "0", "1", "2"]))
    known = np.min([noisy[:, np.unique(own)].sum(axis=1) for own in first], axis=0)
    assert drawn.tolist() == np.where(10_000 - known > LIKELY * sd, Shapes.cells, 6).tolist()
    assert drawn[len(FLAGS) :].tolist() == [Shapes.cells] * len(OTHERS)
    assert drawn[: len(FLAGS)].mean() < 0.2 * Shapes.cells
    for name, lazy, every in zip((*FLAGS, *OTHERS), noisy, whole, strict=True):
        assert shape_of(name, lazy, sd) == shape_of(name, every, sd)


def test_dates_are_learned_with_the_decades_at_both_ends() -> None:
    counts, first = np.zeros(Shapes.cells), shapes.KINDS + shapes.FIRST_DECADE + 8
    counts[shapes.FIRST_DATE] = 9_000
    counts[first : first + 8] = [400, *[1_300] * 6, 400]  # four deviations, and 13
    assert shape_of("born", counts, 100.0).how.years == 80


def test_noisy_dates_count_for_the_likelier_of_two_formats() -> None:
    counts, first = np.zeros(Shapes.cells), shapes.FIRST_DATE + shapes.FORMATS.index("%d/%m/%Y")
    for *kinds, begin in (  # days to 12, and others of %d/%m and of %m/%d
        *((300, 300, 0, None), (300, 0, 310, None), (0, 500, 0, "%d"), (500, 0, 0, "%d")),
        *((400, 0, 400, "%m"), (9_000, 0, 400, "%m"), (9_000, 0, 290, "%d"), (900, 900, 400, "%d")),
    ):
        counts[first : first + 3], counts[shapes.KINDS + shapes.FIRST_DECADE + 13] = kinds, 9_999
        how = shape_of("born", counts, 100.0).how
        assert (how and how.pattern[:2]) == begin


@pytest.mark.parametrize("relation", [AR, HOMES], ids=["add-remove", "units"])
def test_where_the_number_of_rows_is_private_all_shapes_are_drawn(relation) -> None:
    assert np.all(counted(relation, LIKELY)[0] != 0)


def test_a_text_is_published_as_often_as_gaussian_noise_lifts_it() -> None:
    """`y` lies at the threshold and is published half of the time; `x` always is."""
    tau = threshold(3.0, 1, RO, 1e-6)
    cells = ["x"] * 500 + ["y"] * round(tau)
    room = SchemaRoom(source_of(pl.DataFrame({"a": cells})), ("a",), ("a",), RO)
    found = [published(room, 3.0, 1e-6, seed) for seed in range(300)]
    assert all("x" in each for each in found)
    chance = norm.sf(tau - round(tau), scale=3.0)
    assert binomtest(sum("y" in each for each in found), 300, chance).pvalue > 1e-4


def test_items_at_the_threshold_are_published_half_of_the_time() -> None:
    event = ThresholdedCounts(values_sensitivity(300, RO), 3.0, 1e-6)
    rows = round(tau := threshold(3.0, 300, RO, 1e-6))
    room = learning.ItemRoom(source_of(np.ones((rows, 300), np.uint8)), 300, RO)
    (found, _) = room.items(event, 1, NO_JOURNAL, 1.0)
    assert binomtest(len(found), 300, norm.sf(tau - rows, scale=3.0)).pvalue > 1e-4


def test_of_a_table_in_which_every_cell_differs_nothing_is_published(caplog) -> None:
    frame = pl.DataFrame({"a": [f"v{i}" for i in range(50_000)], "b": [*range(50_000)]})
    frame = frame.with_columns(c=frame["b"] + 2**60)
    assert schema_of_table(frame, 1.0, 1e-6, seed=3).schema.column_names == ("b",)
    amounts = np.random.default_rng(0).lognormal(7.0, 2.5, 50_000).round(2)
    frame = frame.with_columns(d=amounts * (np.arange(50_000) % 5 == 0))  # lost but for 0
    assert schema_of_table(frame, 0.05, 1e-6, seed=3).schema.column_names == ("b",)
    for name in "cd":
        assert f"'{name}' is left out: its range is beyond drafts or lost" in caplog.text


def test_a_budget_without_use_is_refused_before_it_is_spent() -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 50})
    with pytest.raises(BadInputError, match="100 rows"):
        schema_of_table(frame, 0.5)
    with pytest.raises(BadInputError, match="--delta"):
        schema_of_table(frame, 0.5, neighbours=AR)
    with pytest.raises(BadInputError, match="delta above 0"):
        schema_of_table(frame, 0.5, 0.0)


@pytest.mark.parametrize("name", ["zcdp", "exact"])
def test_accountants_take_the_thresholds_delta_off(name) -> None:
    noise, cut = GaussianNoise(1.0, 3.0), ThresholdedCounts(1.0, 3.0, 1e-4)
    for schedule, left in (((cut, noise), 9e-4), ((cut, cut), 8e-4)):
        known = best((noise, noise), left, name)[1]
        assert best(schedule, 1e-3, name)[1] == pytest.approx(known, rel=1e-9)
    accountant, epsilon = best((cut,), 1e-3, name)
    assert accountant.delta((cut,), epsilon) <= 1e-3 * (1 + 1e-5)
    assert not ledger.covers(cut, ThresholdedCounts(1.0, 3.0, 1e-3))
    for schedule in ((cut,), (cut, LaplaceNoise(0.1))):
        with pytest.raises(BadInputError, match="No valid accounting"):
            best(schedule, 1e-4, name)


def test_the_price_of_a_schema_is_its_budget() -> None:
    price = SchemaPrice.whole(1.0, 1e-6, RO, (12, 12))
    assert 0.999 < best(price.events, 1e-6)[1] <= 1.0
    part = SchemaPrice.part(1.0, 1e-6, 0.1, RO, (12, 12))
    assert part.delta == pytest.approx(1e-7)
    assert part.fewest > price.fewest


def test_a_budget_file_takes_the_thresholds_delta_off(tmp_path) -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 2_500, "b": [1, 2] * 2_500})
    for composition, epsilon in (("zcdp", 1.1), ("sum", 1.0), ("sum", 2.0)):
        path, left = tmp_path / f"{composition}{epsilon}.budget", epsilon == 2.0
        BudgetFile.create(path, epsilon=epsilon, delta=1e-5 * (1 + left), composition=composition)
        schema_of_table(frame, 1.0, 1e-5, budget=path)
        (charged,) = BudgetFile(path).read().releases.values()
        assert charged.cost.threshold == pytest.approx(5e-6)
        if left:
            schema_of_table(frame, 1.0, 1e-5, budget=path)
            continue
        with pytest.raises(BadInputError, match="no room"):
            schema_of_table(frame, 0.1, 1e-5, budget=path)


def test_two_thresholds_leave_less_delta_to_rho() -> None:
    allowed = PrivacyFilter(1.0, 1e-6, Composition.ZCDP)
    rho = rho_for(1.0, 4e-7) / 2
    assert allowed.allows([Cost(rho, 1.0, 1e-6, 3e-7)] * 2)
    assert not allowed.allows([Cost(rho, 1.0, 1e-6, 3.1e-7)] * 2)
    assert not allowed.allows([Cost(0.0, 1.0, 1e-6, 6e-7)] * 2)
