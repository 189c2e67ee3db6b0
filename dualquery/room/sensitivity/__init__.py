"""How far counts move between neighbours, proven: in `moves`, of blocks of products in `contrasts`.
`combinatorial` and `spectral` bound the queries that differ; `room.strategy` proves it of features.
"""
