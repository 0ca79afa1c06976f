"""Where this package lies on the disk."""

from __future__ import annotations

import os

#: The folder of ``msprobe_ms``, with a separator at its end: files below it are never a user's.
PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
