"""The public schema: columns of a table, their values, and the bits that stand for them."""
