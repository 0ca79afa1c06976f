"""Twins of convolutions, pooling and resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import functional, several, sizes
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin
from msprobe_ms.support.translation import tr

Sizes = int | Sequence[int]


def same_padding(shape: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Any:
    """What ``pad_mode="same"`` adds around each axis, from the last axis to the first, as ``functional.pad`` has it."""
    padding: list[int] = []
    for size, width, step, gap in zip(shape, kernel, stride, dilation, strict=True):
        total = max(0, (-(-size // step) - 1) * step + gap * (width - 1) + 1 - size)
        padding = [total // 2, total - total // 2, *padding]
    return padding


def _explicit_padding(padding: Sizes, spatial: int) -> list[int]:
    """``pad_mode="pad"``: one number, one for each axis, or two for each, as ``functional.pad`` has it."""
    each = several(padding, spatial)
    pairs = [(size, size) for size in each] if len(each) == spatial else list(zip(each[::2], each[1::2], strict=True))
    return [side for pair in reversed(pairs) for side in pair]


def _convolution(
    convolve: Callable[..., Any],
    spatial: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Sizes,
    pad_mode: str,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    steps, gaps = several(stride, spatial), several(dilation, spatial)
    if pad_mode == "same":
        input = functional.pad(input, same_padding(input.shape[2:], weight.shape[2:], steps, gaps))
    elif pad_mode == "pad":
        input = functional.pad(input, _explicit_padding(padding, spatial))
    return convolve(input, weight, bias, steps, 0, gaps, groups)


@twin("Functional.conv1d")
def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    return _convolution(functional.conv1d, 1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@twin("Functional.conv2d")
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    return _convolution(functional.conv2d, 2, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@twin("Functional.conv3d")
def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    return _convolution(functional.conv3d, 3, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@twin("Functional.conv3d_transpose")
def conv3d_transpose(
    inputs: Any,
    weight: Any,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    stride: Sizes = 1,
    dilation: Sizes = 1,
    group: int = 1,
    output_padding: Sizes = 0,
) -> Any:
    if pad_mode == "same":
        raise NotImplementedError(tr('pad_mode "same" of conv3d_transpose has no twin'))
    around = 0 if pad_mode == "valid" else padding
    return functional.conv_transpose3d(inputs, weight, None, stride, around, output_padding, group, dilation)


@twin("Functional.conv_transpose2d")
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Any:
    return functional.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def _both_sides(padding: Sizes, spatial: int) -> Sizes:
    """One number for each axis, where two equal ones were given for each."""
    if isinstance(padding, int) or len(padding) != 2 * spatial:
        return padding
    before, after = tuple(padding[::2]), tuple(padding[1::2])
    if before != after:
        raise NotImplementedError(tr("padding that differs from side to side has no twin"))
    return before


@twin("Functional.avg_pool1d")
def avg_pool1d(
    input_x: Any,
    kernel_size: Sizes = 1,
    stride: Sizes = 1,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    return functional.avg_pool1d(input_x, kernel_size, stride, _both_sides(padding, 1), ceil_mode, count_include_pad)


@twin("Functional.avg_pool2d")
def avg_pool2d(
    input_x: Any,
    kernel_size: Sizes = 1,
    stride: Sizes = 1,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
) -> Any:
    return functional.avg_pool2d(
        input_x, kernel_size, stride, _both_sides(padding, 2), ceil_mode, count_include_pad, divisor_override or None
    )


@twin("Functional.avg_pool3d")
def avg_pool3d(
    input_x: Any,
    kernel_size: Sizes = 1,
    stride: Sizes = 1,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
) -> Any:
    return functional.avg_pool3d(
        input_x, kernel_size, stride, _both_sides(padding, 3), ceil_mode, count_include_pad, divisor_override or None
    )


@twin("Functional.max_pool2d")
def max_pool2d(
    x: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:
    return functional.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@twin("Functional.max_pool3d")
def max_pool3d(
    x: Any,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return functional.max_pool3d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@twin("Functional.adaptive_max_pool2d", "MintFunctional.adaptive_max_pool2d")
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    return functional.adaptive_max_pool2d(input, output_size, return_indices)


@twin("Functional.adaptive_max_pool3d")
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    return functional.adaptive_max_pool3d(input, output_size, return_indices)


@twin("Primitive.AdaptiveMaxPool3D")
def adaptive_max_pool3d_with_indices(x: Any, output_size: Any) -> Any:
    return functional.adaptive_max_pool3d(x, sizes([output_size]), True)


@twin("Functional.adaptive_max_pool1d")
def adaptive_max_pool1d(input: Any, output_size: int) -> Any:
    return functional.adaptive_max_pool1d(input, output_size)


@twin("Functional.affine_grid")
def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Any:
    return functional.affine_grid(theta, sizes([size]), align_corners)


@twin("Functional.interpolate", "Functional.upsample")
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:
    options = {} if mode in ("nearest", "nearest-exact", "area") else {"align_corners": bool(align_corners)}
    return functional.interpolate(
        input, size, scale_factor, mode, recompute_scale_factor=recompute_scale_factor, **options
    )


@twin("Functional.col2im", "Tensor.col2im")
def col2im(input_x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any) -> Any:
    """Channels and places within a kernel are axes of their own: (N, C, places, columns)."""
    merged = input_x.reshape(input_x.shape[0], -1, input_x.shape[-1])
    return functional.fold(merged, sizes([output_size]), kernel_size, dilation, padding_value, stride)


@twin("Functional.fold", "Tensor.fold")
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Channels and places within a kernel are axes of their own, as in ``col2im``."""
    return col2im(input, output_size, kernel_size, dilation, padding, stride)


@twin("Functional.unfold", "Tensor.unfold")
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    return functional.unfold(input, kernel_size, dilation, padding, stride)


@twin("Functional.lrn")
def lrn(
    x: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Any:
    padded = functional.pad(x**2, (0, 0, 0, 0, depth_radius, depth_radius))
    around = sum(padded[:, first : first + x.shape[1]] for first in range(2 * depth_radius + 1))
    return x / (bias + alpha * around) ** beta


@twin("Functional.batch_norm")
def batch_norm(
    input_x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    return (
        functional.batch_norm(
            input_x, running_mean.detach().clone(), running_var.detach().clone(), weight, bias, training, momentum, eps
        )
        if training
        else functional.batch_norm(input_x, running_mean, running_var, weight, bias, False, momentum, eps)
    )


@twin("Functional.rms_norm")
def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-6) -> Any:
    """The result, and one divided by the root mean square."""
    axes = tuple(range(x.dim() - gamma.dim(), x.dim()))
    inverse = torch.rsqrt(torch.mean(x**2, axes, keepdim=True) + epsilon)
    return x * inverse * gamma, inverse
