"""Everything that reads what others wrote; what is accepted must come back by another way."""

from tests.hostile.outputs import OUTPUTS
from tests.hostile.parser import Parser
from tests.hostile.problems import PROBLEMS
from tests.hostile.settings import SETTINGS
from tests.hostile.tables import TABLES

PARSERS: dict[str, Parser] = {**TABLES, **SETTINGS, **OUTPUTS, **PROBLEMS}
"""Every parser by its name."""
