"""What the terminal says of two checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.cli import main


@pytest.mark.parametrize(("apart", "told"), [(5e-7, True), (1e-5, False)])
def test_deviations_of_the_size_of_rounding_are_said_to_be_such(
    apart: float, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = np.linspace(1, 2, 64, dtype=np.float32)
    for name, factor in (("target", 1 + apart), ("golden", 1.0)):
        np.savez(tmp_path / f"{name}.npz", weight=(weights * np.float64(factor)).astype(np.float32), bias=weights)
    files = [str(tmp_path / f"{name}.npz") for name in ("target", "golden")]
    assert main(["compare_weights", *files, "-o", str(tmp_path), "--exit-code"]) == 1
    said = capsys.readouterr().out
    assert "DIVERGENT: 1 of 2 parameters differ" in said
    assert ("machine epsilons apart: normal after steps of training, but not after a conversion" in said) is told


def test_the_first_that_differs_may_be_the_furthest_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = np.linspace(1, 2, 64, dtype=np.float32)
    for name, factors in (("target", (3, 2)), ("golden", (1, 1))):
        np.savez(tmp_path / f"{name}.npz", **{key: weights * factor for key, factor in zip("ab", factors, strict=True)})
    files = [str(tmp_path / f"{name}.npz") for name in ("target", "golden")]
    assert main(["compare_weights", *files, "-o", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = lines[lines.index("the furthest apart") + 1 :][:2]
    assert first.startswith("  a: deviates by 2 times its size ") and second.startswith(
        "  b: deviates by 1 of its size "
    )
    assert lines[lines.index("the furthest apart") - 1] == first
