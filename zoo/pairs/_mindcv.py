"""Changes that let a network of mindcv take the settings of its counterpart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def cells(net: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """Path and Cell of all whose class, or a class it derives from, is called ``kind``."""
    for path, cell in net.cells_and_names():
        if any(each.__name__ == kind for each in type(cell).__mro__):
            yield path, cell


def use_exact_gelu(net: Any) -> None:
    """Compute GELU by the error function; MindSpore approximates by tanh unless told otherwise."""
    for _, cell in cells(net, "GELU"):
        cell.approximate = "none"


def use_layer_norm_epsilon(net: Any, epsilon: float) -> None:
    """Let every LayerNorm add ``epsilon``; MindSpore's default is 1e-7, PyTorch's 1e-5."""
    from mindspore import ops

    for _, cell in cells(net, "LayerNorm"):
        cell.epsilon = epsilon
        cell.layer_norm = ops.LayerNorm(cell.begin_norm_axis, cell.begin_params_axis, epsilon)


def use_batch_norm(net: Any, epsilon: float, momentum: float) -> None:
    """Let every BatchNorm2d add ``epsilon`` and take ``momentum`` of the new statistics, as PyTorch counts it."""
    from mindspore import ops

    for _, cell in cells(net, "BatchNorm2d"):
        cell.eps, cell.momentum = epsilon, momentum
        cell.bn_train = ops.BatchNorm(is_training=True, epsilon=epsilon, momentum=momentum, data_format=cell.format)
        cell.bn_infer = ops.BatchNorm(is_training=False, epsilon=epsilon, data_format=cell.format)


def without_dropout(net: Any) -> None:
    """Let every Dropout pass its input through."""
    for _, cell in cells(net, "Dropout"):
        cell.p = 0.0


def make_constant(cell: Any, name: str) -> None:
    """Let a Parameter that is never trained be a Tensor, where the counterpart has no parameter for it."""
    from mindspore import Tensor

    value = Tensor(cell._params[name].asnumpy())
    delattr(cell, name)
    setattr(cell, name, value)


def pad_both_sides(convolution: Any) -> None:
    """Pad by half the kernel on both sides, as PyTorch does.

    MindSpore's "same" pads an even size under a stride of 2 by less before than after it.
    """
    from mindspore import ops

    height, width = (size // 2 for size in convolution.kernel_size)
    convolution.pad_mode, convolution.padding = "pad", (height, height, width, width)
    convolution.conv2d = ops.Conv2D(
        out_channel=convolution.out_channels,
        kernel_size=convolution.kernel_size,
        mode=1,
        pad_mode="pad",
        pad=convolution.padding,
        stride=convolution.stride,
        dilation=convolution.dilation,
        group=convolution.group,
    )


def group_of(index: int, sizes: Sequence[int]) -> tuple[int, int]:
    """Group and place in it of a layer, where a flat container holds what the counterpart groups by ``sizes``."""
    group = 0
    while index >= sizes[group]:
        index -= sizes[group]
        group += 1
    return group, index


def name_by_place(net: Any) -> None:
    """Name every parameter by its path; Cells put in the place of others would share names."""
    for path, parameter in net.parameters_and_names():
        parameter.name = path
