# %% [markdown]
# # Baskets: which of thousands of items go together
#
# A shop has baskets over thousands of items. Nearly all pairs of items are in no basket at all, so
# asking about every pair would drown the few that matter in noise. `query_items` asks about the
# items that turn out to be frequent: a release measures the share of every item first, sees in the
# noisy shares which are frequent, and asks about pairs of these with the rest of the same budget.
# A *budget file* holds all releases of these baskets together; it refuses what would exceed it.
#
# The baskets are made up: rare and frequent items as in real shops, and some that are bought
# together.

# %%
import os
import tempfile
from pathlib import Path

import numpy as np

import dualquery
from dualquery.releases.answer.answering import answer_queries

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
# ## 2. Pairs of the frequent items
#
# `query_items="top:40"` with `way=2`: all pairs of 40 items, those with the largest noisy shares.
# A basket holds many items, and each of them moves a share: the noise grows with the square root of
# the number of items, however few are in a basket. `max_ones_per_row` helps: baskets of more than
# 30 items are cut to 30, which is a public rule, so less noise does. What the cut takes away is an
# error, too: choose a number that few exceed.

# %%
cut = dualquery.Table(str(table), max_ones_per_row=30)
pairs = dualquery.release(
    cut, schema=schema, budget=budget, epsilon=0.95, delta=1e-8,
    queries=dualquery.WorkloadRequest(items="top:40", way=2),
)  # fmt: skip
print(pairs.privacy.guarantee())
state = budget.read()
print(f"spent: epsilon {state.spent[0]:.3g} of 1, in {len(state.releases)} release")

# %% [markdown]
# ## 3. The frequent ones
#
# Which items were chosen is part of the release. The share of every item is, too: an item that
# nobody asked about is answered by what was measured, with an interval.

# %%
frequent = [str(column) for column in pairs.workload.description["columns"]]
of_item = dict(zip(frequent, answer_queries(pairs, frequent), strict=True))
for name in frequent[:5]:
    line = of_item[name]
    print(f"item {name:4} in {line['answer']:.1%} ({line['low']:.1%} to {line['high']:.1%})")

# %% [markdown]
# ## 4. What goes together
#
# Lift is the share of a pair over what it would be if its items were independent. The release
# starts from independent items and moves a pair away from there as far as the measurement of the
# pair tells more than its noise. So a lift that is well above 1 was seen, and one of 1 was not.

# %%
lines = []
for query, answer in pairs.answer_table.select("query", "answer").iter_rows():
    one, other = query.split(" & ")
    alone = of_item[one]["answer"] * of_item[other]["answer"]
    if alone > 1e-4:
        lines.append((answer - alone, query, answer, answer / alone))
for _, query, answer, lift in sorted(lines, reverse=True)[:5]:
    print(f"items {query:10} together in {answer:.2%} of the baskets, {lift:.1f} times chance")
print("put in on purpose:", ", ".join(f"{a} & {b}" for a, b in together))

# %% [markdown]
# ## 5. The budget holds
#
# Another release does not fit any more. It is refused before anything is drawn.

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
(line,) = answer_queries(pairs, [rare])
print(f"item {rare}: {line['answer']:.4f}, between {line['low']:.4f} and {line['high']:.4f}")
