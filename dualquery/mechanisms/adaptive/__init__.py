"""The mechanism `adaptive`: Gaussian noise on features of the queries, in stages.

A conjunction is a sum of a few *features*: products of indicators "column = value", or of contrasts
(signs, if the columns are binary). `dualquery/mechanisms/README.md` explains the whole.

- `expansion`: queries as sums of features, and features as products of factors
- `measurement`: what is measured, with how much noise; `evidence`: what came of it, and intervals
- `stage_planner`: what each stage measures, by predicted errors (`predictions`, the forecast too)
- `prior`: empirical Bayes; `interactions`: the hierarchical model
- `mixture_fit`, `mixture_kernels`: a mixture of product distributions, fitted to evidence
- `ensemble`: which estimate to trust how far, and cross-moments for records
- `labels`: a target column; `mechanism`: the class, its presets, and the run
"""
