"""Noise: what a measurement adds to exact numbers, and its charge."""
