"""The mechanism `adaptive`: Gaussian noise on features of the queries, in stages.

A conjunction is a sum of a few *features*: products of indicators "column = value", or of contrasts
(signs, if the columns are binary). Measuring the features with independent noise and adding up
gives every answer; the noise of the answers is correlated, and much smaller than independent noise
on each answer (Li, Hay, Rastogi, Miklau and McGregor, "Optimizing linear counting queries under
differential privacy", PODS 2010). `dualquery/mechanisms/README.md` explains the whole.

- features: `expansion`, `blocks`, `product_terms`; `scales`: how much noise each gets
- `measurement`: what is measured; `evidence`: what came of it
- `planner`: what each stage measures, by predicted errors (`predictions`)
- `prior`: empirical Bayes; `interactions`: the hierarchical model
- `mixture`, `mixture_kernels`: a mixture of product distributions, fitted to evidence
- `ensemble`: which estimate to trust how far, by held-back noise
- `intervals`; `labels`: a target column; `forecast`: the error to expect
- `mechanism`: the class, its presets, and the run
"""
