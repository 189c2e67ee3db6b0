"""``release --dry-run`` plans a release, reads no private row and spends nothing."""

from pathlib import Path

import polars as pl
import pytest

import dualquery as package
from dualquery.data.schema.schema_files import write_schema
from tests.tables import SCHEMA, people

UNITS = ["h.csv", "--schema", "s.json", "--unit", "home", "--max-rows-per-unit"]
WEIGHT = ["h.csv", "--schema", "s.json", "--weight", "w", "--max-weight", "3"]


@pytest.fixture
def table(here: Path) -> Path:
    write_schema(SCHEMA, here / "s.json")
    people().with_columns(home=1).write_csv("h.csv")
    people().write_parquet(here / "p.parquet")
    return here / "p.parquet"


def test_it_says_what_the_release_says(table: Path, dualquery) -> None:
    asked = ["p.parquet", "--schema", "s.json", "--queries", "50", "--way", "2", "--json"]
    planned = dualquery("release", *asked, "--dry-run").ok.json
    made = dualquery("release", *asked, "--out", "r").ok.json
    assert planned["mechanism"] == made["parameters"]["mechanism"]
    assert (planned["rows"], planned["queries"]) == (made["rows"], made["queries"]) == (300, 50)
    assert 0 < planned["epsilon"] == made["privacy"]["epsilon"]
    assert planned["delta"] == made["privacy"]["delta"]
    assert min(planned["seconds"], planned["expected"]["max_error"]["about"]) > 0
    game = ["dualquery", "-o", "rounds=2", "-o", "samples=1", "-o", "eta=1e-6"]  # costs nearly 0
    for mechanism, epsilon, delta in ((["zero"], 0.0, 0.0), (game, 1.0, planned["delta"])):
        told = dualquery("release", *asked, "--dry-run", "--mechanism", *mechanism).ok.json
        assert (told["epsilon"], told["delta"]) == (epsilon, delta)


def test_nothing_is_made_or_charged(table: Path, dualquery) -> None:
    before = sorted(table.parent.iterdir())
    told = dualquery("release", "p.parquet", "--schema", "s.json", "--dry-run").ok.out
    assert sorted(table.parent.iterdir()) == before
    assert "300 rows" in told
    assert "memory: about" in told
    assert "time: about" in told


@pytest.mark.parametrize(
    "counted",
    [
        [*UNITS, "2", "--rows", "250", "--delta", "1e-6"],
        [*UNITS, "2", "--rows", "250", "--delta", "1e-6", "--neighbours", "add-remove"],
        [*WEIGHT, "--rows", "900", "--delta", "1e-6", *UNITS[-3:], "2"],
    ],
)
def test_units_and_weights_are_planned_as_released(table, dualquery, counted: list[str]) -> None:
    people().with_columns(home=pl.int_range(300) % 150, w=pl.lit(3)).write_csv("h.csv")
    asked = [*counted, "--queries", "50", "--way", "2", "--mechanism", "gaussian", "--json"]
    planned = dualquery("release", *asked, "--dry-run").ok.json
    made = dualquery("release", *asked, "--out", "r").ok.json
    assert made["privacy"]["private"]
    assert planned["delta"] == made["privacy"]["delta"]
    assert planned["epsilon"] == pytest.approx(made["privacy"]["epsilon"])
    assert (planned["bits"], planned["queries"]) == (made["bits"], made["queries"])
    errors = package.evaluate("r", "h.csv")["rmse"]
    assert planned["expected"]["mean_error"]["about"] / 3 < errors
    assert errors < planned["expected"]["max_error"]["high"] * 3


def test_no_row_is_read(table: Path, dualquery) -> None:
    """A table of values that no release could read, of which the header alone is right."""
    people().write_csv("p.csv")
    Path("p.csv").write_text(Path("p.csv").read_text().splitlines()[0] + "\nnonsense,x,y,z,0\n")
    asked = ["release", "p.csv", "--schema", "s.json", "--dry-run", "--rows", "1000"]
    assert "1,000 rows" in dualquery(*asked).ok.out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["p.parquet"], "give --rows"),
        (["p.csv", "--schema", "s.json"], "give --rows"),
        (["--resume", "p.unfinished"], "leave --resume out"),
        (["p.parquet", "--schema", "s.json", "--neighbours", "add-remove", "--delta", "1e-6"],
         "the number of rows is private"),
        (["-", "--schema", "s.json"], "no standard input (-): name a file"),
        ([*UNITS, "5"], "the number of rows is private, and what is planned from it would tell"),
        ([*UNITS, "5", "--rows", "900"], "counts none: give --delta"),
        ([*UNITS, "1", "--rows", "900"], "counts none: give --delta"),
        ([*UNITS, "5", "--rows", "900", "--unit", "hous"], "hous"),
        (["p.parquet", "--schema", "s.json", "--mechanism", "laplace", "-o", "x=1"], "no option"),
    ],
)  # fmt: skip
def test_what_it_cannot_know_is_asked_for(table: Path, dualquery, asked, message) -> None:
    people().write_csv("p.csv")
    assert message in dualquery("release", *asked, "--dry-run").refusal


def test_items_that_options_declare_need_no_schema(here: Path, dualquery) -> None:
    Path("baskets.dat").write_text("nonsense\n")  # no row is read
    asked = ["release", "baskets.dat", "--rows", "500", "--way", "2", "--dry-run"]
    assert "500 rows of 10 bits" in dualquery(*asked, "--columns", "0-9").ok.out
    assert "name the items with --columns" in dualquery(*asked).refusal
