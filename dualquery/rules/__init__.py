"""Rules between columns: read from a schema, kept by records, and what they force of answers.

All rules come to one form, a list of *forbidden boxes*: a record breaks a rule if it has, in each
column of a box, one of the values that the box says. Rules are public, and so is everything here.
"""
