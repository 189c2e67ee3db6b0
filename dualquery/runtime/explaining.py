"""The log of what is not public: times of passes over private rows, sizes of files, known answers.

A program that sends all of its log somewhere does not hear it: only who asks for this log by its
name (``logging.getLogger("dualquery.explain").setLevel("INFO")``, or ``--explain``) does.
"""

from __future__ import annotations

import logging

EXPLAIN_LOG = "dualquery.explain"

explain_log = logging.getLogger(EXPLAIN_LOG)
if explain_log.level == logging.NOTSET:  # else the program has chosen before
    explain_log.setLevel(logging.WARNING)
