"""The log of what weakens a guarantee: the command line lets it speak even where it is quiet."""

from __future__ import annotations

import logging

privacy_log = logging.getLogger("dualquery.privacy_warnings")
