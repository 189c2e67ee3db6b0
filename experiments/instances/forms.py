"""A problem in several forms: as it is, with rules between its columns, and without its groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers import BestResponse, Groups, LinearConstraint

AS_IT_IS, RULED, BARE = "", "-rules", "-no-groups"
"""Endings of the problems' names."""

RULES = 60
"""Rules between columns of a problem with rules, at most."""
_TRIES = 20 * RULES
_FEW = 20
_SEED = 20_260


def form_names(grouped: bool) -> Mapping[str, str]:
    """Return the forms of a problem, and what a reader is told of each."""
    found = {AS_IT_IS: "", RULED: ", with rules"}
    return {**found, BARE: ", groups left out"} if grouped else found


def in_form(problem: BestResponse, form: str) -> BestResponse:
    """Return a problem in one of its forms."""
    if form == RULED:
        return with_rules(problem)
    return replace(problem, groups=Groups.none()) if form == BARE else problem


def with_rules(problem: BestResponse) -> BestResponse:
    """Return a problem with random rules between its columns, all of which some record keeps.

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
