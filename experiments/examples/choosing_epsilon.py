# %% [markdown]
# # Choosing epsilon
#
# Epsilon says how much a single row may change what is released: the smaller, the better protected
# and the larger the noise. Nobody can choose it for you, but you can see both sides *before* you
# spend anything: the expected error follows from the schema, the queries and the number of rows.
# Nothing here reads a table, so you may look as often as you like.

# %%
import math
import os
import tempfile
from pathlib import Path

import dualquery
from dualquery.data import schema_from_dict

SMALL = os.environ.get("DUALQUERY_EXAMPLES") == "small"
folder = Path(tempfile.mkdtemp(prefix="epsilon-"))

# %% [markdown]
# ## 1. What will be asked
#
# A health survey, say: the schema is public, the table is not even collected yet. The questions are
# all cross tables of two columns.

# %%
age = {"name": "age", "kind": "numeric", "integer": True, "edges": [*range(15, 95, 10)]}
answers = ["never", "rarely", "sometimes", "often"]
questions = [
    {"name": f"question {number}", "kind": "categorical", "values": answers}
    for number in range(1, 11)
]
sex = {"name": "sex", "kind": "categorical", "values": ["woman", "man", "other"]}
schema = schema_from_dict({"name": "health", "declared": True, "columns": [age, sex, *questions]})
workload = dualquery.WorkloadRequest(marginals="all", way=2)

# %% [markdown]
# ## 2. What epsilon means
#
# Somebody is sure by half that you are in the group "often". After the release, however clever the
# attack and whatever else is known, they can be sure by at most this much (but for a chance of
# delta):

# %%
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
for epsilon in EPSILONS:
    print(f"epsilon {epsilon:4}: from 50% to at most {1 / (1 + math.exp(-epsilon)):.1%}")

# %% [markdown]
# At 0.1 the release hardly matters to anybody in it. At 1 a suspicion may become a good guess at
# worst. At 3 and more the guarantee no longer says much.

# %% [markdown]
# ## 3. What it costs in accuracy
#
# `expected_error` plans the release and says what error to expect, with a range, since the fit's
# success depends on the data. `dualquery budget plan --schema FILE` shows the same for all
# mechanisms.

# %%
SIZES = (2_000, 20_000) if SMALL else (1_000, 10_000, 100_000)
expected = {}
for rows in SIZES:
    queries = workload.build(schema, rows)
    for epsilon in EPSILONS:
        found = dualquery.expected_error(queries, rows, epsilon=epsilon)
        assert found is not None
        expected[rows, epsilon] = found.mean_error
        print(f"{rows:7,} rows, epsilon {epsilon:4}: mean error {found.mean_error.text()}")

# %% [markdown]
# ## 4. The picture
#
# One line for each number of rows. Ten times the rows gain nearly what ten times the epsilon gains:
# the error goes with 1 / (rows x epsilon), or more slowly. If a line lies too high for your
# purpose, more rows or fewer questions are the honest way down.

# %%
USEFUL = 0.005
"""An error that the tables could live with: half a percentage point."""

try:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for rows, mark, colour in zip(SIZES, "os^", ("#0072B2", "#D55E00", "#009E73"), strict=False):
        line = [expected[rows, epsilon] for epsilon in EPSILONS]
        middle, low, high = ([getattr(e, of) for e in line] for of in ("about", "low", "high"))
        axes.loglog(EPSILONS, middle, marker=mark, color=colour, label=f"{rows:,} rows")
        axes.fill_between(EPSILONS, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.axhline(USEFUL, color="black", linestyle="--", linewidth=1)
    axes.text(EPSILONS[0], USEFUL * 1.1, "what would do", fontsize=8)
    axes.set(xlabel="epsilon", ylabel="expected mean error (share of the rows)")
    axes.set_title("Expected error of all cross tables of two columns")
    axes.legend()
    figure.savefig(folder / "epsilon.svg")
    print(f"the picture is {folder / 'epsilon.svg'}")
except ImportError:
    print("for the picture: pip install 'dualquery[plots]'")

# %% [markdown]
# ## 5. The choice
#
# The smallest epsilon whose error would do. Choose it here, write down why, and then release once:
# trying several epsilons on the table and keeping the nicest result would spend the sum of them.

# %%
for rows in SIZES:
    enough = [e for e in EPSILONS if expected[rows, e].about <= USEFUL]
    choice = f"epsilon {enough[0]}" if enough else "none of these: ask fewer questions"
    print(f"{rows:7,} rows: {choice}")
