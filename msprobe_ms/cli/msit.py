"""Console command ``msit``: msit's own where its package is installed too, else ``msprobe``, which has ``llm``."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from msprobe_ms.cli import main as msprobe

_OURS = f"{__name__}:main"


def main() -> Any:
    """Run the command; returns its exit status.

    Whichever package is installed last puts the script there; ours hands on what belongs to the other.
    """
    for script in metadata.entry_points(group="console_scripts", name="msit"):
        if script.value != _OURS:
            return script.load()()
    return msprobe()
