"""The other side of the game: multiplicative weights over records. Nothing is here yet.

DualQuery keeps weights on queries and answers with records; MWEM (Hardt, Ligett and McSherry 2012)
keeps weights on records and answers with queries. It will stand on the shared modules of
``dualquery`` (queries, curator, accountants) and register its mechanisms through the protocol in
`dualquery.mechanism`.
"""
