"""The best-response problem: signed weighted conjunctions under groups and linear constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidProblemError
from solvers.groups import Groups
from solvers.terms import merge_terms

_RELATIVE_TOLERANCE = 1e-9
"""Slack of a linear constraint, as a share of the sum of its absolute coefficients."""


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """``lower <= sum_i coefficients[i] * x[attributes[i]] <= upper``.

    Parameters
    ----------
    attributes
        int32, shape ``(r,)``: distinct attribute numbers.
    coefficients
        float64, shape ``(r,)``, finite.
    lower, upper
        Bounds; ``-inf`` and ``inf`` leave a side open.

    Raises
    ------
    InvalidProblemError
        If the arrays do not fit together, a number is not finite where it has to be, an attribute
        is named twice, or ``lower > upper``.
    """

    attributes: NDArray[np.int32]
    coefficients: NDArray[np.float64]
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        attributes = _integers(self.attributes, "attributes of a linear constraint")
        coefficients = np.asarray(self.coefficients, np.float64)
        if attributes.ndim != 1 or attributes.shape != coefficients.shape:
            raise InvalidProblemError(
                f"a linear constraint has attributes of shape {attributes.shape} and coefficients "
                f"of shape {coefficients.shape}; expected two vectors of one length"
            )
        if not np.isfinite(coefficients).all():
            bad = coefficients[~np.isfinite(coefficients)][0]
            raise InvalidProblemError(
                f"a linear constraint has the coefficient {bad}; expected finite numbers"
            )
        distinct, occurrences = np.unique(attributes, return_counts=True)
        if (occurrences > 1).any():
            raise InvalidProblemError(
                f"a linear constraint names attribute {distinct[occurrences > 1][0]} twice; "
                "add up its coefficients"
            )
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise InvalidProblemError(
                f"a linear constraint has the bounds [{self.lower}, {self.upper}]; "
                "expected lower <= upper, -inf and inf only to leave a side open"
            )
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))

    @property
    def slack(self) -> float:
        """How far rounding in the sum may carry it past a bound."""
        return _RELATIVE_TOLERANCE * max(1.0, float(np.abs(self.coefficients).sum()))

    def activity(self, record: NDArray[np.uint8]) -> float:
        """Return the constraint's sum on a record, uint8 of shape ``(attributes,)``."""
        return float(self.coefficients @ record[self.attributes])

    def holds(self, record: NDArray[np.uint8]) -> bool:
        """Tell whether a record satisfies the constraint (up to :attr:`slack`)."""
        return self.lower - self.slack <= self.activity(record) <= self.upper + self.slack


