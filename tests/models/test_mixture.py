"""Mixtures of products: chances by enumeration, records rounded as evenly as is said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.models.mixture import ProductMixture
from dualquery.models.model import read_model, write_model
from dualquery.queries.literals import LiteralRows
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, domain_of
from tests.tables import legal


def mixture(domain: Domain, components: int, seed: int) -> ProductMixture:
    generator = np.random.default_rng(seed)
    chances = generator.random((domain.bits, components)) ** 3
    for column in np.flatnonzero(domain.sizes > 1):
        group = slice(domain.offsets[column], domain.offsets[column + 1])
        chances[group] /= chances[group].sum(axis=0)
    return ProductMixture(domain, generator.random(components), chances.astype(np.float32))


def shares_of_cells(model: ProductMixture) -> np.ndarray:
    """Return the chance of every legal record, by definition."""
    cells, domain = all_records(model.domain), model.domain
    shares = np.zeros(len(cells))
    for weight, chances in zip(model.weights, model.chances.T.astype(float), strict=True):
        zero = np.where((domain.sizes == 1)[domain.column_of_bit], 1.0 - chances, 1.0)
        shares += weight * np.where(cells == 1, chances, zero).prod(axis=1)
    return shares / shares.sum()


DOMAIN = domain_of(1, 3, 1, 2, 4)


def random_literals(seed: int, queries: int = 200) -> LiteralRows:
    """Return conjunctions of up to 4 literals, several on one column among them."""
    generator, rows = np.random.default_rng(seed), np.full((queries, 4), -1, np.int32)
    for row in rows:
        size = generator.integers(1, 5)
        bits = generator.choice(DOMAIN.bits, size, replace=False)
        row[:size] = 2 * bits + generator.integers(0, 2, size)
    return LiteralRows(rows, DOMAIN)


@pytest.mark.parametrize("components", [1, 5])
def test_chances_are_sums_over_all_records(components: int) -> None:
    model, queries = mixture(DOMAIN, components, 1), random_literals(2)
    shares = shares_of_cells(model)
    truth = shares @ np.stack([queries.on_record(row) for row in all_records(queries.domain)])
    np.testing.assert_allclose(model.answers(queries), truth, atol=1e-6)


@given(seed=st.integers(0, 10**6), components=st.integers(1, 12), count=st.integers(0, 300))
def test_records_are_legal_and_no_value_is_off_by_2(seed, components, count) -> None:
    model = mixture(DOMAIN, components, seed)
    records = model.sample(count, np.random.default_rng(seed))
    assert records.shape == (count, DOMAIN.bits)
    assert legal(DOMAIN, records) or count == 0
    reached = np.cumsum(model.weights) / model.weights.sum() * count
    sizes = np.diff(np.floor(reached + np.random.default_rng(seed).random()), prepend=0)
    assert np.abs(records.sum(axis=0) - (model.chances * sizes).sum(axis=1)).max(initial=0.0) < 2.0


def test_pairs_of_values_are_as_often_as_their_chances_say() -> None:
    model = mixture(DOMAIN, 4, 3)
    records = model.sample(8_000, np.random.default_rng(1)).astype(float)
    expected = (model.chances * model.weights) @ model.chances.T / model.weights.sum()
    apart = DOMAIN.column_of_bit[:, None] != DOMAIN.column_of_bit
    assert np.abs(records.T @ records / 8_000 - expected)[apart].max() < 1e-3  # at random 3e-3


def test_no_component_is_left_out_of_every_small_sample() -> None:
    """Of 200 components ten have a record; which, and so the shares, is another in each sample."""
    model = mixture(DOMAIN, 200, 4)
    drawn = np.concatenate([model.sample(10, np.random.default_rng(s)) for s in range(1_000)])
    shares = model.chances @ model.weights / model.weights.sum()
    assert np.abs(drawn.mean(axis=0) - shares).max() < 0.02  # four deviations of single records


def test_rare_values_are_not_rounded_up() -> None:
    chances = np.linspace(0.0, 1e-3, 5_000, dtype=np.float32)[:, None]
    model = ProductMixture(Domain.binary(5_000), np.ones(1), chances)
    assert model.sample(1_000, np.random.default_rng(0)).sum() == pytest.approx(2_500, rel=0.03)
    blocks = [model.sample(100, np.random.default_rng(seed)) for seed in range(50)]
    assert np.mean(blocks) == pytest.approx(5e-4, rel=0.05)  # five deviations


def test_a_seed_gives_the_same_records_in_an_order_that_tells_nothing() -> None:
    model = mixture(DOMAIN, 4, 5)
    one, other = (model.sample(400, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert np.abs(one[:200].mean(axis=0) - one[200:].mean(axis=0)).max() < 0.2  # 4 deviations


def test_a_model_comes_back_from_its_file(tmp_path) -> None:
    model = mixture(DOMAIN, 3, 0)
    write_model(model, tmp_path / "model.npz")
    again = read_model(tmp_path / "model.npz", DOMAIN)
    np.testing.assert_array_equal(again.chances, model.chances)
    np.testing.assert_array_equal(again.weights, model.weights)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"kind": "mixture", "weights": np.ones(2)}, "is damaged"),
        ({"kind": "mixture", "weights": np.ones(2), "chances": np.ones((3, 2))}, "10 bits|11 bits"),
        ({"kind": "mixture", "weights": np.ones(1), "chances": np.full((11, 1), 2)}, r"\[0, 1\]"),
        ({"kind": "crystal-ball"}, "kind 'crystal-ball'"),
        ({"kind": "mixture", "weights": np.array([{}], object)}, "is damaged"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, arrays, message) -> None:
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(BadInputError, match=message):
        read_model(tmp_path / "model.npz", DOMAIN)
