"""Workloads: random conjunctions, whole marginals, files and lists of queries."""
