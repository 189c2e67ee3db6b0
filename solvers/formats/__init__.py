"""Problems as files: WCNF of the MaxSAT Evaluations, CPLEX's LP and MPS, and OPB.

Conjunctions and groups are recognised (:mod:`solvers.formats.recognition`). LP and MPS keep all of
a problem; WCNF has whole weights, and more variables for constraints that are no clauses.
"""

from solvers.formats.files import SUFFIXES, is_instance_file, read_instance, write_instance
from solvers.formats.instance import Instance

__all__ = ["SUFFIXES", "Instance", "is_instance_file", "read_instance", "write_instance"]
