"""Noise that the room adds to counts."""
