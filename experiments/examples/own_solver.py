# %% [markdown]
# # Bringing your own solver
#
# DualQuery is a game. One player holds weights on queries; the other answers each round with the
# record that satisfies the heaviest set of them. Finding that record is a weighted MaxSAT problem,
# and any optimiser can do it: privacy is spent on the first player's draws only, so a solver may be
# slow, greedy or wrong, and the guarantee still holds. This example writes one, tries it on real
# problems of the game, and lets it play.

# %%
import os
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import dualquery
from dualquery.cli.commands.compare_solvers import released_with_problems
from solvers import BestResponse, Capability, Ending, KernelSolver, SearchLimits, SearchResult
from solvers.local_search import random_record
from solvers.registry import get_solver, registered

SMALL = os.environ.get("DUALQUERY_EXAMPLES") == "small"

# %% [markdown]
# ## 1. The solver
#
# `KernelSolver` does everything that is tedious: it simplifies the problem, watches the clock,
# checks the record, and falls back on a search of its own if yours finds none. Yours is
# `search`: given the simplified problem, return the best record you know when the time is up.
#
# Ours climbs: start somewhere legal, flip what helps most, start again.


# %%
class Climber(KernelSolver):
    """Steepest ascent from random legal records; takes no argument."""

    name: ClassVar[str] = "climber"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.GROUPS})
    module: ClassVar[str] = "numpy"
    distribution: ClassVar[str] = "numpy"
    STARTS: ClassVar[int] = 5

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Climb from ``start`` and from some random records, until the deadline."""
        generator = np.random.default_rng(limits.seed)
        best = start
        for _ in range(self.STARTS):
            record = random_record(kernel, generator)
            while limits.remaining() > 0.0:
                better = max(self._neighbours(kernel, record), key=kernel.value, default=record)
                if kernel.value(better) <= kernel.value(record):
                    break
                record = better
            if best is None or kernel.value(record) > kernel.value(best):
                best = record
        return SearchResult(Ending.STOPPED, best)

    @staticmethod
    def _neighbours(kernel: BestResponse, record: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        """Return the legal records one step away: a bit flipped, or another value of a column."""
        found = []
        for bit in range(kernel.attributes):
            other = record.copy()
            other[bit] ^= 1
            found.append(other)
        for group in range(len(kernel.groups)):
            members = kernel.groups[group]
            for bit in members:
                other = record.copy()
                other[members] = 0
                other[bit] = 1
                found.append(other)
        return [other for other in found if kernel.feasible(other)]


# %% [markdown]
# ## 2. On a problem whose answer is known
#
# Two conjunctions: "bit 0 and bit 1" of weight 1, "not bit 0" of weight 3. A literal is
# `2 * bit + negated`, and -1 fills up a shorter conjunction. The best record has bit 0 = 0.

# %%
problem = BestResponse(2, np.array([[0, 2], [1, -1]], np.int32), np.array([1.0, 3.0]))
print(Climber("").solve(problem).objective, "of 3.0")
assert Climber("").solve(problem).objective == 3.0

# %% [markdown]
# ## 3. On problems of a real game
#
# `released_with_problems` plays the game on a table and keeps the problems of some rounds. (Given a
# private table it is a release and has a budget; here the table is made up.)

# %%
rng = np.random.default_rng(1)
rows = (rng.random((2_000, 20)) < np.linspace(0.05, 0.6, 20)).astype(np.uint8)
rows[:, 3] = rows[:, 2] & (rng.random(2_000) < 0.9)

QUERIES = 200 if SMALL else 2_000
asked = {"queries": QUERIES, "epsilon": 2.0}
_, problems = released_with_problems(rows, (3, 6), options={"rounds": 8}, **asked)
for number, found in problems.items():
    ours = Climber("").solve(found, time_limit=2.0)
    best = get_solver("local-search").solve(found, time_limit=2.0)
    print(f"round {number}: climber {ours.objective:.4g}, local-search {best.objective:.4g}")

# %% [markdown]
# ## 4. In the game
#
# `registered` makes the solver known to this process. A package of your own does it for good, with
# an entry point, and `--solver climber` works on the command line:
#
# ```toml
# [project.entry-points."dualquery.solvers"]
# climber = "my_package:Climber"
# ```

# %%
errors = {}
for solver in ("climber", "local-search"):
    with registered("climber", Climber):
        released = dualquery.release(
            rows, mechanism="dualquery", options={"solver": solver, "rounds": 20},
            queries=QUERIES, epsilon=5.0,
        )  # fmt: skip
    errors[solver] = dualquery.evaluate(released, rows)["max_error"]
    print(f"{solver:13} max error {errors[solver]:.4f} (not private: compared with the table)")

# %% [markdown]
# Both are noisy, so do not conclude from one run. `python -m dualquery compare-solvers` compares
# solvers on the same problems, with profiles of time and quality; the conformance suite
# (`tests/solvers/test_conformance.py`) tries a solver that is in the registry on hard cases.
