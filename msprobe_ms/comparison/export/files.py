"""Names of the files that are exported."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Naming(NamedTuple):
    """Where files go, and the time that their names hold."""

    folder: Path
    timestamp: str
    head: str = "export"

    def path(self, suffix: str, ending: str) -> Path:
        """Return ``{head}{suffix}_{time}{ending}`` in the folder."""
        return self.folder / f"{self.head}{suffix}_{self.timestamp}{ending}"
