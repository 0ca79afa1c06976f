"""One frozen, validated configuration; every mistake names file, key, value and what is accepted."""

from msprobe_ms.config.load import load_config
from msprobe_ms.config.model import Config

__all__ = ["Config", "load_config"]
