"""Checkpoints: what an interrupted release has charged and drawn, from which it goes on."""
