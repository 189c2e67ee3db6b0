"""Queries: workloads of signed conjunctions, their text, their exact answers, their sensitivity."""
