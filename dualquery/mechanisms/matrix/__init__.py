"""Correlated noise from a factorisation of the workload (the matrix mechanism, at scale).

A conjunction is a sum of a few *features*: products of indicators "column = value", or of contrasts
(signs, if the columns are binary). Measuring the features with independent noise and adding up
gives every answer; the noise of the answers is correlated, and much smaller than independent noise
on each answer, for a record satisfies few features where it satisfies very many queries (Li, Hay,
Rastogi, Miklau and McGregor, "Optimizing linear counting queries under differential privacy", PODS
2010).

- `expansion`: queries as sums of features (`dualquery.room.features`).
- `blocks`: sets of columns that are measured whole, by contrasts.
- `scales`: which features get how much noise.
- `measurement`: the features, or the queries themselves where these have less noise.
- `drawn`: what came of it; `cells`: whole marginals that were measured, as features.
- `product_terms`, `mixture`: a mixture of product distributions, fitted to what was measured;
  `mixture_kernels`: its compiled loops.
- `shrinkage`: independent columns, moved by what stands out of the noise (`outliers`).
- `fitting`: which of the two to trust how far (`trials`); `reach`: how far from what was measured.
- `mechanism`: `matrix` of the shared protocol.
- `staged`: the mechanism of that name, for thousands of binary columns (`width`); `shares`: shares
  of columns from noisy ones; `departures`: what was measured of departures from independence.
- `probed`: the mechanism of that name, for much noise; `columns`: their shares alone;
  `dependence`: how much columns depend on each other, and what a fit would leave; `columns_alone`:
  what of this public facts tell, and when `auto` takes `probed`.
"""
