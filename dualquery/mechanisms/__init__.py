"""Mechanisms: each plans on public facts, then runs on the private room."""
