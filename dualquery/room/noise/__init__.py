"""Noise: what a measurement adds to exact numbers, and what it charges for that."""
