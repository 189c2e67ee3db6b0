"""Privacy: the curator's room, the accountants, and what a release says of its guarantee."""
