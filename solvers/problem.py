"""The best-response problem: signed weighted conjunctions under groups and linear constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import LinearConstraint, Rows, as_integers
from solvers.errors import InvalidProblemError
from solvers.groups import Groups
from solvers.terms import merge_terms


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
    constraints: Sequence[LinearConstraint] = ()
    constant: float = 0.0
    rows: Rows = field(init=False)  # the linear constraints as one matrix

    def __post_init__(self) -> None:
        terms = as_integers(self.terms, "terms")
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
        with np.errstate(over="ignore"):
            if not np.isfinite(np.abs(weights).sum() + abs(self.constant)):
                raise InvalidProblemError("the weights add up to more than any number of 64 bits")
        limit = 2 * self.attributes
        if terms.size and (terms.min() < -1 or terms.max() >= limit):
            term = int(np.flatnonzero(((terms < -1) | (terms >= limit)).any(axis=1))[0])
            raise InvalidProblemError(
                f"term {term} has the literal codes {terms[term].tolist()}; expected codes below "
                f"{limit} with {self.attributes} attributes, or -1 as padding"
            )
        _check_groups(self.attributes, self.groups)
        given = self.constraints if isinstance(self.constraints, Rows) else tuple(self.constraints)
        rows = Rows.of(given)
        rows.check(self.attributes)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "constraints", given)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "constant", float(self.constant))

    @classmethod
    def merging(
        cls,
        attributes: int,
        terms: NDArray[np.int32],
        weights: NDArray[np.float64],
        groups: Groups | None = None,
        constraints: Sequence[LinearConstraint] = (),
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

    def canonical(self) -> BestResponse:
        """Return the problem with its equal conjunctions merged (see `merge_terms`)."""
        terms, weights, constant = merge_terms(self.attributes, self.terms, self.weights)
        constant += self.constant
        return replace(self, terms=terms, weights=weights, constant=constant)

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
        holds = np.ones(len(self.terms), np.bool_)
        for codes in self.terms.T:
            holds &= truth[codes]
        return holds

    def mentioned(self) -> NDArray[np.bool_]:
        """Return which attributes some term mentions: bool, shape ``(attributes,)``."""
        # One entry more than there are attributes: the padding code -1 marks the last one.
        marked = np.zeros(self.attributes + 1, np.bool_)
        marked[self.terms >> 1] = True
        return marked[:-1]

    def legal(self, record: NDArray[np.uint8]) -> bool:
        """Tell whether a record is 0/1, of the right length, and obeys the groups."""
        return next(self._illegalities(record), None) is None

    def feasible(self, record: NDArray[np.uint8]) -> bool:
        """Tell whether a record is legal and satisfies every linear constraint."""
        return self.legal(record) and not self.rows.violated(record).any()

    def violations(self, record: NDArray[np.uint8]) -> list[str]:
        """Return one phrase for each group or constraint that a record violates."""
        found = list(self._illegalities(record))
        if record.shape == (self.attributes,):
            found += [
                f"constraint {number} is {self.rows[number].activity(record)}; "
                f"expected {self.rows.lower[number]} to {self.rows.upper[number]}"
                for number in np.flatnonzero(self.rows.violated(record)).tolist()
            ]
        return found

    def _illegalities(self, record: NDArray[np.uint8]) -> Iterator[str]:
        if record.shape != (self.attributes,):
            yield f"the record has shape {record.shape}; expected ({self.attributes},)"
            return
        if self.attributes and not (record.min() >= 0 and record.max() <= 1):  # NaN is neither
            yield "the record holds numbers other than 0 and 1"
            return
        if len(self.groups):
            chosen = record[self.groups.members].astype(np.int64)
            ones = np.add.reduceat(chosen, self.groups.indptr[:-1])
            for group in np.flatnonzero(ones != 1):
                yield f"group {group} has {ones[group]} ones; expected exactly 1"


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
