# %% [markdown]
# # A survey of 24 columns, from the raw file to a report
#
# You hold a survey. You want to publish tables that others can trust, and a file to practise on,
# without giving away what anybody answered. This example goes all the way: read the file, say
# publicly what its columns can hold, release, ask, look, report.
#
# Run it as a script (`python experiments/examples/survey.py`), or cell by cell in an editor or a
# notebook. The survey is made up, so you may look at everything; with your own, each cell says
# what you may show to others.

# %%
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import dualquery
from dualquery.data import careful_draft, schema_from_dict
from dualquery.releases.answer.answering import answer_queries
from dualquery.report import report
from experiments.examples.raw_survey import write_raw_survey

SMALL = os.environ.get("DUALQUERY_EXAMPLES") == "small"
folder = Path(tempfile.mkdtemp(prefix="survey-"))
raw = folder / "raw.csv"
write_raw_survey(raw, rows=1_500 if SMALL else 20_000)

# %% [markdown]
# ## 1. What arrived
#
# Semicolons, Latin-1, decimal commas, `refused` among the incomes, 99 for "no answer": a file as
# files are. On the command line, `--csv "delimiter=;,encoding=latin-1,decimal=,"` says so.

# %%
WRITTEN = "delimiter=;,encoding=latin-1,decimal=,"
print("\n".join(raw.read_text("latin-1").splitlines()[:3]))

# %% [markdown]
# ## 2. A draft of the schema
#
# The schema says which values each column *can* have. It is published with the release, so nothing
# in it may be known from the private rows alone. The draft is read off the rows and is therefore
# **not private**: it saves typing, and each remark names what you have to check.
# (On the command line: `dualquery schema raw.csv --csv ... --out survey.json`.)

# %%
table: Any = dualquery.Table(str(raw), csv=WRITTEN)
draft = careful_draft(table.source)
for column in draft.columns:
    print(f"{column.name:17} {'left out' if column.column is None else 'kept':9} {column.remark}")

# %% [markdown]
# ## 3. The one edit: correct it and declare it
#
# What the questionnaire says replaces what the rows happened to hold. The interviewer's remarks
# and the respondents' numbers stay out, as drafted. Incomes are cut where the office always cuts
# them, with the refusals as a category of their own; body measures get round ranges; and 99, the
# code of "no answer", goes into the schema even if nobody had used it. Then `declared` is set:
# that is your word that all of this is public knowledge.

# %%
edited: Any = draft.schema.to_dict()
columns = {column["name"]: column for column in edited["columns"]}
number = {"kind": "numeric", "outside": "clip"}
columns["year_of_birth"] = number | {
    "name": "year_of_birth", "integer": True, "edges": [1925, *range(1935, 2010, 10), 2010],
}  # fmt: skip
columns["income_eur"] = number | {
    "name": "income_eur", "edges": [0, 500, 1000, 1500, 2000, 3000, 5000, 20000],
    "missing": "category", "unparsable": "missing",
}  # fmt: skip
columns["rent_eur"] = number | {"name": "rent_eur", "edges": [0, 1, 300, 500, 700, 1000, 5000]}
columns["height_cm"] = number | {"name": "height_cm", "edges": [*range(140, 210, 10)]}
columns["weight_kg"] = number | {"name": "weight_kg", "edges": [*range(40, 140, 10)]}
for of in ("courts", "press", "police", "parliament", "science"):
    columns[f"trust_{of}"] = {
        "name": f"trust_{of}", "kind": "categorical",
        "values": ["1", "2", "3", "4", "5", ["99", "no answer"]],
    }  # fmt: skip
edited |= {"name": "survey 2025", "declared": True, "columns": list(columns.values())}
schema = schema_from_dict(edited)
(folder / "survey.json").write_text(json.dumps(edited, indent=1), encoding="utf-8")
print(f"{len(schema.column_names)} columns, {schema.domain.bits} bits, declared: {schema.declared}")

# %% [markdown]
# ## 4. What will it cost, and how good will it be?
#
# The workload is every cross table of two columns: what a table volume has.
# Both can be asked before a single row is read: the expected error follows from the schema, the
# number of rows and the budget. So try epsilons here, not on the data.

# %%
FEW = "sex,school,works,smoker,health,income_eur"
workload = dualquery.WorkloadRequest(marginals="all", way=2, columns=FEW if SMALL else None)
rows = 1_500 if SMALL else 20_000
queries = workload.build(schema, rows)
for epsilon in (0.3, 1.0, 3.0):
    expected = dualquery.expected_error(queries, rows, epsilon=epsilon)
    print(f"epsilon {epsilon:3}: {'not known' if expected is None else expected.text()}")

# %% [markdown]
# ## 5. The release
#
# One call. It draws the noise, fits a model to the noisy numbers, and keeps nothing else: from here
# on, everything you do with `released` costs no privacy. Read the guarantee before you publish it.

# %%
released = dualquery.release(table, schema=schema, queries=workload, epsilon=1.0)
print(released.privacy.guarantee())

# %% [markdown]
# ## 6. Ask it
#
# Any question is allowed, also one that the release was not made for. An interval holds the truth
# with a chance of 95%; where none is given, the answer is the model's best guess and you should
# say so when you quote it.

# %%
QUESTIONS = [
    "smoker=1",
    "smoker=1 given school=university",
    "mean(income_eur) given works=yes",
    "health in (4, 5) & school=university",
]
for line in answer_queries(released, QUESTIONS):
    known = "no interval" if line["low"] is None else f"{line['low']:.4g} to {line['high']:.4g}"
    print(f"{line['query']:42} {line['answer']:10.4g}   {known}")

# %% [markdown]
# ## 7. Look at it
#
# `plot` draws a column's shares with their intervals, or two columns against each other. A filled
# bar was measured, an empty one is a guess.

# %%
try:
    for name, picture in {
        "school": released.plot("school"),
        "school-and-health": released.plot("school", "health"),
    }.items():
        picture.savefig(folder / f"{name}.svg")
except dualquery.BadInputError as missing:  # Matplotlib is an extra
    print(missing)

# %% [markdown]
# ## 8. Publish it
#
# The folder of the release holds the records and answers as Parquet; `report` makes the page for
# people who do not run programs. Both are safe to give away: they are what the guarantee is about.

# %%
released.save(folder / "release")
(folder / "report.html").write_text(report(released), encoding="utf-8")
assert released.synthetic is not None
print(released.synthetic.head(3))

# %% [markdown]
# ## 9. Compare, for your eyes only
#
# `evaluate` reads the private table again, so its output is **not private**: do not publish it, and
# do not try budgets until it looks good. Look at both errors: most cells of cross tables are nearly
# empty, so independent columns have a small mean error, and are far off where columns go together
# (their max error). If `independent` is better in both, the table has too few rows for these
# questions: ask fewer.

# %%
found = dualquery.evaluate(released, table.source)
lines = {"this release": found, **found["baselines"]}
for name, errors in lines.items():
    print(f"{name:14} max {errors['max_error']:.4f}  mean {errors['mean_error']:.4f}")
print(f"all files are in {folder}")
