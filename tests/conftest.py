"""What every test may ask for; frameworks are imported only by tests that use them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

# A busy machine is no reason to fail.
# The suite has to stay short; MSPROBE_EXAMPLES=1000 asks for more of each property.
hypothesis.settings.register_profile(
    "patient", deadline=None, max_examples=int(os.environ.get("MSPROBE_EXAMPLES", "40"))
)
hypothesis.settings.load_profile("patient")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random figures in every run and every order of tests."""
    np.random.seed(20)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(20)


@pytest.fixture
def dump_path(tmp_path: Path) -> Path:
    """Where a test may dump to; not there yet, as in a user's first run."""
    return tmp_path / "dump"


@pytest.fixture
def ms() -> Any:
    """MindSpore in PyNative mode; kernels are launched one by one, many times faster on few cores."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.runtime.launch_blocking()
    return mindspore
