"""``python -m msprobe_ms``: the command line, whoever owns the command ``msprobe``."""

import sys

from msprobe_ms.cli.main import main

sys.exit(main())
