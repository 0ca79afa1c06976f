"""``from msprobe.pytorch import PrecisionDebugger, compare, compare_distributed, seed_all``."""

from msprobe_ms.compat.compare import compare, compare_distributed
from msprobe_ms.pytorch import PrecisionDebugger, seed_all

__all__ = ["PrecisionDebugger", "compare", "compare_distributed", "seed_all"]
