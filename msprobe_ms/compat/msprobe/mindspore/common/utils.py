"""``from msprobe.mindspore.common.utils import MsprobeStep``."""

from msprobe_ms.mindspore import MsprobeStep

__all__ = ["MsprobeStep"]
