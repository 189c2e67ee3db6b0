"""Problems as files: WCNF of the MaxSAT Evaluations, and CPLEX's LP and MPS.

Conjunctions and groups are recognised (:mod:`solvers.formats.recognition`). LP and MPS keep all of
a problem: a comment at their head says which variables are the record's attributes. WCNF has whole
weights, and further variables for linear constraints that are no clauses.

>>> from solvers.formats import read_instance, write_instance
>>> write_instance("round-20.wcnf", problem)  # doctest: +SKIP
>>> read_instance("round-20.wcnf").problem  # doctest: +SKIP
"""

from solvers.formats.files import (
    SUFFIXES,
    is_instance_file,
    read_instance,
    write_instance,
)
from solvers.formats.instance import Instance

__all__ = [
    "SUFFIXES",
    "Instance",
    "is_instance_file",
    "read_instance",
    "write_instance",
]
