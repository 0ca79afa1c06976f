"""Scores that a mask has filled: beside -1e9 all else is rounding, and yet a fault in it is seen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.comparison.measuring.mask_fills import is_filled
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.reader import read_dump

FILLS = [-1e9, -1e4, -65504.0, float(np.finfo(np.float32).min)]


def scores(fill: float, scale: float = 1.0) -> np.ndarray:
    values = scale * np.random.default_rng(0).standard_normal((4, 16, 16))
    return np.where(np.tri(16, dtype=bool), values, fill).astype(np.float32)


def softmax(array: np.ndarray) -> np.ndarray:
    powers = np.exp(array.astype(np.float64) - array.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


def write_dump(folder: Path, mode: str, filled: np.ndarray) -> Path:
    """Scores, a softmax of them, and what comes before: equal on both sides."""
    tensors = folder / "dump_tensor_data"
    tensors.mkdir(parents=True)

    def leaf(name: str, array: np.ndarray) -> dict[str, object]:
        wide = array.astype(np.float64)
        figures = wide.max(), wide.min(), wide.mean(), np.sqrt((wide**2).sum())
        found: dict[str, object] = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": list(array.shape)}
        found |= dict(zip(("Max", "Min", "Mean", "Norm"), map(float, figures), strict=True))
        if mode == "tensor":
            np.save(tensors / f"{name}.npy", array)
            found["data_name"] = f"{name}.npy"
        return found

    before = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    name, call = "Cell.attention.Attention.forward.0", "Functional.softmax.0.forward"
    data = {
        name: {"input_args": [leaf(f"{name}.input.0", before)], "input_kwargs": {}, "output": []},
        call: {
            "input_args": [leaf(f"{call}.input.0", filled)],
            "input_kwargs": {},
            "output": [leaf(f"{call}.output.0", softmax(filled))],
        },
    }
    content = {"task": mode, "level": "mix", "framework": "mindspore", "data": data}
    (folder / "dump.json").write_text(json.dumps(content))
    (folder / "construct.json").write_text(json.dumps({name: None, call: name}))
    return folder


def compared(tmp_path: Path, mode: str, target: np.ndarray, golden: np.ndarray) -> Comparison:
    sides = [write_dump(tmp_path / side, mode, array) for side, array in (("target", target), ("golden", golden))]
    return compare_dumps(*map(read_dump, sides), Options())


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize("fill", FILLS)
def test_a_missing_scale_before_a_softmax_is_not_the_softmaxs(tmp_path: Path, mode: str, fill: float) -> None:
    comparison = compared(tmp_path, mode, scores(fill, 2.0), scores(fill))
    (origin,) = comparison.origins
    assert origin.target == "Functional.softmax.0.forward.input.0"


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize("fill", FILLS)
def test_rounding_beside_a_fill_is_no_difference(tmp_path: Path, mode: str, fill: float) -> None:
    golden = scores(fill)
    rounding = 1e-7 * np.random.default_rng(2).standard_normal(golden.shape)
    target = (golden * np.where(golden == np.float32(fill), 1, 1 + rounding)).astype(np.float32)
    assert compared(tmp_path, mode, target, golden).origins == []


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
def test_another_mask_is_seen(tmp_path: Path, mode: str) -> None:
    golden = scores(-1e9)
    target = golden.copy()
    target[:, -1, :4] = -1e9
    (origin,) = compared(tmp_path, mode, target, golden).origins
    assert origin.target == "Functional.softmax.0.forward.input.0"


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
@pytest.mark.parametrize("fill", [-np.inf, -3e38, -6e8, -9.9e8])
def test_another_fill_is_seen(tmp_path: Path, mode: str, fill: float) -> None:
    assert compared(tmp_path, mode, scores(fill), scores(-1e9)).verdict == "divergent"


@pytest.mark.parametrize(
    "extremes",
    [(3.0, -3.0), (1.0, 1e-9), (0.0, -1e9), (50.0, -1e3), (float("nan"), -1e9), (3.0, -np.inf), (None, None)],
)
def test_what_is_no_fill(extremes: tuple[float | None, float | None]) -> None:
    assert not is_filled(*extremes)


def test_filled_scores_beside_a_tensor_of_another_shape_are_told_by_their_shapes(tmp_path: Path) -> None:
    (origin,) = compared(tmp_path, "tensor", scores(-1e9)[:, :, :8], scores(-1e9)).origins
    assert "has shape [4, 16, 8] against [4, 16, 16]" in origin.reason
