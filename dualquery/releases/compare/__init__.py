"""A release beside its table: not private."""
