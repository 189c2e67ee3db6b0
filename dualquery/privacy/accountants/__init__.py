"""Accountants: each turns a public schedule of events into (epsilon, delta)."""
