"""From cells to bits: which rows count, what each cell sets, blocks of rows in their order."""
