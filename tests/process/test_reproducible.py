"""The same comparison writes the same files, whatever order a process gives to sets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LENET = Path(__file__).parents[1] / "data" / "golden"
SEEDS = ("1", "2")


def compared(target: Path, golden: Path, out: Path, seed: str) -> dict[str, bytes]:
    """Compare in a process of its own; return what was written, without the time."""
    command = [sys.executable, "-m", "msprobe_ms", "compare", "-tp", target, "-gp", golden, "-lm", "-o", out, "--csv"]
    subprocess.run([*map(str, command)], check=True, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True)
    return {
        re.sub(r"\d{14}", "TIME", path.name): re.sub(rb"20\d{12}", b"TIME", path.read_bytes()) for path in out.iterdir()
    }


@pytest.mark.parametrize(
    ("target", "golden"),
    [
        ("mindspore_lenet_L0_statistics/step0", "pytorch_lenet_L0_tensor/proc16325"),
        ("mindspore_lenet_L1_tensor", "mindspore_lenet_L1_tensor"),
    ],
)
def test_hash_seeds_change_no_byte(tmp_path: Path, target: str, golden: str) -> None:
    first, second = (compared(LENET / target, LENET / golden, tmp_path / seed, seed) for seed in SEEDS)
    assert first.keys() == second.keys() and any(name.endswith(".html") for name in first)
    for name, content in first.items():
        assert content == second[name], name
