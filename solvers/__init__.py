"""The best response: one record that satisfies the heaviest set of conjunctions."""

from solvers.groups import Groups

__all__ = ["Groups"]
