"""Pictures show what the release says, in colours and words, and say when they are not private."""

from dataclasses import replace

import pytest
from matplotlib.text import Text

import dualquery
from dualquery.releases.answer.cross_tables import cross_table
from dualquery.releases.answer.pictures import Picture
from dualquery.releases.keep.folder import Release
from tests.tables import SCHEMA, homes, people, release_people


@pytest.fixture(scope="module")
def made() -> Release:
    return release_people(queries=60, way=2, epsilon=3)


def words(picture: Picture) -> str:
    return " | ".join(text.get_text() for text in picture.findobj(Text))


def test_a_column_has_a_bar_for_each_share_and_a_line_for_each_interval(made: Release) -> None:
    picture = made.plot("age")
    (axes,) = picture.axes
    cells = cross_table(made, "age").cells
    lengths = [bar.get_width() for bar in axes.patches]
    assert lengths == pytest.approx([100 * cell["answer"] for cell in cells])
    known = [cell for cell in cells if cell["low"] is not None]
    (segments,) = [c.get_segments() for c in axes.collections]
    assert len(segments) == len(known) > 0
    assert segments[0][:, 0] == pytest.approx([100 * known[0]["low"], 100 * known[0]["high"]])
    assert "share of the rows (%)" in words(picture)
    assert "NOT PRIVATE" not in words(picture)
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_a_pair_of_columns_is_a_map_with_figures(made: Release) -> None:
    shown = words(made.plot("job", "sex"))
    for cell in cross_table(made, "job", "sex").cells:
        assert f"{100 * cell['answer']:.1f}" in shown
    assert "Female" in shown
    assert "intervals" in shown


def test_a_cell_without_an_answer_leaves_the_others() -> None:
    asked = ["sex=Female & low", "sex=Male & low", "sex=Female & age=0-25"]
    age, job, flag, *rest = SCHEMA.columns
    schema = replace(SCHEMA, columns=(age, job, replace(flag, name="low"), *rest))
    table = people().rename({"flag": "low"})
    made = dualquery.release(table, schema=schema, queries=asked, mechanism="gaussian")
    found = cross_table(made, "low", "sex")
    assert {line["low"] for line in found.lines()} == {"0", "1"}
    assert None in {cell["answer"] for cell in cross_table(made, "sex", "job").cells}
    assert "low_" in found._repr_html_()
    assert made.plot("low").axes


def test_a_release_that_is_not_private_says_so() -> None:
    assert "NOT PRIVATE" in words(release_people(queries=10, way=2, seed=1).plot("sex"))


def test_weighted_shares_are_of_the_weight() -> None:
    weight = dualquery.Weight("w", 5.0)
    made = dualquery.release(homes(), schema=SCHEMA, queries=9, way=1, weight=weight, delta=1e-6)
    for picture in (made.plot("age"), made.plot("age", "sex")):
        assert "share of the units of weight (%)" in words(picture)
