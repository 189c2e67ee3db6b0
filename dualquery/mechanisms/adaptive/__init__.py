"""The mechanism `adaptive`: Gaussian noise on features of the queries, in stages.

A conjunction is a sum of a few *features*: products of indicators "column = value", or of contrasts
(signs, if the columns are binary). Measuring these gives every answer with much less noise than is
needed on each (Li et al., "Optimizing linear counting queries under differential privacy", PODS
2010). `dualquery/mechanisms/README.md` explains the whole.

- features: `expansion`, `product_terms`; `scales`: how much noise each gets
- `measurement`: what is measured; `evidence`: what came of it, and intervals
- `planner`: what each stage measures, by predicted errors (`predictions`)
- `prior`: empirical Bayes; `interactions`: the hierarchical model
- `mixture`, `mixture_kernels`: a mixture of product distributions, fitted to evidence
- `ensemble`: which estimate to trust how far, by held-back noise
- `labels`: a target column; `forecast`: the error to expect
- `mechanism`: the class, its presets, and the run
"""
