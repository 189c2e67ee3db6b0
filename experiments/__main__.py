"""``python -m experiments NAME [--quick] [--runs N] [--data PATH] [--out DIR]``."""

from __future__ import annotations

import sys

from dualquery.cli.main import guarded
from experiments.commands import app

sys.exit(guarded(app, sys.argv[1:], "python -m experiments"))
