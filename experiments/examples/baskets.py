# %% [markdown]
# # Baskets: which of thousands of items go together
#
# A shop has baskets over thousands of items. Nearly all pairs of items are in no basket at all, so
# asking about every pair would drown the few that matter in noise. The way out takes two steps
# under one budget: buy the share of every item, see which are frequent, then ask about pairs of
# these only. The choice is made from the first release, which is public already, so it costs
# nothing; both releases are charged to one *budget file*, which refuses what would exceed it.
#
# The baskets are made up: rare and frequent items as in real shops, and some that are bought
# together.

# %%
import os
import tempfile
from pathlib import Path

import numpy as np

import dualquery
from dualquery.releases.answering import answer_queries

SMALL = os.environ.get("DUALQUERY_EXAMPLES") == "small"
BASKETS, ITEMS = (20_000, 2_000) if SMALL else (100_000, 5_000)
folder = Path(tempfile.mkdtemp(prefix="baskets-"))

rng = np.random.default_rng(3)
chances = 0.35 / (1 + np.arange(ITEMS)) ** 0.9
together = {(2, 7): 0.6, (4, 11): 0.5, (9, 20): 0.7}  # who has the first has the second so often
in_basket = [np.flatnonzero(rng.random(BASKETS) < chance) for chance in chances]
for (first, second), often in together.items():
    more = in_basket[first][rng.random(len(in_basket[first])) < often]
    in_basket[second] = np.union1d(in_basket[second], more)
basket = np.concatenate(in_basket)
item = np.repeat(np.arange(ITEMS), [len(rows) for rows in in_basket])
order = np.lexsort((item, basket))
baskets = np.split(item[order], np.searchsorted(basket[order], np.arange(1, BASKETS)))
table = folder / "baskets.dat"  # a basket a line, its items as numbers
table.write_text("\n".join(" ".join(map(str, each)) for each in baskets) + "\n", encoding="utf-8")
print(f"{BASKETS:,} baskets, {ITEMS:,} items, {len(item) / BASKETS:.1f} a basket")

# %% [markdown]
# ## 1. What is public, and the budget
#
# The list of items is the shop's catalogue, public by itself. The budget is for everything that is
# ever released of these baskets: epsilon 1 in all. Decide it once, before anything is released.

# %%
schema = {"kind": "items", "items": f"0-{ITEMS - 1}", "declared": True, "name": "baskets"}
budget = dualquery.BudgetFile.create(folder / "baskets.budget", epsilon=1.0, delta=1e-6)

# %% [markdown]
# ## 2. The share of every item
#
# One-literal queries (`way=1`), without negation. A basket holds many items, and each of them moves
# a share: the noise grows with the square root of the number of items, however few are in a basket.
# `max_ones_per_row` helps: baskets of more than 30 items are cut to 30, which is a public rule, so
# less noise does. What the cut takes away is an error, too: choose a number that few exceed.

# %%
cut = dualquery.Table(str(table), max_ones_per_row=30)
shares = dualquery.release(
    cut, schema=schema, budget=budget, epsilon=0.25, delta=1e-8,
    queries=dualquery.WorkloadRequest(queries="all", way=1, signed=False),
    mechanism="gaussian",
)  # fmt: skip
print(shares.privacy.guarantee())

# %% [markdown]
# ## 3. The frequent ones
#
# Everything below is post-processing of a public release. An item is taken if its share stands
# clear of the noise: the lower end of its interval, with room for the many that are looked at.

# %%
found = shares.answer_table.sort("answer", descending=True)
width = (found["interval_high"] - found["interval_low"]).max()
assert isinstance(width, float)
frequent = found.filter(found["answer"] > 1.5 * width)["query"].to_list()[:40]
print(f"an interval is {width:.4f} long; {len(frequent)} items stand clear of it: {frequent[:10]}")

# %% [markdown]
# ## 4. Pairs of these, from what is left of the budget
#
# All 2-way marginals of the frequent items. Their noise is that of a small table now, since only 40
# of the columns can be asked about.

# %%
columns = ",".join(frequent)
pairs = dualquery.release(
    cut, schema=schema, budget=budget, epsilon=0.7, delta=1e-8,
    queries=dualquery.WorkloadRequest(queries="all", way=2, signed=False, columns=columns),
)  # fmt: skip
state = budget.read()
print(f"spent: epsilon {state.spent[0]:.3g} of 1, in {len(state.releases)} releases")

# %% [markdown]
# ## 5. What goes together
#
# Lift is the share of a pair over what it would be if its items were independent. Where the noise
# could explain a lift above 1, say nothing. Of a hundred intervals five miss, so we ask that a pair
# lies twice as far above chance as its own interval reaches.

# %%
of_item = dict(zip(found["query"], found["answer"], strict=True))
lines = []
pairs_table = pairs.answer_table
for query, low, high, answer in pairs_table.select(
    "query", "interval_low", "interval_high", "answer"
).iter_rows():
    one, other = query.split(" & ")
    alone = of_item[one] * of_item[other]
    if low is not None and answer - (high - low) > alone:
        lines.append((answer / alone, query, answer))
for lift, query, answer in sorted(lines, reverse=True)[:8]:
    print(f"items {query:10} together in {answer:.2%} of the baskets, {lift:.1f} times chance")
print("put in on purpose:", ", ".join(f"{a} & {b}" for a, b in together))

# %% [markdown]
# ## 6. The budget holds
#
# A third release does not fit any more. It is refused before anything is drawn.

# %%
try:
    dualquery.release(cut, schema=schema, budget=budget, epsilon=0.5, delta=1e-8)
except dualquery.BadInputError as refused:
    print(f"refused: {refused}")

# %% [markdown]
# A question about rare items can still be asked, and is answered by what is public: an honest
# "nearly nothing", with an interval.

# %%
rare = str(ITEMS - 1)
(line,) = answer_queries(shares, [rare])
print(f"item {rare}: {line['answer']:.4f}, between {line['low']:.4f} and {line['high']:.4f}")
