"""Problems as files: WCNF of the MaxSAT Evaluations, and CPLEX's LP and MPS.

Each format is written and read; what one writes, the reader brings back to an equivalent problem,
groups and linear constraints included. A comment at the head of a written file says which of its
variables are the record's attributes. In files of other programs, conjunctions and groups are
recognised (:mod:`solvers.formats.recognition`).

>>> from solvers.formats import read_instance, write_instance
>>> write_instance("round-20.wcnf", problem)  # doctest: +SKIP
>>> read_instance("round-20.wcnf").problem  # doctest: +SKIP
"""

from solvers.formats.files import (
    SUFFIXES,
    is_instance_file,
    read_clauses,
    read_instance,
    write_instance,
)
from solvers.formats.instance import Instance

__all__ = [
    "SUFFIXES",
    "Instance",
    "is_instance_file",
    "read_clauses",
    "read_instance",
    "write_instance",
]
