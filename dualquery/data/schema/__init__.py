"""The schema: which columns a table has, what their values are, and which bits stand for them.
Public.
"""
