"""Worked examples, as scripts of cells (``# %%``) for editors and notebooks; a test runs each.

The environment variable ``DUALQUERY_EXAMPLES=small`` makes them small, for tests.
"""
