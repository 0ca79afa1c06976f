"""Write one file for equal layer mappings that ``-lm`` alone found for many pairs of dumps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msprobe_ms.comparison.pairing.automatic import EXCHANGED
from msprobe_ms.support.log import logger

#: How the name of every such file begins.
_BEGINNING = "layer_mapping"


class SharedMapping:
    """Shares the mapping file of the first pair, ``layer_mapping_{timestamp}.yaml``, among those of equal mapping.

    A pair of the same mapping, confidences apart, loses its file to it; any other keeps its own.
    """

    def __init__(self, output: Path, timestamp: str) -> None:
        self.path = output / f"{_BEGINNING}_{timestamp}.yaml"
        self._content: list[str] | None = None

    def files(self, files: list[Path]) -> list[Path]:
        """Return the files of a pair as they are afterwards."""
        return [self._kept(file) if file.name.startswith(f"{_BEGINNING}_") else file for file in files]

    def _kept(self, file: Path) -> Path:
        try:
            content = list(_meaning(file.read_text(encoding="utf-8")))
            if content == self._content:
                file.unlink()
                return self.path
            kept = file
            if self._content is None:
                kept, self._content = file.replace(self.path), content
        except OSError:  # it is there, but cannot be changed: better twice than not at all
            return file
        _warn(content, kept)
        return kept


def _warn(content: list[str], file: Path) -> None:
    told = [line for line in content if line.startswith(EXCHANGED)]
    if told:
        logger.warning("-lm: weights look exchanged (%d, see %s): %s", len(told), file, told[0].removeprefix(EXCHANGED))


def _meaning(text: str) -> Iterator[str]:
    """Its rules, and which weights look exchanged."""
    for line in text.splitlines():
        if line.startswith(EXCHANGED):
            yield line
        elif rule := line.partition("  # ")[0].partition("# ")[0].rstrip():
            yield rule
