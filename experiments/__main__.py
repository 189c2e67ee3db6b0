"""``python -m experiments NAME [--quick] [--runs N] [--data PATH] [--out DIR]``."""

import sys

from dualquery.cli.main import guarded
from experiments.commands import KEPT, app

if __name__ == "__main__":  # spawned processes import this module, too
    kept = "nothing was written" if sys.argv[1:2] == ["benchmarks"] else KEPT
    sys.exit(guarded(app, sys.argv[1:], "python -m experiments", kept))
