"""The mechanism `adaptive`: Gaussian noise on features of the queries, in stages.

A conjunction is a sum of a few *features*: products of indicators "column = value", or of contrasts
(signs, if the columns are binary). `dualquery/mechanisms/README.md` explains the whole, the
first line of each module what it holds; `mechanism` has the class, its presets, and the run.
"""
