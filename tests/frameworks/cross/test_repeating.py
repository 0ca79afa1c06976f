"""What repeats calls changes and measures tensors alike in both frameworks, and leaves those of the script alone."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
import pytest
import torch

from msprobe_ms.frameworks.mindspore.repeating import MindSporeRepeater
from msprobe_ms.frameworks.pytorch.repeating import TorchRepeater

_DTYPES = ("float16", "bfloat16", "float32", "float64")
_VALUES = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def _pair(dtype: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    ours = MindSporeRepeater(), mindspore.Tensor(_VALUES).astype(getattr(mindspore, dtype))
    return ours, (TorchRepeater(), torch.tensor(_VALUES).to(getattr(torch, dtype)))


@pytest.mark.parametrize("dtype", _DTYPES)
def test_changes_are_those_of_the_other_framework(dtype: str) -> None:
    made = []
    for repeater, tensor in _pair(dtype):
        wide = "float32" if dtype in ("float16", "bfloat16") else dtype
        whole = str(tensor)
        changed = {
            "moved": repeater.moved(tensor, 3, 2),
            "flipped": repeater.flipped(tensor),
            "exchanged": repeater.exchanged(tensor),
            "magnitudes": repeater.magnitudes(tensor),
            "copy": repeater.copy(tensor),
            "kept": repeater.kept(tensor),
            "like": repeater.like(repeater.widened(tensor), tensor),
        }
        assert all(repeater.float_name(each) == dtype for each in changed.values())
        assert repeater.float_name(repeater.widened(tensor)) == "float32"
        assert all(
            repeater.storage(each) != repeater.storage(tensor) for each in changed.values() if each is not tensor
        )
        assert str(tensor) == whole
        made.append({name: [repeater.measure(tensor, each, 0.0), wide] for name, each in changed.items()})
        assert made[-1]["like"][0].largest == made[-1]["copy"][0].largest == made[-1]["kept"][0].largest == 0
        assert made[-1]["moved"][0].changed == made[-1]["flipped"][0].changed == 12
    assert made[0] == made[1]


@pytest.mark.parametrize("special", [False, True])
def test_large_tensors_are_measured_as_small_ones_are(special: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    original = np.random.default_rng(1).standard_normal((300, 300)).astype(np.float32)
    other = original.copy()
    other[3, 4] += 0.5
    other[9] *= np.float32(1.001)
    if special:
        original[2, 2] = other[2, 2] = np.inf
        other[0, 0], other[1, 1] = np.nan, np.inf
    found = [
        TorchRepeater().measure(torch.tensor(original), torch.tensor(other), 2e-4, 2e-7),
        MindSporeRepeater().measure(mindspore.Tensor(original), mindspore.Tensor(other), 2e-4, 2e-7),
    ]
    on_device = MindSporeRepeater()
    monkeypatch.setattr(on_device, "_on_host", False)  # the same with operators, as on a device
    found.append(on_device.measure(mindspore.Tensor(original), mindspore.Tensor(other), 2e-4, 2e-7))
    assert found[0] == found[1] == found[2]
    assert (found[0].largest, found[0].nans, found[0].infinities) == (0.5, int(special), int(special))
    assert found[0].changed in (299, 300, 301)
