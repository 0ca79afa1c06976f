"""One frozen, validated configuration; every mistake names file, key, value and what is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msprobe_ms.config.load import load_config
    from msprobe_ms.config.model import Config

__all__ = ["Config", "load_config"]


def __getattr__(name: str) -> Any:
    # What validates takes as long to import as all the rest, and is not needed before there is a configuration.
    if name == "load_config":
        from msprobe_ms.config.load import load_config

        return load_config
    if name == "Config":
        from msprobe_ms.config.model import Config

        return Config
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
