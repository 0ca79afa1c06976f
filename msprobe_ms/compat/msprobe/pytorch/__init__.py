"""``from msprobe.pytorch import PrecisionDebugger, seed_all``."""

from msprobe_ms.pytorch import PrecisionDebugger, seed_all

__all__ = ["PrecisionDebugger", "seed_all"]
