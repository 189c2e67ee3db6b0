"""Releases that pay: before they draw, all that they draw, and not at all if they are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import dualquery
from dualquery import BadInputError, BudgetFile
from dualquery.privacy.guarantee import PrivacyStatement
from dualquery.releases.make import making
from dualquery.releases.make.payment import ADD_UP
from dualquery.room import row_count
from dualquery.room.randomness import SystemRandomness
from tests.tables import SCHEMA, people


def release(**options: Any) -> dualquery.Release:
    asked = {
        "schema": SCHEMA, "queries": 20, "way": 2, "mechanism": "gaussian", "epsilon": 0.4,
        "delta": 1e-8,
    }  # fmt: skip
    return dualquery.release(people(2000), **{**asked, **options})


@pytest.fixture
def file(tmp_path: Path) -> BudgetFile:
    return BudgetFile.create(tmp_path / "b.budget", epsilon=1.0, delta=1e-6)


def watched(monkeypatch: pytest.MonkeyPatch, look: Callable[[], None]) -> None:
    """Call ``look`` whenever a release gets private randomness."""
    for module in (making, row_count):
        source = module.randomness

        def noted(seed: int | None, source: Any = source) -> Any:
            look()
            return source(seed)

        monkeypatch.setattr(module, "randomness", noted)


@pytest.mark.parametrize(
    ("mechanism", "options", "delta"),
    [
        ("gaussian", {}, 1e-8),
        ("mwem", {"iterations": 3}, 0.0),
        ("dualquery", {"rounds": 5, "samples": 5}, 1e-8),
        ("randomized-response", {}, 0.0),
    ],
)
def test_charged_before_it_draws(file: BudgetFile, monkeypatch, mechanism, options, delta) -> None:
    seen: list[float] = []
    watched(monkeypatch, lambda: seen.append(file.read().spent[0]))
    made = release(budget=file, mechanism=mechanism, options=options, delta=delta)
    assert seen
    assert set(seen) == {0.4}
    (charged,) = file.read().releases.values()
    assert charged.finished
    assert charged.mechanism == mechanism
    assert (charged.cost.epsilon, charged.cost.delta) == (made.privacy.epsilon, made.privacy.delta)
    assert made.options["budget_file"] == {"charged": True, "release": charged.id}
    assert f"as release {charged.id}" in made.privacy.guarantee()


def test_a_bought_number_of_rows_is_charged_first(file: BudgetFile, monkeypatch) -> None:
    file = BudgetFile.create(
        Path(file.path).with_name("added"), epsilon=1.0, delta=1e-6, neighbours="add-remove"
    )
    seen: list[float] = []
    watched(monkeypatch, lambda: seen.append(file.read().spent[0]))
    release(budget=file, neighbours="add-remove", epsilon=0.8)
    assert seen == pytest.approx([0.04 * 0.8, 0.8])
    refused = len(seen)
    with pytest.raises(BadInputError, match=r"has no room for a release of epsilon 0\.3"):
        release(budget=file, neighbours="add-remove", epsilon=0.3)
    assert len(seen) == refused  # not even the number of rows was drawn
    assert len(file.read().releases) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mechanism": "randomized-response", "delta": 0.0}, "protects replaced records only"),
        ({"mechanism": "gaussian", "queries": ["age>=25", "colour=red"]}, "no column 'colour'"),
        ({"mechanism": "mwem", "query_items": "top:2", "queries": None},
         "cannot find frequent items"),
        ({"epsilon": 1.0, "delta": 1e-6}, "no room for a release of epsilon 1 and"),
        ({"epsilon": 0.955, "delta": 1e-6, "schema": None}, r"no room for .* epsilon 0\.9"),
    ],
)  # fmt: skip
def test_what_public_facts_refuse_is_refused_before_rows_are_bought(
    tmp_path: Path, monkeypatch, options, said
) -> None:
    watched(monkeypatch, lambda: pytest.fail("it drew"))
    terms = {"neighbours": "add-remove", "composition": "zcdp"}
    file = BudgetFile.create(tmp_path / "b", epsilon=1.0, delta=1e-6, **terms)
    with pytest.raises(BadInputError, match=said) as told:
        release(budget=file, neighbours="add-remove", **options)
    assert "has been drawn by now" not in str(told.value)
    assert not file.read().entries


def test_what_draws_is_loaded_and_tried_before_it_is_paid(file: BudgetFile, monkeypatch) -> None:
    """A process that dies while OpenDP is imported has paid for nothing."""
    steps: list[str] = []
    noise, write = SystemRandomness.discrete_gaussian, BudgetFile.write
    monkeypatch.setattr(
        SystemRandomness, "discrete_gaussian",
        lambda *given: [steps.append("noise"), noise(*given)][1],
    )  # fmt: skip
    monkeypatch.setattr(BudgetFile, "write", lambda *given: [steps.append("pay"), write(*given)][1])
    release(budget=file)
    assert steps == ["noise", "pay", "noise", "pay"]


def test_a_number_of_rows_too_small_to_go_by_is_spent(tmp_path: Path, monkeypatch) -> None:
    source = row_count.randomness
    monkeypatch.setattr(row_count, "randomness", lambda seed: source(4))
    file = BudgetFile.create(tmp_path / "b", epsilon=1.0, delta=1e-6, neighbours="add-remove")
    with pytest.raises(BadInputError, match="too few to go by"):
        release(budget=file, neighbours="add-remove", epsilon=0.001)
    assert file.read().spent == pytest.approx((0.04 * 0.001, 0.0))


def test_what_is_refused_draws_nothing(file: BudgetFile, monkeypatch) -> None:
    watched(monkeypatch, lambda: pytest.fail("it drew"))
    for options, message in (
        ({"epsilon": 1.5}, "has no room"),
        ({"seed": 1}, "it has a seed"),
        ({"schema": None, "schema_from_data": True}, "its schema is not declared"),
        ({"neighbours": "add-remove"}, "this release has add-remove"),
        ({"unit": dualquery.Unit("home", 1)}, "this release"),
        ({"budget": Path(file.path).with_name("none")}, "does not exist"),
        ({"budget": 7}, "of type int"),
    ):
        with pytest.raises(BadInputError, match=message):
            release(**{"budget": file, **options})
    assert not file.read().entries


def test_a_release_that_fails_has_spent_its_charge(file: BudgetFile, monkeypatch) -> None:
    fail = Mock(side_effect=RuntimeError("the power went"))
    monkeypatch.setattr(making.Curator, "evaluate", fail)
    with pytest.raises(RuntimeError):
        release(budget=file)
    (charged,) = file.read().releases.values()
    assert not charged.finished
    assert file.read().spent == (0.4, 1e-8)


def test_what_is_paid_is_given_out_though_not_noted(file, monkeypatch, caplog) -> None:
    fail = Mock(side_effect=BadInputError("another process has held it"))
    monkeypatch.setattr("dualquery.budgets.charge.Charge.finish", fail)
    assert release(budget=file).privacy.epsilon == 0.4
    assert "another process has held it" in caplog.text


def test_without_a_file_a_release_says_that_guarantees_add_up() -> None:
    made = release()
    assert made.options["budget_file"] == {"charged": False}
    assert made.privacy.guarantee().endswith(ADD_UP)
    assert PrivacyStatement.from_dict(made.privacy.to_dict()) == made.privacy
    assert ADD_UP not in release(seed=1).privacy.text()


@pytest.mark.parametrize("name", ["mwem", "auto", "mwem-sampled"])
def test_records_beyond_the_memory_are_refused_before_any_draw(name: str, file: BudgetFile) -> None:
    more = {"population": 2**50} if name == "mwem-sampled" else {"records": 10**14}
    with pytest.raises(BadInputError, match=r"needs .* MiB of memory"):
        release(mechanism=name, options=more, budget=file.path)
    assert file.read().spent == (0.0, 0.0)
