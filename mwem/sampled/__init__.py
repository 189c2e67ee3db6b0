"""MWEM whose distribution is a sample of records, for domains too large for an explicit one.

- `mechanism`: `mwem-sampled` of the shared protocol; `rounds`: one round after another;
  `spending`: how many rounds, and what each may cost.
- `layout`: the columns that a workload asks about; `population`: records over them, and answers.
- `measured_tables`: the measured tables, and which values of a column touch them;
  `measurements`: their noisy counts, pooled where tables share bits; `targets`: from noisy counts
  to shares that the family can meet.
- `family`: the exponential family, and the population of records drawn from it; `fitting`: moves
  both towards the measurements; `gibbs_kernels`: compiled loops.
"""
