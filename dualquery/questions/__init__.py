"""Questions in words: `parser` and `plain_parser` make a `syntax_tree`, `compiler` a `linear_form`.

Between them a condition becomes `disjoint_boxes` of columns' `allowed_values`, with `remarks`.
"""
