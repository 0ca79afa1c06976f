"""The import name of MetaX's tool: ``from maca_tools import accuracy``; everything comes from ``msprobe_ms``.

A module, so that where MetaX's package is installed as well Python takes that, and neither overwrites the other.
"""

import sys

from msprobe_ms import maca as accuracy

__all__ = ["accuracy"]

#: For ``import maca_tools.accuracy``.
sys.modules[f"{__name__}.accuracy"] = accuracy
