"""``from msprobe.mindspore import PrecisionDebugger, seed_all``."""

from msprobe_ms.mindspore import PrecisionDebugger, seed_all

__all__ = ["PrecisionDebugger", "seed_all"]
