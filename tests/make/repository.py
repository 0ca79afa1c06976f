"""Where the repository keeps what tests read and run."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
NETS = ROOT / "tests" / "nets"
#: How the names of the package's own files begin, whatever the folder of the repository is called.
PACKAGE = f"{ROOT / 'msprobe_ms'}{os.sep}"
#: ``PYTHONPATH`` of a script that imports the package, or a helper module of the tests, from the repository.
PYTHONPATH = os.pathsep.join(str(folder) for folder in (ROOT, ROOT / "tests" / "make", NETS))
