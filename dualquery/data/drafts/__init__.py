"""Columns proposed from counts of their cells, exact or noisy."""