@dataclass(frozen=True, eq=False)
class BestResponse:
    """Find the record of largest total weight of satisfied conjunctions.

    Maximise ``constant + sum_j weights[j] * [every literal of term j is true]`` over records
    ``x in {0,1}^attributes`` with exactly one 1 in each group and every linear constraint
    satisfied. A conjunction of no literals is true. Equal rows add up. This is the problem of
    DualQuery's record player (Gaboardi et al. 2014), where a complemented query has a negative
    weight.

    Parameters
    ----------
    attributes
        Number of attributes (bits) of a record, d >= 0.
    terms
        int32, shape ``(J, k)``: literal codes ``2 * attribute + negated``, padded with -1.
    weights
        float64, shape ``(J,)``, finite, of either sign.
    groups
        Disjoint exactly-one groups of attributes.
    constraints
        Linear constraints.
    constant
        Added to the objective.

    Raises
    ------
    InvalidProblemError
        If shapes do not agree, a weight is not finite, an attribute is out of range, or a group is
        empty or overlaps another one.
    """

    attributes: int
    terms: NDArray[np.int32]
    weights: NDArray[np.float64]
    groups: Groups = field(default_factory=Groups.none)
    constraints: tuple[LinearConstraint, ...] = ()
    constant: float = 0.0

    def __post_init__(self) -> None:
        terms = _integers(self.terms, "terms")
        weights = np.asarray(self.weights, np.float64)
        if self.attributes < 0:
            raise InvalidProblemError(f"attributes is {self.attributes}; expected 0 or more")
        if terms.ndim != 2 or weights.ndim != 1 or len(terms) != len(weights):
            raise InvalidProblemError(
                f"terms have shape {terms.shape} and weights shape {weights.shape}; "
                "expected (J, k) and (J,)"
            )
        if not np.isfinite(weights).all():
            term = int(np.flatnonzero(~np.isfinite(weights))[0])
            raise InvalidProblemError(
                f"the weight of term {term} is {weights[term]}; expected a finite number"
            )
        if not np.isfinite(self.constant):
            raise InvalidProblemError(f"the constant is {self.constant}; expected a finite number")
        limit = 2 * self.attributes
        if terms.size and (terms.min() < -1 or terms.max() >= limit):
            term = int(np.flatnonzero(((terms < -1) | (terms >= limit)).any(axis=1))[0])
            raise InvalidProblemError(
                f"term {term} has the literal codes {terms[term].tolist()}; expected codes below "
                f"{limit} with {self.attributes} attributes, or -1 as padding"
            )
        _check_groups(self.attributes, self.groups)
        for number, constraint in enumerate(self.constraints):
            named = constraint.attributes
            if len(named) and (named.min() < 0 or named.max() >= self.attributes):
                raise InvalidProblemError(
                    f"constraint {number} names the attributes {named.min()} to {named.max()}; "
                    f"expected 0 to {self.attributes - 1}"
                )
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "constraints", tuple(self.constraints))
        object.__setattr__(self, "constant", float(self.constant))

    @classmethod
    def from_sample(
        cls,
        attributes: int,
        terms: NDArray[np.int32],
        signs: ArrayLike,
        groups: Groups | None = None,
        constraints: tuple[LinearConstraint, ...] = (),
    ) -> BestResponse:
        """Return the problem of a sampled list of queries and complements, equal ones merged.

        Parameters
        ----------
        attributes
            Number of attributes of a record.
        terms
            int32, shape ``(s, k)``: the conjunction of each draw, with repetitions.
        signs
            Shape ``(s,)``: +1 for the query ``q``, -1 for its complement ``1 - q``.
        groups, constraints
            As for the class.

        Raises
        ------
        InvalidProblemError
            As for the class, and if a sign is neither +1 nor -1.
        """
        terms = _integers(terms, "terms")
        weights = np.asarray(signs, np.float64)
        wrong = np.abs(weights) != 1
        if wrong.any():
            draw = int(np.flatnonzero(wrong)[0])
            raise InvalidProblemError(
                f"the sign of draw {draw} is {weights[draw]}; expected +1 or -1"
            )
        problem = cls.merging(attributes, terms, weights, groups, constraints)
        return replace(problem, constant=problem.constant + float(np.count_nonzero(weights < 0)))

    @classmethod
    def merging(
        cls,
        attributes: int,
        terms: NDArray[np.int32],
        weights: NDArray[np.float64],
        groups: Groups | None = None,
        constraints: tuple[LinearConstraint, ...] = (),
    ) -> BestResponse:
        """Return the problem of weighted conjunctions, equal ones merged (see `merge_terms`).

        Parameters
        ----------
        attributes, groups, constraints
            As for the class.
        terms, weights
            As for the class, but a conjunction may occur any number of times.

        Raises
        ------
        InvalidProblemError
            As for the class.
        """
        # Built once as it came, so that bad codes are reported before they are packed into keys.
        given = cls(attributes, terms, weights)
        merged, totals, constant = merge_terms(attributes, given.terms, given.weights)
        none = Groups.none() if groups is None else groups
        return cls(attributes, merged, totals, none, constraints, constant)

    def value(self, record: NDArray[np.uint8]) -> float:
        """Return the objective of a 0/1 record, uint8 of shape ``(attributes,)``."""
        return self.constant + float(self.weights[self.satisfied(record)].sum())

    def satisfied(self, record: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which terms are true on a 0/1 record: bool, shape ``(J,)``."""
        truth = np.empty(2 * self.attributes + 1, np.bool_)
        truth[0:-1:2] = record
        truth[1:-1:2] = ~truth[0:-1:2]
        # The padding code -1 indexes the last entry: always true.
        truth[-1] = True
        return np.asarray(truth[self.terms].all(axis=1))

    def legal(self, record: NDArray[np.uint8]) -> bool:
        """Tell whether a record is 0/1, of the right length, and obeys the groups."""
        return next(self._illegalities(record), None) is None

    def feasible(self, record: NDArray[np.uint8]) -> bool:
        """Tell whether a record is legal and satisfies every linear constraint."""
        return self.legal(record) and all(c.holds(record) for c in self.constraints)

    def violations(self, record: NDArray[np.uint8]) -> list[str]:
        """Return one phrase for each group or constraint that a record violates."""
        found = list(self._illegalities(record))
        if record.shape == (self.attributes,):
            found += [
                f"constraint {number} is {constraint.activity(record)}; "
                f"expected {constraint.lower} to {constraint.upper}"
                for number, constraint in enumerate(self.constraints)
                if not constraint.holds(record)
            ]
        return found

    def _illegalities(self, record: NDArray[np.uint8]) -> Iterator[str]:
        if record.shape != (self.attributes,):
            yield f"the record has shape {record.shape}; expected ({self.attributes},)"
            return
        if self.attributes and (record.min() < 0 or record.max() > 1):
            yield "the record holds numbers other than 0 and 1"
            return
        if len(self.groups):
            chosen = record[self.groups.members].astype(np.int64)
            ones = np.add.reduceat(chosen, self.groups.indptr[:-1])
            for group in np.flatnonzero(ones != 1):
                yield f"group {group} has {ones[group]} ones; expected exactly 1"


def _integers(values: Any, what: str) -> NDArray[np.int32]:
    array = np.asarray(values)
    if array.size == 0:
        return np.ascontiguousarray(array, np.int32)
    if array.dtype.kind not in "iu":
        raise InvalidProblemError(f"{what} have dtype {array.dtype}; expected integers")
    if array.dtype != np.int32 and (array.max() >= 2**31 or array.min() < -(2**31)):
        raise InvalidProblemError(f"{what} reach {array.max()}; expected 32-bit integers")
    return np.ascontiguousarray(array, np.int32)


def _check_groups(attributes: int, groups: Groups) -> None:
    if len(groups) == 0 and len(groups.members) == 0:
        return
    sizes = np.diff(groups.indptr)
    if groups.indptr[0] != 0 or groups.indptr[-1] != len(groups.members) or (sizes < 0).any():
        raise InvalidProblemError(
            f"the groups' indptr goes from {groups.indptr[0]} to {groups.indptr[-1]} with "
            f"{len(groups.members)} members; expected an ascent from 0 to the number of members"
        )
    if (sizes == 0).any():
        raise InvalidProblemError(
            f"group {int(np.argmin(sizes))} has no members; expected at least one"
        )
    members = groups.members
    if members.min() < 0 or members.max() >= attributes:
        raise InvalidProblemError(
            f"groups have the members {members.min()} to {members.max()}; "
            f"expected 0 to {attributes - 1}"
        )
    occurrences = np.bincount(members, minlength=attributes)
    if occurrences.max() > 1:
        raise InvalidProblemError(
            f"attribute {int(occurrences.argmax())} is in {occurrences.max()} places of the "
            "groups; expected disjoint groups without repetitions"
        )
