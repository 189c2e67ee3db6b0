"""One module for each format of data: they turn bytes or objects into blocks of rows.

A reader knows its format only, not schemas. It can be read any number of times, holds one block at
a time, and reports whatever is wrong with its input as `dualquery.runtime.errors.BadInputError`,
naming the file and the row or line.
"""
