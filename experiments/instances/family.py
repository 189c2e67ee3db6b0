"""The family of best-response problems as files: rounds of games on tables, generated samples.

Each comes as it is, with rules between its columns, and without its groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.requests import WorkloadRequest
from experiments.contenders import AS_PUBLISHED
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices
from experiments.harness.run_folder import write_whole
from solvers import BestResponse, Groups, LinearConstraint, get_solver
from solvers.formats import write_instance

MANIFEST = "manifest.csv"
_ENOUGH_SECONDS = 600.0
"""For a search whose own limit is counted work, so that its answer does not depend on the time."""

GAMES = ("adult", "kdd99", "npm-deps")
ROUNDS = (1, 2, 5, 20, 80)
SAMPLES = 1_000
QUERIES = 100_000
QUICK_ROUNDS, QUICK_QUERIES = (1, 2), 2_000

GENERATED = ((100, 1_000), (396, 1_750), (1_000, 5_000), (17_770, 4_500), (512_000, 70_000))
"""Attributes and drawn conjunctions: the sizes of the DualQuery paper's tables, and denser ones."""
QUICK_GENERATED = ((100, 1_000), (512, 300))
_COLUMN = 8
"""Attributes of a group in generated problems."""
_WAY = 3

AS_IT_IS, RULED, BARE = "", "-rules", "-no-groups"
"""Endings of the problems' names."""

RULES = 60
"""Rules between columns of a problem with rules, at most."""
_TRIES = 20 * RULES
_FEW = 20
_SEED = 20_260

EPSILON, DELTA = 1.0, 0.001


def export(choices: Choices, folder: Path) -> Iterator[str]:
    """Write every problem as WCNF, then the manifest; yield the names of the files written.

    The same package and the same data give the same bytes.
    """
    lines = []
    for member in members(choices):
        path = folder / f"{member.name}.wcnf"
        write_instance(path, member.problem)
        lines.append(described(member, path))
        yield path.name
    write_whole(folder / MANIFEST, pl.DataFrame(lines).write_csv())
    yield MANIFEST


def described(member: Member, path: Path) -> dict[str, object]:
    """Return a problem's line of the manifest."""
    problem = member.problem
    found = get_solver("auto:fast").solve(problem, time_limit=_ENOUGH_SECONDS)
    return {
        "name": member.name,
        "origin": member.origin,
        "attributes": problem.attributes,
        "conjunctions": len(problem.terms),
        "groups": len(problem.groups),
        "constraints": len(problem.rows),
        "best_known": found.objective,
        "bound": found.bound,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


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


def form_names(grouped: bool) -> Mapping[str, str]:
    """Return the forms of a problem, and the words for each."""
    found = {AS_IT_IS: "", RULED: ", with rules"}
    return {**found, BARE: ", groups left out"} if grouped else found


def in_form(problem: BestResponse, form: str) -> BestResponse:
    """Return a problem in one of its forms."""
    if form == RULED:
        return with_rules(problem)
    return replace(problem, groups=Groups.none()) if form == BARE else problem


def with_rules(problem: BestResponse) -> BestResponse:
    """Return a problem with random rules between its columns, that some record keeps.

    A rule is of one of three kinds, over bits that conjunctions mention if these are many: *a and b
    exclude each other*, *a implies b*, *of five bits at least one and at most two*.
    """
    generator = np.random.default_rng([_SEED, problem.attributes, len(problem.terms)])
    record = _some_record(problem, generator)
    column = problem.groups.group_of(problem.attributes)
    named_bits = np.unique(problem.terms[problem.terms >= 0] >> 1)
    if len(named_bits) < _FEW:
        named_bits = np.arange(problem.attributes)
    rules: list[LinearConstraint] = []
    for _ in range(_TRIES):
        kind = int(generator.integers(3))
        bits = np.sort(generator.choice(named_bits, 5 if kind == 2 else 2, replace=False))
        named = column[bits][column[bits] >= 0]
        if len(np.unique(named)) < len(named):
            continue  # a rule within a column says nothing new
        rule = _rule(kind, bits.astype(np.int32))
        if rule.holds(record):
            rules.append(rule)
        if len(rules) == RULES:
            break
    return replace(problem, constraints=tuple(rules))


def _rule(kind: int, named: NDArray[np.int32]) -> LinearConstraint:
    if kind == 0:
        return LinearConstraint(named, np.ones(2), upper=1.0)
    if kind == 1:
        return LinearConstraint(named, np.array([1.0, -1.0]), upper=0.0)
    return LinearConstraint(named, np.ones(len(named)), lower=1.0, upper=2.0)


def _some_record(problem: BestResponse, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Return a random record, half of whose bits outside of groups are 1."""
    record = generator.integers(0, 2, problem.attributes).astype(np.uint8)
    groups = problem.groups
    record[groups.members] = 0
    for group in range(len(groups)):
        record[generator.choice(groups[group])] = 1
    return record


@lru_cache(maxsize=1)
def game_problems(
    source: str,
    schema: str | None,
    columns: str | None,
    queries: int,
    samples: int,
    rounds: tuple[int, ...],
) -> dict[int, BestResponse]:
    """Return the problems of some rounds of a game by local search.

    Round 1 is that of the paper, a uniform sample of the queries and their complements; our game
    needs none.
    """
    from dualquery.cli.commands.compare_solvers import released_with_problems
    from dualquery.mechanisms.dualquery.best_response import Problems
    from dualquery.rows.engines import load

    data = load(source, schema, columns)
    workload = WorkloadRequest(queries=queries).build(data.schema, data.n)
    generator = np.random.default_rng(1)
    drawn = generator.integers(len(workload), size=samples)
    signs = generator.choice(np.array([-1, 1], np.int8), samples)
    first = Problems(workload.disjunctions()).of(drawn, signs)
    _, later = released_with_problems(
        source,
        [number for number in rounds if number > 1],
        options={**AS_PUBLISHED, "rounds": max(*rounds, 2), "samples": samples},
        schema=schema,
        columns=columns,
        queries=queries,
        epsilon=EPSILON,
        delta=DELTA,
        seed=1,
        threads=1,
    )
    return {number: first if number == 1 else later[number] for number in rounds}
