"""Narrow floats widened to float32, against what the frameworks themselves make of the same numbers."""

from __future__ import annotations

import mindspore
import numpy as np
import pytest
import torch

from msprobe_ms.arrays.dtypes import widen

CODES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
)
def test_float8_is_what_torch_makes_of_every_code(name: str) -> None:
    expected = torch.tensor(CODES).view(getattr(torch, name)).to(torch.float32).numpy()
    np.testing.assert_array_equal(widen(CODES, f"torch.{name}"), expected)


@pytest.mark.parametrize("name", ["hifloat8", "float8_e4m3fn", "float8_e5m2"])
def test_mindspore_encodes_every_value_to_the_code_it_came_from(name: str) -> None:
    dtype = getattr(mindspore, name)
    values = widen(CODES, str(dtype))
    known = ~np.isnan(values)  # a NaN has codes to choose from
    assert known.sum() >= 249
    codes = mindspore.Tensor(values[known], dtype=dtype).asnumpy().view(np.uint8)
    np.testing.assert_array_equal(codes, CODES[known])


def test_hifloat8_between_its_values() -> None:
    """MindSpore's own encoder cuts off what does not fit: the value is the next one towards zero."""
    numbers = np.float32([0.1, 0.3, 5.3, 100, 3000, 1e-5, 0.7])
    codes = mindspore.Tensor(numbers, dtype=mindspore.hifloat8).asnumpy().view(np.uint8)
    every = np.sort(widen(CODES[:0x6F], "HiFloat8"))
    below = [every[every <= number].max() for number in numbers]
    np.testing.assert_array_equal(widen(codes, "HiFloat8"), below)


def test_bfloat16_is_the_upper_half_of_a_float32() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    expected = torch.tensor(codes.view(np.int16)).view(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(widen(codes, "BFloat16"), expected)
