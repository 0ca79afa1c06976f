"""The import name of msit's inference tool; everything comes from ``msprobe_ms``.

A module, so that where msit's package is installed as well Python takes that, and neither overwrites the other.
"""

from msprobe_ms.msit import DumpConfig, register_hook, seed_all, set_dump_path

__all__ = ["DumpConfig", "register_hook", "seed_all", "set_dump_path"]
