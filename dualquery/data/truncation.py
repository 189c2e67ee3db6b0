"""Rows with many 1s, cut to a public number of them, so that one row moves few answers.

The cut of a row depends on that row alone. So two tables that differ in one row differ in at most
that row after the cut: neighbouring tables stay neighbours, and the guarantee holds for the table
as it was. A hash of the row's own content chooses the 1s that stay, so the cut is the same in every
pass, on every worker and after a restart. The hash spreads the choice evenly over the items;
privacy does not rest on it.
"""

from __future__ import annotations

from dualquery.data.encode import BitRows


def truncate(rows: BitRows, most: int) -> BitRows:
    """Return the rows with at most ``most`` 1s each, the numbers of a row increasing.

    Parameters
    ----------
    rows
        A number repeated within a row counts once.
    most
        At least 1.
    """
    from dualquery.data.truncation_kernels import keep_ones

    return BitRows(*keep_ones(rows.indptr, rows.bits, most))
