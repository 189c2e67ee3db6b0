"""Everything that reads what others wrote: valid examples, how they are spoilt, what must hold.

A parser takes a spoilt input and either refuses it with a documented error or accepts it. Of what
it accepts more is asked than that nothing was raised: records are legal, and what was read comes
back the same by another way (other pieces of the file, written and read again, brute force).
"""

from __future__ import annotations

from tests.hostile.outputs import OUTPUTS
from tests.hostile.parser import Parser
from tests.hostile.problems import PROBLEMS
from tests.hostile.settings import SETTINGS
from tests.hostile.tables import TABLES

PARSERS: dict[str, Parser] = {**TABLES, **SETTINGS, **OUTPUTS, **PROBLEMS}
"""Every parser by its name."""
