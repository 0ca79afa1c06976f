"""The interface of MetaX's accuracy tool, for scripts that import ``maca_tools.accuracy``."""

from msprobe_ms.compat.maca import gen_report, record, record_switch, start_record

__all__ = ["gen_report", "record", "record_switch", "start_record"]
