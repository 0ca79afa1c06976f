"""The import name of msprobe, so that scripts written for it run unchanged; everything comes from ``msprobe_ms``."""

from msprobe_ms.compat.neighbour import warn_of_conflict as _warn_of_conflict

_warn_of_conflict()
