"""How far counts move between neighbours, proven: in `moves`, of blocks of products in `contrasts`.
`combinatorial` and `spectral` bound the number of queries that differ, for `moves`.
"""
