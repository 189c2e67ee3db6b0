"""Correlated noise from a factorisation of the workload (the matrix mechanism, at scale).

A conjunction is a sum of a few *features*: products of indicators "column = value" and of signs of
binary columns. Measuring the features with independent noise and adding up gives every answer; the
noise of the answers is correlated, and much smaller than independent noise on each answer, for a
record satisfies few features where it satisfies very many queries (Li, Hay, Rastogi, Miklau and
McGregor, "Optimizing linear counting queries under differential privacy", PODS 2010).

- `features`: the features, their counts over rows; `expansion`: queries as sums of features.
- `loads`: how much of a weighted list of features one record can hold; rows above a public limit
  are left out; `loads_kernels`: its compiled loops.
- `strategy`: which features get how much noise, and what error the answers will have.
- `measurement`: features or the queries themselves, whichever has the smaller noise.
- `products`, `mixture`: a mixture of product distributions, fitted to what was measured;
  `mixture_kernels`: its compiled loops.
- `mechanism`: `matrix` of the shared protocol.
"""
