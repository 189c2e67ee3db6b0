"""MWEM on a sampled distribution, for domains that no explicit state fits.

- `mechanism`: `mwem-sampled` of the shared protocol; `rounds`: one round after another;
  `spending`: how many rounds, and what each may cost.
- `layout`: the columns that a workload asks about; `population`: records over them, and answers.
- `tables`: the measured tables, and which values of a column touch them; `measurements`: their
  noisy counts, pooled where tables share bits; `targets`: from noisy counts to shares that the
  family can meet.
- `family`: the exponential family and the population that is kept in step with it; `fitting`:
  the recipe that does so; `gibbs_kernels`: its compiled loops.
"""
