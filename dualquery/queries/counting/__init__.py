"""Exact counts of queries over rows: private until the room has added noise to them."""
