"""``from msprobe.mindspore.common.utils import MsprobeInitStep, MsprobeStep``."""

from msprobe_ms.mindspore import MsprobeInitStep, MsprobeStep

__all__ = ["MsprobeInitStep", "MsprobeStep"]
