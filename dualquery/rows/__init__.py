"""Passes over rows: one protocol, and the places where rows may be: packed in memory, streamed,
made up, on a cluster.
"""
