"""The base of the nets in PyTorch."""

from __future__ import annotations

from typing import Any

from torch import nn


class Module(nn.Module):
    """A module whose children may be moved to other names; its own code goes on using the old ones.

    ``moved``: name in the code → where that child is now, a path from this module.
    """

    def __init__(self) -> None:
        super().__init__()
        self.moved: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        if name != "moved" and (path := self.__dict__.get("moved", {}).get(name)) is not None:
            return self.get_submodule(path)
        return super().__getattr__(name)
