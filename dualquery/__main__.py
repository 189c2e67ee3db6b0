"""``python -m dualquery`` is the command line."""

import sys

from dualquery.cli.main import main

# Processes that are spawned import this module under another name.
if __name__ == "__main__":
    sys.exit(main())
