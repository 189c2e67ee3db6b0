"""Which problems: rounds of games on tables, and generated samples; with groups, and with rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices
from experiments.solver_problems import game_problems, has_groups
from solvers import BestResponse, Groups, LinearConstraint

GAMES = ("adult", "kdd99", "npm-deps")
ROUNDS, SAMPLES, QUERIES = (1, 2, 5, 20, 80), 1_000, 100_000
QUICK_ROUNDS, QUICK_QUERIES = (1, 2), 2_000

GENERATED = ((100, 1_000), (396, 1_750), (1_000, 5_000), (17_770, 4_500), (512_000, 70_000))
"""Attributes and drawn conjunctions: the sizes of the DualQuery paper's tables, and denser ones."""
QUICK_GENERATED = ((100, 1_000), (512, 300))
_COLUMN = 8
"""Attributes of a group in generated problems."""
_WAY = 3

RULES = 60
"""Rules between columns of a problem with rules, at most."""
_RULES_SEED = 20_260


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
                yield from _forms(f"{name}-{number}", origin, problems[number], has_groups(game))
    for attributes, draws in sizes:
        origin = f"{draws} random 3-way conjunctions over {attributes} bits"
        yield from _forms(f"random-{attributes}", origin, generated(attributes, draws), True)


def _forms(name: str, origin: str, problem: BestResponse, grouped: bool) -> Iterator[Member]:
    """Yield a problem as it is, with rules, and without its groups if it has any."""
    yield Member(name, origin, problem)
    yield Member(f"{name}-rules", f"{origin}, with rules", with_rules(problem))
    if grouped:
        bare = replace(problem, groups=Groups.none())
        yield Member(f"{name}-no-groups", f"{origin}, groups left out", bare)


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
    return BestResponse.from_sample(attributes, terms, signs, groups)


def with_rules(problem: BestResponse) -> BestResponse:
    """Return a problem with random rules between its columns, all of which some record keeps.

    A rule is of one of three kinds, over bits that conjunctions mention: *a and b exclude each
    other*, *a implies b*, *of five bits at least one and at most two*.
    """
    generator = np.random.default_rng([_RULES_SEED, problem.attributes, len(problem.terms)])
    record = _some_record(problem, generator)
    column = problem.groups.group_of(problem.attributes)
    mentioned = np.unique(problem.terms[problem.terms >= 0] >> 1)
    rules: list[LinearConstraint] = []
    for _ in range(20 * RULES):
        kind = int(generator.integers(3))
        bits = np.sort(generator.choice(mentioned, 5 if kind == 2 else 2, replace=False))
        named = column[bits][column[bits] >= 0]
        if len(np.unique(named)) < len(named):
            continue  # a rule within a column says nothing new
        rule = _rule(kind, bits.astype(np.int32))
        if rule.holds(record):
            rules.append(rule)
        if len(rules) == RULES:
            break
    return replace(problem, constraints=tuple(rules))


def _rule(kind: int, bits: Sequence[int] | np.ndarray) -> LinearConstraint:
    named = np.asarray(bits, np.int32)
    if kind == 0:
        return LinearConstraint(named, np.ones(2), upper=1.0)
    if kind == 1:
        return LinearConstraint(named, np.array([1.0, -1.0]), upper=0.0)
    return LinearConstraint(named, np.ones(len(named)), lower=1.0, upper=2.0)


def _some_record(problem: BestResponse, generator: np.random.Generator) -> np.ndarray:
    """Return a random record, half of whose bits outside of groups are 1."""
    record = generator.integers(0, 2, problem.attributes).astype(np.uint8)
    groups = problem.groups
    record[groups.members] = 0
    for group in range(len(groups)):
        record[generator.choice(groups[group])] = 1
    return record
