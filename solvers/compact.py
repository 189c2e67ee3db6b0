"""The kernel of a problem: only the attributes on which the objective or a constraint depends."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from solvers.groups import Groups
from solvers.problem import BestResponse
from solvers.terms import is_canonical, merge_terms


@dataclass(frozen=True, eq=False)
class Compacted:
    """A problem's kernel and the way between the two.

    The kernel's optimum is the problem's, and :meth:`expand` preserves the objective.
    """

    original: BestResponse
    problem: BestResponse  # the kernel: canonical terms (`solvers.terms`), none of them empty
    attributes: NDArray[np.int32]
    """Ascending, ``(n,)``: the attribute of the original problem that each of the kernel stands
    for. Where some members of a group are mentioned, one unmentioned member stands for all
    unmentioned ones: the group's "rest"."""
    rest: NDArray[np.int32]  # the attributes of the kernel that are a group's rest
    rest_groups: Groups  # the members that each of them stands for, in the original numbering
    steps: ClassVar[tuple[str, ...]] = ()  # nothing worth telling

    def expand(
        self, record: NDArray[np.uint8], default: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """Return the full record of a record of the kernel.

        Parameters
        ----------
        record
            uint8, shape ``(n,)``: legal for the kernel.
        default
            uint8, shape ``(d,)``, legal for the groups: the values of attributes that the kernel
            leaves out, and the preferred member where a group's rest is chosen. By default zeros,
            and the first member of each group.
        """
        full = self._first_members() if default is None else default.copy()
        members, indptr = self.rest_groups.members, self.rest_groups.indptr
        preferred = full[members]
        full[members] = 0
        full[self.attributes] = record
        if len(self.rest):
            # Where the default's member is itself mentioned, the representative stays chosen.
            offered = np.add.reduceat(preferred.astype(np.int64), indptr[:-1]) > 0
            moved = (record[self.rest] == 1) & offered
            full[self.attributes[self.rest[moved]]] = 0
            full[members[np.repeat(moved, np.diff(indptr)) & (preferred == 1)]] = 1
        return full

    def restrict(self, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the kernel's part of a full record that is legal for the groups."""
        kernel = record[self.attributes]
        if len(self.rest):
            ones = record[self.rest_groups.members].astype(np.int64)
            kernel[self.rest] = np.add.reduceat(ones, self.rest_groups.indptr[:-1])
        return kernel

    def _first_members(self) -> NDArray[np.uint8]:
        record = np.zeros(self.original.attributes, np.uint8)
        groups = self.original.groups
        record[groups.members[groups.indptr[:-1]]] = 1
        return record


def compact(problem: BestResponse) -> Compacted:
    """Return the kernel of a problem: exact, linear in the size of the problem.

    Attributes that no term and no constraint mentions are left out. A group without a mentioned
    member vanishes; one with some keeps a single representative of the others.
    """
    terms, weights, constant = problem.terms, problem.weights, 0.0
    if not is_canonical(terms):
        terms, weights, constant = merge_terms(problem.attributes, terms, weights)

    # One entry more than there are attributes: the padding code -1 marks the last one.
    kept = np.zeros(problem.attributes + 1, np.bool_)
    kept[terms >> 1] = True
    kept[problem.rows.attributes] = True
    kept[-1] = False

    rest_groups, counts = _unmentioned(problem.groups, kept)
    representatives = rest_groups.members[rest_groups.indptr[:-1]]
    kept[representatives] = True
    attributes = np.flatnonzero(kept).astype(np.int32)
    number = np.zeros(problem.attributes + 1, np.int32)
    number[attributes] = np.arange(len(attributes), dtype=np.int32)

    kernel = BestResponse(
        len(attributes),
        np.where(terms < 0, np.int32(-1), 2 * number[terms >> 1] + (terms & 1)),
        weights,
        _kernel_groups(problem.groups, kept, number, counts),
        problem.rows.renumbered(number),
        problem.constant + constant,
    )
    return Compacted(problem, kernel, attributes, number[representatives], rest_groups)


def _unmentioned(groups: Groups, mentioned: NDArray[np.bool_]) -> tuple[Groups, NDArray[np.int64]]:
    """Return the unmentioned members of each partly mentioned group, and all groups' counts."""
    if len(groups) == 0:
        return Groups.none(), np.zeros(0, np.int64)
    sizes = np.diff(groups.indptr)
    named = mentioned[groups.members]
    counts = np.add.reduceat(named.astype(np.int64), groups.indptr[:-1])
    partly = (counts > 0) & (counts < sizes)
    members = groups.members[~named & np.repeat(partly, sizes)]
    indptr = np.concatenate(([0], np.cumsum((sizes - counts)[partly])))
    return Groups(indptr, members), counts


def _kernel_groups(
    groups: Groups, kept: NDArray[np.bool_], number: NDArray[np.int32], counts: NDArray[np.int64]
) -> Groups:
    if len(groups) == 0:
        return groups
    sizes, alive = np.diff(groups.indptr), counts > 0
    kernel_sizes = (counts + (counts < sizes))[alive]
    members = number[groups.members[kept[groups.members]]]
    return Groups(np.concatenate(([0], np.cumsum(kernel_sizes))), members)
