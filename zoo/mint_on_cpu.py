"""The functions and Cells of ``mint`` that have no kernel on a CPU, by arithmetic that has one."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mint, ops

F = mint.nn.functional


def replace() -> None:
    """Put them in their places; before a zoo is imported, since some bind them by name."""
    for owner, functions in ((mint, _MINT), (F, _FUNCTIONAL)):
        for name, function in functions.items():
            setattr(owner, name, function)
    for name, method in _METHODS.items():
        setattr(ms.Tensor, name, method)
    from mindspore.mint.nn.layer import conv

    conv.conv2d_ext_op = conv.conv2d_padding_op = lambda *arguments: F.conv2d(*arguments)
    for name, construct in _CONSTRUCTS.items():
        getattr(mint.nn, name).construct = construct


def _pair(value: Any) -> tuple[Any, Any]:
    return (value, value) if isinstance(value, (int, float)) else tuple(value) * (2 // len(value))


def _typed(tensor: Any, dtype: Any) -> Any:
    return tensor if dtype is None else tensor.astype(dtype)


# What is made.


def zeros_like(x: Any, *, dtype: Any = None) -> Any:
    return ops.zeros(x.shape, _dtype(x, dtype))


def ones_like(x: Any, *, dtype: Any = None) -> Any:
    return ops.ones(x.shape, _dtype(x, dtype))


def full_like(x: Any, value: Any, *, dtype: Any = None) -> Any:
    return ops.full(x.shape, value, dtype=_dtype(x, dtype))


def _dtype(x: Any, dtype: Any) -> Any:
    return x.dtype if dtype is None else dtype


def linspace(start: float, end: float, steps: int, *, dtype: Any = None) -> Any:
    return ms.Tensor(np.linspace(start, end, steps).astype(np.float32), dtype or ms.float32)


def rand(*size: Any, dtype: Any = None, **_: Any) -> Any:
    return _drawn(np.random.random_sample, size, dtype)


def randn(*size: Any, dtype: Any = None, **_: Any) -> Any:
    return _drawn(np.random.standard_normal, size, dtype)


def rand_like(x: Any, *, dtype: Any = None) -> Any:
    return rand(x.shape, dtype=_dtype(x, dtype))


def randn_like(x: Any, *, dtype: Any = None) -> Any:
    return randn(x.shape, dtype=_dtype(x, dtype))


def _drawn(draw: Any, size: tuple[Any, ...], dtype: Any) -> Any:
    shape = tuple(size[0]) if size and not isinstance(size[0], int) else size
    return ms.Tensor(np.asarray(draw(shape), np.float32), dtype or ms.float32)


# Shapes and places.


def stack(tensors: Any, dim: int = 0) -> Any:
    return ops.stack(list(tensors), dim)


def unbind(x: Any, dim: int = 0) -> Any:
    return x.unbind(dim)


def repeat_interleave(x: Any, repeats: Any, dim: int | None = None, **_: Any) -> Any:
    if isinstance(repeats, ms.Tensor):
        repeats = repeats.asnumpy()
    if dim is None:
        x, dim = x.reshape(-1), 0
    places = np.repeat(np.arange(x.shape[dim]), repeats)
    return ops.gather(x, ms.Tensor(places.astype(np.int32)), dim)


def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    if dims is None:
        return roll(x.reshape(-1), shifts, 0).reshape(x.shape)
    shifts, dims = (([each] if isinstance(each, int) else each) for each in (shifts, dims))
    for shift, dim in zip(shifts, dims, strict=True):
        x = ops.gather(x, ms.Tensor(np.roll(np.arange(x.shape[dim]), shift).astype(np.int32)), dim)
    return x


def index_select(x: Any, dim: int, index: Any) -> Any:
    return ops.gather(x, index, dim)


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    return ops.tensor_scatter_elements(x, index, src, dim, "add")


def nonzero(x: Any, *, as_tuple: bool = False) -> Any:
    places = ops.NonZero()(x)
    return tuple(places[:, axis] for axis in range(x.ndim)) if as_tuple else places


def where(condition: Any, *values: Any) -> Any:
    return ops.where(condition, *values) if values else nonzero(condition, as_tuple=True)


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return ops.topk(x, k, dim, largest, sorted)


def sort(x: Any, *, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return ops.sort(x, dim, descending)


def argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return ops.sort(x, dim, descending)[1]


def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return ops.argmax(x, dim, keepdim)


def cumsum(x: Any, dim: int, dtype: Any = None) -> Any:
    if x.dtype in (ms.bool_, ms.int64):
        return _typed(ops.cumsum(x.astype(ms.int32), dim), dtype or ms.int64)
    return ops.cumsum(_typed(x, dtype), dim)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    return ms.Tensor(np.bincount(x.asnumpy(), minlength=minlength))


def tril(x: Any, diagonal: int = 0) -> Any:
    return ops.tril(x, diagonal)


def pad(x: Any, pad: Any, mode: str = "constant", value: Any = 0.0) -> Any:
    if mode != "constant":
        return ops.pad(x, pad, mode)
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + [tuple(pad[i : i + 2]) for i in range(0, len(pad), 2)][::-1]
    for dim, (before, after) in enumerate(widths):
        if before < 0 or after < 0:
            x = ops.narrow(x, dim, max(-before, 0), x.shape[dim] + min(before, 0) + min(after, 0))
        edges = [_edge(x, dim, width, value) for width in (before, after)]
        parts = [part for part in (edges[0], x, edges[1]) if part is not None]
        x = ops.cat(parts, dim) if len(parts) > 1 else x
    return x


def _edge(x: Any, dim: int, width: int, value: Any) -> Any:
    return ops.full((*x.shape[:dim], width, *x.shape[dim + 1 :]), value, dtype=x.dtype) if width > 0 else None


def one_hot(x: Any, num_classes: int = -1) -> Any:
    count = num_classes if num_classes > 0 else int(x.max()) + 1
    return ops.one_hot(x.astype(ms.int32), count, ms.Tensor(1, ms.int32), ms.Tensor(0, ms.int32)).astype(ms.int64)


# Sums and products.


def einsum(equation: str, *operands: Any) -> Any:
    """The product over all letters, then the sum over those that are left out; for two operands at most."""
    inputs, _, output = equation.replace(" ", "").partition("->")
    letters = output + "".join(sorted(set(inputs.replace(",", "")) - set(output)))
    product = None
    for operand, names in zip(operands, inputs.split(","), strict=True):
        order = sorted(range(len(names)), key=lambda axis: letters.index(names[axis]))
        shape = [operand.shape[names.index(letter)] if letter in names else 1 for letter in letters]
        spread = ops.transpose(operand, tuple(order)).reshape(shape)
        product = spread if product is None else product * spread
    left_out = tuple(range(len(output), len(letters)))
    return product.sum(left_out) if left_out else product


def outer(x: Any, y: Any) -> Any:
    return x.reshape(-1, 1) * y.reshape(1, -1)


def baddbmm(x: Any, one: Any, other: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    product = ops.matmul(one, other) * alpha
    return product + x * beta if beta else product


def addmm(x: Any, one: Any, other: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    return x * beta + ops.matmul(one, other) * alpha


def var(x: Any, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Any:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    count = math.prod(x.shape[axis] for axis in axes)
    apart = x - x.mean(axes, keep_dims=True)
    return (apart * apart).sum(axes, keepdims=keepdim) / (count - correction)


def std(x: Any, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Any:
    return ops.sqrt(var(x, dim, correction=correction, keepdim=keepdim))


def norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if p not in (2, 2.0, "fro", None):
        raise NotImplementedError(f"norm of order {p}")
    axes = tuple(range(x.ndim)) if dim is None else dim
    return ops.sqrt((x * x).sum(axes, keepdims=keepdim))


def normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return x / ops.clamp(norm(x, p, dim, True), min=eps)


def log2(x: Any) -> Any:
    return ops.log(x) / math.log(2)


# Functions of networks.


def embedding(tokens: Any, table: Any, padding_idx: int | None = None, **_: Any) -> Any:
    rows = ops.gather(table, tokens, 0)
    if padding_idx is None:
        return rows
    padded = (tokens == padding_idx % table.shape[0]).unsqueeze(-1)
    return ops.where(padded, ops.stop_gradient(rows), rows)


def gelu(x: Any, *, approximate: str = "none") -> Any:
    return ops.gelu(x, approximate)


def log_softmax(x: Any, dim: int | None = None, dtype: Any = None) -> Any:
    return ops.log_softmax(_typed(x, dtype), dim)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    return ops.leaky_relu(x, negative_slope)


def logsigmoid(x: Any) -> Any:
    return -ops.softplus(-x)


def relu6(x: Any, inplace: bool = False) -> Any:
    return ops.relu6(x)


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return ops.relu(x) + ops.log(1 + ops.exp(-ops.abs(x)))


def relu_(x: Any) -> Any:
    return ops.relu(x)


def elu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return ops.elu(x, alpha)


def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    weight = ops.ones(shape, x.dtype) if weight is None else weight
    bias = ops.zeros(shape, x.dtype) if bias is None else bias
    begin = x.ndim - len(shape)
    return ops.LayerNorm(begin, begin, eps)(x, weight, bias)[0]


def batch_norm(
    x: Any,
    mean: Any,
    variance: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    shape = x.shape
    image = x if x.ndim == 4 else x.reshape(shape[0], shape[1], -1, 1)
    normed = ops.BatchNorm(training, eps, momentum)(image, weight, bias, mean, variance)[0]
    return normed.reshape(shape)


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    dilation = _pair(dilation)
    if padding == "same":
        reach = [d * (size - 1) for d, size in zip(dilation, weight.shape[-2:], strict=True)]
        x = pad(x, [each for r in reach[::-1] for each in (r // 2, r - r // 2)])
    padding = (0, 0) if isinstance(padding, str) else _pair(padding)
    return ops.conv2d(x, weight, bias, _pair(stride), "pad", padding, dilation, groups)


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    stride, dilation = (each if isinstance(each, int) else each[0] for each in (stride, dilation))
    if not isinstance(padding, str):
        padding = (0, padding if isinstance(padding, int) else padding[0])
    wide = conv2d(x.unsqueeze(2), weight.unsqueeze(2), bias, (1, stride), padding, (1, dilation), groups)
    return wide.squeeze(2)


def conv_transpose2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    stride, padding, more, dilation = (_pair(each) for each in (stride, padding, output_padding, dilation))
    kernel = weight.shape[2:]
    size = [
        (x.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + 1 + more[i] for i in (0, 1)
    ]
    channels = weight.shape[1] * groups
    edges = (padding[0], padding[0], padding[1], padding[1])
    spread = ops.Conv2DTranspose(weight.shape[0], kernel, "pad", edges, stride=stride, dilation=dilation, group=groups)
    y = spread(x, weight, (x.shape[0], channels, *size))
    return y if bias is None else y + bias.reshape(1, -1, 1, 1)


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, **_: Any
) -> Any:
    stride = kernel_size if stride is None else stride
    return ops.max_pool2d(x, kernel_size, stride, padding, dilation, False, ceil_mode)


def avg_pool2d(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *rest: Any, **named: Any) -> Any:
    return ops.avg_pool2d(x, kernel_size, kernel_size if stride is None else stride, padding, *rest, **named)


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Any:
    if _pair(output_size) == (1, 1):
        return x.mean((2, 3), keep_dims=True)
    return ops.adaptive_avg_pool2d(x, output_size)


def adaptive_avg_pool1d(x: Any, output_size: Any) -> Any:
    if output_size not in (1, (1,)):
        raise NotImplementedError(f"adaptive pooling to {output_size}")
    return x.mean(-1, keep_dims=True)


def interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    **_: Any,
) -> Any:
    if size is None:
        size = [int(each * factor) for each, factor in zip(x.shape[2:], _pair(scale_factor), strict=True)]
    size = (size,) if isinstance(size, int) else tuple(size)
    if size == x.shape[2:]:
        return x
    if mode == "nearest":
        for axis, wanted in enumerate(size, 2):
            x = ops.gather(x, ms.Tensor((np.arange(wanted) * x.shape[axis] // wanted).astype(np.int32)), axis)
        return x
    if mode in ("linear", "bilinear"):
        for axis, wanted in enumerate(size, 2):
            x = _linear(x, axis, wanted, bool(align_corners))
        return x
    return ops.interpolate(x, tuple(size), None, mode, align_corners)


def _linear(x: Any, axis: int, wanted: int, align_corners: bool) -> Any:
    given = x.shape[axis]
    if given == wanted:
        return x
    at = np.arange(wanted)
    places = at * (given - 1) / max(wanted - 1, 1) if align_corners else ((at + 0.5) * given / wanted - 0.5).clip(0)
    below = np.floor(places).astype(np.int32)
    above = np.minimum(below + 1, given - 1)
    part = (places - below).astype(np.float32).reshape([-1 if axis == each else 1 for each in range(x.ndim)])
    low, high = (ops.gather(x, ms.Tensor(index.astype(np.int32)), axis) for index in (below, above))
    return low * ms.Tensor(1 - part) + high * ms.Tensor(part)


def grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Any:
    """Four rows gathered and weighed: the gradient of the kernel for a CPU writes beyond its buffers."""
    if mode != "bilinear" or padding_mode != "zeros":
        raise NotImplementedError(f"{mode}, {padding_mode}")
    rows, channels, height, width = x.shape
    flat = x.reshape(rows, channels, height * width).transpose(0, 2, 1)
    at = [
        (grid[..., axis] + 1) / 2 * (size - 1) if align_corners else ((grid[..., axis] + 1) * size - 1) / 2
        for axis, size in ((0, width), (1, height))
    ]
    low = [ops.floor(ops.stop_gradient(each)) for each in at]
    sampled = 0
    for right, down in ((0, 0), (0, 1), (1, 0), (1, 1)):
        across, along = low[0] + right, low[1] + down
        weight = (1 - ops.abs(at[0] - across)) * (1 - ops.abs(at[1] - along))
        inside = (across >= 0) & (across < width) & (along >= 0) & (along < height)
        index = ops.clamp(along, 0, height - 1) * width + ops.clamp(across, 0, width - 1)
        index = index.astype(ms.int32).reshape(rows, -1)
        index = index + ms.Tensor(np.arange(rows, dtype=np.int32).reshape(-1, 1) * height * width)
        values = ops.gather(flat.reshape(-1, channels), index.reshape(-1), 0).reshape(*weight.shape, channels)
        sampled = sampled + values * (weight * inside.astype(x.dtype)).expand_dims(-1)
    return sampled.transpose(0, 3, 1, 2)


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    return ops.unfold(x, kernel_size, dilation, padding, stride)


def mse_loss(x: Any, y: Any, reduction: str = "mean") -> Any:
    return ops.mse_loss(x, y, reduction)


# Methods that change a tensor in place.


def _set(array: Any) -> Any:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        self.assign_value(ms.Tensor(np.asarray(array(self, *arguments, **named)), self.dtype))
        return self

    return method


def _normal(self: Any, mean: float = 0.0, std: float = 1.0, **_: Any) -> Any:
    return np.random.normal(mean, std, self.shape)


def _uniform(self: Any, low: float = 0.0, high: float = 1.0, **_: Any) -> Any:
    return np.random.uniform(low, high, self.shape)


def _scatter(self: Any, dim: int, index: Any, src: Any) -> Any:
    array = self.asnumpy().copy()
    np.put_along_axis(array, index.asnumpy(), src.asnumpy() if isinstance(src, ms.Tensor) else src, dim)
    return array


def _repeat(self: Any, *sizes: Any) -> Any:
    sizes = sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
    return ops.tile(self, tuple(sizes))


def _index_add(self: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    return ops.index_add(self, index.astype(ms.int32), source * alpha, dim)


def _index_add_here(self: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    if dim != 0:
        raise NotImplementedError(f"adding in place along axis {dim}")
    if index.shape[0] == 0:
        return self
    self[:] = self + ops.unsorted_segment_sum(source * alpha, index, self.shape[0])
    return self


def _masked_fill_here(self: Any, mask: Any, value: Any) -> Any:
    self[:] = ops.masked_fill(self, mask, ms.Tensor(value, self.dtype))
    return self


_MINT = {
    each.__name__: each
    for each in (
        *(zeros_like, ones_like, full_like, linspace, rand, randn, rand_like, randn_like, stack),
        *(unbind, log2, repeat_interleave, roll, index_select),
        *(scatter_add, nonzero, where, topk, sort, argsort, argmax, cumsum, bincount, tril, einsum, outer, baddbmm),
        *(addmm, var, std, norm),
    )
}
_MINT["logsumexp"] = ops.logsumexp
_FUNCTIONAL = {
    each.__name__: each
    for each in (
        *(embedding, pad, one_hot, normalize, gelu, log_softmax, leaky_relu, logsigmoid, relu6, relu_, softplus, elu),
        *(layer_norm, batch_norm),
        *(conv2d, conv1d, conv_transpose2d, max_pool2d, avg_pool2d, adaptive_avg_pool2d, adaptive_avg_pool1d),
        *(interpolate, grid_sample, unfold, mse_loss),
    )
}
_FUNCTIONAL["mish"], _FUNCTIONAL["selu"] = ops.mish, ops.selu
_METHODS = {
    "normal_": _set(_normal),
    "uniform_": _set(_uniform),
    "fill_": _set(lambda self, value: np.full(self.shape, value)),
    "zero_": _set(lambda self: np.zeros(self.shape)),
    "scatter_": _set(_scatter),
    "repeat": _repeat,
    "roll": roll,
    "index_add": _index_add,
    "index_add_": _index_add_here,
    "log_": _set(lambda self: np.log(self.asnumpy())),
    "masked_fill_": _masked_fill_here,
    "set_data": lambda self, data, *_: self.assign_value(data),
    "clone": lambda self: ops.Identity()(self),
    "repeat_interleave": repeat_interleave,
}
_CONSTRUCTS = {
    "LayerNorm": lambda self, x: F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps),
    "Conv2d": lambda self, x: F.conv2d(
        x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
    ),
    "Conv1d": lambda self, x: F.conv1d(
        x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
    ),
    "ConvTranspose2d": lambda self, x: F.conv_transpose2d(
        x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
    ),
    "BatchNorm2d": lambda self, x: _batch_norm(self, x),
    "BatchNorm1d": lambda self, x: _batch_norm(self, x),
    "Embedding": lambda self, x: F.embedding(x, self.weight, self.padding_idx),
    "MaxPool2d": lambda self, x: F.max_pool2d(
        x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
    ),
    "AvgPool2d": lambda self, x: F.avg_pool2d(x, self.kernel_size, self.stride, self.padding),
    "AdaptiveAvgPool2d": lambda self, x: F.adaptive_avg_pool2d(x, self.output_size),
    "AdaptiveAvgPool1d": lambda self, x: F.adaptive_avg_pool1d(x, self.output_size),
    "Upsample": lambda self, x: F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners),
}


def _batch_norm(self: Any, x: Any) -> Any:
    return F.batch_norm(
        x, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps
    )
