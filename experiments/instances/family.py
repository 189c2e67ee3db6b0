"""Which problems: rounds of games on tables, and generated samples; with groups, and with rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices
from experiments.instances.forms import form_names, in_form
from experiments.instances.games import game_problems
from solvers import BestResponse, Groups

GAMES = ("adult", "kdd99", "npm-deps")
ROUNDS, SAMPLES, QUERIES = (1, 2, 5, 20, 80), 1_000, 100_000
QUICK_ROUNDS, QUICK_QUERIES = (1, 2), 2_000

GENERATED = ((100, 1_000), (396, 1_750), (1_000, 5_000), (17_770, 4_500), (512_000, 70_000))
"""Attributes and drawn conjunctions: the sizes of the DualQuery paper's tables, and denser ones."""
QUICK_GENERATED = ((100, 1_000), (512, 300))
_COLUMN = 8
"""Attributes of a group in generated problems."""
_WAY = 3


@dataclass(frozen=True, eq=False)
class Member:
    """One problem of the family: its name, where it is from, and itself."""

    name: str
    origin: str
    problem: BestResponse


def members(choices: Choices) -> Iterator[Member]:
    """Yield the problems of the games whose tables are at hand, then the generated ones."""
    rounds, queries, sizes = (
        (QUICK_ROUNDS, QUICK_QUERIES, QUICK_GENERATED)
        if choices.quick
        else (ROUNDS, QUERIES, GENERATED)
    )
    for name in GAMES:
        table = DATA_SETS[name]
        if table.at_hand(choices):
            game = table.parameters(choices)
            asked = {key: game[key] for key in ("source", "schema", "columns")}
            problems = game_problems(**asked, queries=queries, samples=SAMPLES, rounds=rounds)
            for number in rounds:
                origin = f"round {number} of Algorithm 1 on {name}"
                yield from _forms(f"{name}-{number}", origin, problems[number])
    for attributes, draws in sizes:
        origin = f"{draws} random 3-way conjunctions over {attributes} bits"
        yield from _forms(f"random-{attributes}", origin, generated(attributes, draws))


def _forms(name: str, origin: str, problem: BestResponse) -> Iterator[Member]:
    for form, what in form_names(len(problem.groups) > 0).items():
        yield Member(f"{name}{form}", f"{origin}{what}", in_form(problem, form))


def generated(attributes: int, draws: int) -> BestResponse:
    """Return a sample of signed conjunctions of three different columns of eight bits each.

    Bits that are left over have no column.
    """
    generator = np.random.default_rng([attributes, draws])
    columns = attributes // _COLUMN
    picked = generator.integers(0, columns, (draws, _WAY))
    while len(twice := np.flatnonzero((np.diff(np.sort(picked, axis=1), axis=1) == 0).any(axis=1))):
        picked[twice] = generator.integers(0, columns, (len(twice), _WAY))
    bits = picked * _COLUMN + generator.integers(0, _COLUMN, picked.shape)
    terms = (2 * bits + generator.integers(0, 2, bits.shape)).astype(np.int32)
    signs = generator.choice(np.array([-1, 1], np.int8), draws)
    groups = Groups(
        np.arange(0, columns * _COLUMN + 1, _COLUMN, dtype=np.int64),
        np.arange(columns * _COLUMN, dtype=np.int32),
    )
    problem = BestResponse.merging(attributes, terms, signs.astype(np.float64), groups)
    return replace(problem, constant=problem.constant + float(np.count_nonzero(signs < 0)))
