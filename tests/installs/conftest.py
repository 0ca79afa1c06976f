"""The wheel of the working tree, built once."""

from __future__ import annotations

from pathlib import Path

import pytest
from installs import build_wheel, copy_of_sources


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sources(tmp_path_factory.mktemp("packaging") / "source")


@pytest.fixture(scope="session")
def wheel(source: Path) -> Path:
    return build_wheel(source, source.parent / "wheel")
