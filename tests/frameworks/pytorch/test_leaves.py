"""Leaves of PyTorch's tensors that C makes of what PyTorch tells are those that Python makes of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from msprobe_ms.arrays.one_pass import is_built
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.recording.output.leaf_texts import LeafTexts

pytestmark = pytest.mark.skipif(not is_built(), reason="the extension is not built")


class Own(torch.Tensor):
    """A user's class."""


def with_attribute() -> torch.Tensor:
    tensor = torch.ones(2)
    tensor.mark = 1  # type: ignore[attr-defined]
    return tensor


def freed(size: int, offset: int) -> torch.Tensor:
    tensor = torch.ones(64)[offset:]
    tensor.untyped_storage().resize_(size)
    return tensor


#: Tensors that are read where they lie; those that are looked at closer.
READ = (
    torch.tensor(2.5), torch.randn(3, 4), torch.randn(3, 4).T, torch.randn(8)[2:5], torch.ones(1).expand(4, 4),
    torch.tensor([1.0, float("nan"), float("inf")]), torch.arange(5), torch.tensor([True, False]),
    torch.randn(4).bfloat16(), torch.randn(4).half(), torch.randn(4).to(torch.float8_e4m3fn), torch.randn(4).double(),
    nn.Parameter(torch.randn(2, 2)), torch.randn(2, requires_grad=True), freed(256, 60), torch.randn(300, 300)[:, :200],
)  # fmt: skip
LEFT = (
    torch.empty(0), torch.ones(2, dtype=torch.complex64), torch.ones(2).to_sparse(), torch.ones(2, device="meta"),
    torch.randn(2).as_subclass(Own), with_attribute(), freed(0, 4), freed(128, 4), torch.randn(300, 300).T,
    torch.ones(2, dtype=torch.complex64).conj().imag,
)  # fmt: skip


@pytest.mark.parametrize("sketch", [True, False])
def test_leaves_are_those_of_python(sketch: bool) -> None:
    framework = PyTorch()
    texts = LeafTexts("torch.Tensor", sketch=sketch)
    for tensor in READ:
        elements = framework.elements(tensor)
        assert elements is not None
        assert texts.of_all((tensor,), framework.places()) == [texts.of(elements, framework.requires_grad(tensor))]
    assert texts.of_all(READ[:8], framework.places()) == [
        leaf for tensor in READ[:8] for leaf in texts.of_all([tensor], framework.places()) or ()
    ]
    for tensor in LEFT:
        assert framework.elements(tensor) is None
        assert texts.of_all([tensor], framework.places()) in (None, [None])
