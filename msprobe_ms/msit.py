"""The interface of msit's inference tool, for scripts that import ``msit_llm``."""

from msprobe_ms.compat.msit import DumpConfig, register_hook, seed_all, set_dump_path

__all__ = ["DumpConfig", "register_hook", "seed_all", "set_dump_path"]
