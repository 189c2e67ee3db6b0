"""Passes over rows, wherever the rows are: in memory, in files, on a cluster, or generated.

Terms, each with one meaning in the whole package:

- A *row* is a line of the user's table, as bits. Private rows are a `row_sums.Rows`, which gives
  out sums over all rows and nothing else.
- A *record* is a vector of bits of a domain: a row, or a synthetic one. `packed.Records` are
  records packed in this process' memory.
- A *row sum* is a sum over rows of an array of whole numbers, such as counts of conjunctions or a
  histogram. It does not depend on how the rows are cut into blocks.
- An *engine* says where rows are read: `engines.Engine`.

`cached.CachedRows` computes a sum once; it wraps any other rows.
"""
