"""Queries: families of them, their text, and how they are counted. README.md leads through it."""
