"""Tensors that are read where they lie have the figures of those that a framework made readable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
import pytest
import torch

from msprobe_ms.arrays.in_memory import array_of
from msprobe_ms.arrays.statistics import summary, summary_of
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.mindspore.framework import MindSpore
from msprobe_ms.frameworks.pytorch.framework import PyTorch

generator = np.random.default_rng(11)
VALUES = np.abs(generator.normal(size=(6, 8, 5)) * 3).astype(np.float32)

VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda t: t,
    "a part": lambda t: t[2:5],
    "steps": lambda t: t[::2, 1:7:3],
    "other axes": lambda t: t.swapaxes(0, 2),
    "a row repeated": lambda t: t[0][0].expand(4, 5) if isinstance(t, torch.Tensor) else t[0][0].broadcast_to((4, 5)),
    "a scalar": lambda t: t[1][1][1],
}


def assert_read(framework: Framework, tensor: Any) -> None:
    elements = framework.elements(tensor)
    assert elements is not None
    assert np.array_equal(array_of(elements), framework.to_numpy(tensor))
    for sketch in (True, False):
        statistics, text = summary_of(elements, sketch=sketch)
        expected, sketched = summary(framework.to_numpy(tensor))
        assert repr(statistics) == repr(expected)
        assert text is None or text == sketched
        assert sketch or text is None


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_pytorch(view: Callable[[Any], Any]) -> None:
    framework = PyTorch()
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool,
                  torch.uint8, torch.int16, torch.int32, torch.float8_e4m3fn, torch.float8_e5m2):  # fmt: skip
        assert_read(framework, view(torch.from_numpy(VALUES).to(dtype)))
    assert_read(framework, torch.nn.Parameter(view(torch.from_numpy(VALUES))))


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_mindspore(view: Callable[[Any], Any]) -> None:
    framework = MindSpore()
    for dtype in ("float32", "float64", "float16", "int8", "int64", "bool_", "uint8", "int16", "int32", "bfloat16"):
        tensor = mindspore.Tensor(VALUES).astype(getattr(mindspore, dtype))
        if dtype == "bfloat16" and view is not VIEWS["whole"]:
            continue  # the CPU has no kernels of it for views
        assert_read(framework, view(tensor))
    assert_read(framework, mindspore.Parameter(VALUES))


def test_an_address_waits_for_what_computes_the_tensor() -> None:
    """Operators are only issued when they return: without waiting, memory that nothing was written to would be read."""
    framework, matrix = MindSpore(), mindspore.Tensor(generator.normal(size=(400, 400)).astype(np.float32) / 20)
    for _ in range(5):
        product = matrix
        for _ in range(8):
            product = mindspore.ops.matmul(product, matrix)
        elements = framework.elements(product)
        assert elements is not None
        assert summary_of(elements, sketch=True) == summary(product.asnumpy())


def test_what_pytorch_does_not_hold_as_it_is_shown() -> None:
    framework, numbers = PyTorch(), torch.from_numpy(VALUES)
    negative = torch.complex(numbers, numbers).conj().imag
    assert negative.is_neg()
    for tensor in (
        negative, numbers.to_sparse(), numbers.to(torch.complex64), torch.empty(0), torch.empty(3, device="meta"),
        torch.quantize_per_tensor(numbers, 0.1, 0, torch.qint8), numbers.as_subclass(type("Own", (torch.Tensor,), {})),
        numbers.repeat(300, 10, 1).swapaxes(0, 2),
    ):  # fmt: skip
        assert framework.elements(tensor) is None


def test_what_mindspore_does_not_hold_as_it_is_shown() -> None:
    framework = MindSpore()
    for tensor in (mindspore.Tensor(VALUES.astype(np.complex64)), mindspore.Tensor(np.zeros((0, 3), np.float32))):
        assert framework.elements(tensor) is None
