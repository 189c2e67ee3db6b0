"""``python -m dualquery`` is the command line."""

import sys

from dualquery.cli.main import main

sys.exit(main())
