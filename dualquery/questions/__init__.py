"""Questions in words: a `parser` makes a `syntax_tree`, the `compiler` a `linear_form` of it.

Between them a condition becomes `disjoint_boxes` of the `allowed_values` of columns.
"""
