# %% [markdown]
# # The papers' figures in ten minutes
#
# `python -m experiments NAME --quick` makes a figure of the two papers in a small form: at most 40
# seconds on two cores, with no data but those of the package. Without `--quick` it is the paper's
# size. All ten of them, and nine of our own:
#
# ```sh
# python -m experiments all --quick
# ```
#
# This example does the same from Python, step by step, for the figure that says most: max error
# against epsilon (DualQuery, Figure 2). Everything here is **not private**: it compares with the
# truth, and runs have seeds. Adult is public.

# %%
import os
import tempfile
from pathlib import Path

import polars as pl

from experiments.commands import MODULES, recipe_named
from experiments.contenders import BEST, OURS, PAPERS, RECOUNTED
from experiments.harness.recipe import Choices

SMALL = os.environ.get("DUALQUERY_EXAMPLES") == "small"
folder = Path(tempfile.mkdtemp(prefix="figures-"))

# %% [markdown]
# ## 1. Which figures there are
#
# An experiment is a *recipe*: it plans runs, performs one, summarises the table of all, says what
# was expected, and draws.

# %%
for name in MODULES:
    print(f"{name:12} {recipe_named(name).title}")

# %% [markdown]
# ## 2. The runs of Figure 2
#
# Four curves: the paper's Algorithm 1 with the paper's accounting; the same algorithm, accounted
# for more tightly; our DualQuery, which also remembers what it drew; and what `auto` takes, which
# is no game but one measurement of all queries. All have the same guarantee: epsilon, delta 0.001.

# %%
recipe = recipe_named("figure2")
curves = (OURS, BEST) if SMALL else (PAPERS, RECOUNTED, OURS, BEST)
epsilons = (0.05, 0.1) if SMALL else (0.25, 1.0, 2.0, 5.0)
choices = Choices(quick=True, options={"contender": curves, "epsilon": epsilons})
runs = [dict(run) | {"queries": 1_000 if SMALL else 20_000} for run in recipe.plan(choices)]
print(f"{len(runs)} runs, the first: {runs[0]}")

# %% [markdown]
# ## 3. Perform them
#
# A run gives one line, or a few. The command does runs side by side, keeps each as a file, and goes
# on from there when it is interrupted; here they come one after the other.

# %%
lines = []
for run in runs:
    parameters = {key: value for key, value in run.items() if key not in ("contenders", "epsilons")}
    lines += [parameters | dict(row) for row in recipe.perform(run, 1)]
table = pl.DataFrame(lines, infer_schema_length=None)
print(recipe.summarise(table))

# %% [markdown]
# ## 4. What was expected, and what was found
#
# Every recipe states in advance what the paper, or we, expect of it, and whether it came out so.
# The small form has too few runs to be sure of anything.

# %%
for finding in recipe.expect(table):
    print(f"- {finding.text()}")

# %% [markdown]
# ## 5. The picture
#
# The scale is logarithmic: a step down of the same height is the same factor. What tighter
# accounting alone gains is the gap between the first two curves; what the changed game gains, the
# next one.

# %%
try:
    assert recipe.draw is not None
    for name, figure in recipe.draw(table).items():
        figure.savefig(folder / f"{name}.svg")
        print(f"the picture is {folder / name}.svg")
except ImportError:
    print("for the picture: pip install 'dualquery[plots]'")
