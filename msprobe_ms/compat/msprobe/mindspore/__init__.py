"""``from msprobe.mindspore import PrecisionDebugger, MsprobeStep, seed_all``."""

from msprobe_ms.mindspore import MsprobeStep, PrecisionDebugger, seed_all

__all__ = ["MsprobeStep", "PrecisionDebugger", "seed_all"]
