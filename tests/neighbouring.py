"""Both relations of neighbours, and the pairs of tiny tables that the audit tries."""

from __future__ import annotations

import pytest

from dualquery.audit.cases import pairs_of as pairs
from dualquery.audit.cases import tables_of as tables
from dualquery.privacy.neighbours import RELATIONS

__all__ = ["both_relations", "pairs", "tables"]

both_relations = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.value)
