"""Which APIs are recorded, as the package's own lists say; read without a framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from msprobe_ms.support.yaml_files import read_texts

_FOLDER = Path(__file__).parent


def listed(files: Iterable[Path]) -> dict[str, set[str]]:
    """Return the names of APIs in such lists, by the path of what holds them, ``torch.nn.functional``."""
    found: dict[str, set[str]] = {}
    for file in files:
        for path, names in read_texts(file, file.stat().st_size).items():
            found.setdefault(path, set()).update(names)
    return found


@cache
def recorded_apis() -> Mapping[str, set[str]]:
    """Return those of MindSpore and of PyTorch."""
    return listed(_FOLDER / name / "apis.yaml" for name in ("mindspore", "pytorch"))
