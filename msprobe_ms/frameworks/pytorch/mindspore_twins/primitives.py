"""Twins of MindSpore's primitives: inputs by position, what the primitive was made with by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from msprobe_ms.frameworks.api_calls import NotJudged
from msprobe_ms.frameworks.pytorch.mindspore_twins.common import Axes, dims, several
from msprobe_ms.frameworks.pytorch.mindspore_twins.convolution import same_padding
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin
from msprobe_ms.support.translation import tr

#: Reductions by their primitives' names.
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": torch.sum,
    "ReduceMean": torch.mean,
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
}
Sizes = int | Sequence[int]
#: Results that a backward may use, and that differ among devices.
_SCRATCH = NotJudged(tr("differs among devices"))


@twin("Primitive.MatMul", "Primitive.BatchMatMul")
def matmul(x: Any, y: Any, *, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return torch.matmul(x.mT if transpose_a else x, y.mT if transpose_b else y)


@twin("Primitive.BiasAdd")
def bias_add(x: Any, bias: Any, *, data_format: str = "NCHW") -> Any:
    if data_format == "NHWC" or x.dim() == 2:
        return x + bias
    return x + bias.reshape(-1, *[1] * (x.dim() - 2))


@twin("Primitive.Gather", "Primitive.GatherV2")
def gather(params: Any, indices: Any, axis: int, *, batch_dims: int = 0) -> Any:
    if batch_dims:
        raise NotImplementedError(tr("batch_dims other than 0"))
    chosen = torch.index_select(params, axis, indices.reshape(-1))
    axis %= params.dim()
    return chosen.reshape(*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :])


@twin("Primitive.LayerNorm")
def layer_norm(
    x: Any, gamma: Any, beta: Any, *, begin_norm_axis: int = 1, begin_params_axis: int = 1, epsilon: float = 1e-7
) -> Any:
    axes = tuple(range(begin_norm_axis % x.dim(), x.dim()))
    mean = x.mean(axes, keepdim=True)
    variance = x.var(axes, unbiased=False, keepdim=True)
    shape = x.shape[begin_params_axis % x.dim() :]
    return (x - mean) / torch.sqrt(variance + epsilon) * gamma.reshape(shape) + beta.reshape(shape), mean, variance


@twin("Primitive.BatchNorm")
def batch_norm(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    *,
    is_training: bool = False,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    data_format: str = "NCHW",
) -> Any:
    if data_format == "NHWC":
        x = x.movedim(-1, 1)
    # The running figures are written in place, which nothing here may be.
    running = mean.detach().clone(), variance.detach().clone()
    result = functional.batch_norm(x, *running, scale, bias, is_training, momentum, epsilon)
    return result.movedim(1, -1) if data_format == "NHWC" else result, *[_SCRATCH] * 4


@twin("Primitive.Conv2D")
def conv2d(
    x: Any,
    weight: Any,
    *,
    out_channel: int = 0,
    kernel_size: Sizes = 1,
    mode: int = 1,
    pad_mode: str = "valid",
    pad: Sizes = 0,
    stride: Sizes = 1,
    dilation: Sizes = 1,
    group: int = 1,
    data_format: str = "NCHW",
) -> Any:
    return _convolved(functional.conv2d, 2, x, weight, pad_mode, pad, stride, dilation, group)


@twin("Primitive.Conv3D")
def conv3d(
    x: Any,
    weight: Any,
    *,
    out_channel: int = 0,
    kernel_size: Sizes = 1,
    mode: int = 1,
    pad_mode: str = "valid",
    pad: Sizes = 0,
    stride: Sizes = 1,
    dilation: Sizes = 1,
    group: int = 1,
    data_format: str = "NCDHW",
) -> Any:
    return _convolved(functional.conv3d, 3, x, weight, pad_mode, pad, stride, dilation, group)


@twin("Primitive.Conv2DTranspose", "Primitive.Conv2DBackpropInput")
def conv2d_transpose(
    x: Any,
    weight: Any,
    input_size: Sequence[int],
    *,
    out_channel: int = 0,
    kernel_size: Sizes = 1,
    pad_mode: str = "valid",
    pad: Sizes = 0,
    pad_list: Sizes | None = None,
    mode: int = 1,
    stride: Sizes = 1,
    dilation: Sizes = 1,
    group: int = 1,
    data_format: str = "NCHW",
) -> Any:
    """The gradient of a convolution of ``input_size``: what that padded is cut off, what it did not reach is zero."""
    steps, gaps, sizes = _spatial(stride, 2), _spatial(dilation, 2), tuple(input_size[2:])
    top, left = 0, 0
    if str(pad_mode).lower() == "same":
        left, _, top, _ = same_padding(sizes, weight.shape[2:], steps, gaps)
    elif str(pad_mode).lower() == "pad":
        top, _, left, _ = several(pad, 4)
    whole = functional.conv_transpose2d(x, weight, None, steps, 0, 0, group, gaps)
    lacking = [
        max(0, begin + size - there) for begin, size, there in zip((top, left), sizes, whole.shape[2:], strict=True)
    ]
    whole = functional.pad(whole, (0, lacking[1], 0, lacking[0]))
    return whole[..., top : top + sizes[0], left : left + sizes[1]]


def _convolved(
    convolve: Callable[..., Any], spatial: int, x: Any, weight: Any, pad_mode: str, pad: Sizes, stride: Sizes,
    dilation: Sizes, group: int,
) -> Any:  # fmt: skip
    steps, gaps = _spatial(stride, spatial), _spatial(dilation, spatial)
    if str(pad_mode).lower() == "same":
        x = functional.pad(x, same_padding(x.shape[2:], weight.shape[2:], steps, gaps))
    elif str(pad_mode).lower() == "pad":
        sides = several(pad, 2 * spatial)
        pairs = list(zip(sides[::2], sides[1::2], strict=True))
        x = functional.pad(x, [side for pair in reversed(pairs) for side in pair])
    return convolve(x, weight, None, steps, 0, gaps, group)


def _spatial(value: Sizes, count: int) -> Sequence[int]:
    """One number for each spatial axis: of four or five that are given, the last."""
    return several(value, count)[-count:]


@twin("Primitive.MaxPool")
def max_pool(
    x: Any, *, kernel_size: Sizes = 1, strides: Sizes = 1, pad_mode: str = "valid", data_format: str = "NCHW"
) -> Any:
    kernel, steps = _spatial(kernel_size, 2), _spatial(strides, 2)
    if str(pad_mode).lower() == "same":
        x = functional.pad(x, same_padding(x.shape[2:], kernel, steps, (1, 1)), value=float("-inf"))
    return functional.max_pool2d(x, kernel, steps)


@twin("Primitive.AvgPool")
def average_pool(
    x: Any, *, kernel_size: Sizes = 1, strides: Sizes = 1, pad_mode: str = "valid", data_format: str = "NCHW"
) -> Any:
    kernel, steps = _spatial(kernel_size, 2), _spatial(strides, 2)
    if str(pad_mode).lower() != "same":
        return functional.avg_pool2d(x, kernel, steps)
    padding = same_padding(x.shape[2:], kernel, steps, (1, 1))
    total = functional.avg_pool2d(functional.pad(x, padding), kernel, steps)
    return total / functional.avg_pool2d(functional.pad(torch.ones_like(x), padding), kernel, steps)


@twin("Primitive.Softmax")
def softmax(logits: Any, *, axis: Axes = -1) -> Any:
    return torch.softmax(logits, dims(logits, axis)[0])


@twin("Primitive.LogSoftmax")
def log_softmax(logits: Any, *, axis: int = -1) -> Any:
    return torch.log_softmax(logits, axis)


@twin("Primitive.OneHot")
def one_hot(indices: Any, depth: int, on_value: Any, off_value: Any, *, axis: int = -1) -> Any:
    hot = functional.one_hot(indices.long(), depth).bool()
    result = torch.where(hot, torch.as_tensor(on_value), torch.as_tensor(off_value))
    return result if axis == -1 else result.movedim(-1, axis)


@twin("Primitive.Concat")
def concat(tensors: Sequence[Any], *, axis: int = 0) -> Any:
    return torch.cat(tuple(tensors), axis)


@twin("Primitive.Stack")
def stack(tensors: Sequence[Any], *, axis: int = 0) -> Any:
    return torch.stack(tuple(tensors), axis)


@twin("Primitive.Split")
def split(x: Any, *, axis: int = 0, output_num: int = 1) -> Any:
    return torch.chunk(x, output_num, axis)


@twin("Primitive.Squeeze")
def squeeze(x: Any, *, axis: Axes = ()) -> Any:
    return torch.squeeze(x) if axis in ((), None) else torch.squeeze(x, dims(x, axis))


@twin("Primitive.CumSum")
def cumulative_sum(x: Any, axis: int, *, exclusive: bool = False, reverse: bool = False) -> Any:
    ordered = x.flip(axis) if reverse else x
    total = torch.cumsum(ordered, axis)
    if exclusive:
        total = total - ordered
    return total.flip(axis) if reverse else total


@twin("Primitive.ReverseV2")
def reverse(x: Any, *, axis: Axes = ()) -> Any:
    return torch.flip(x, dims(x, axis))


@twin("Primitive.LSTM")
def lstm(
    x: Any,
    h: Any,
    c: Any,
    weight: Any,
    *,
    input_size: int = 0,
    hidden_size: int = 0,
    num_layers: int = 1,
    has_bias: bool = True,
    bidirectional: bool = False,
    dropout: float = 0.0,
    proj_size: int = 0,
) -> Any:
    """One layer in one direction, as the CPU has it: one tensor holds both matrices, then the sum of both biases."""
    if num_layers > 1 or bidirectional or proj_size:
        raise NotImplementedError(tr("several layers or directions in one tensor of weights"))
    gates = 4 * hidden_size
    sizes = [gates * input_size, gates * hidden_size, gates if has_bias else 0]
    if weight.numel() != sum(sizes):
        raise NotImplementedError(tr("weights that another device has laid out"))
    of_input, of_state, bias = torch.split(weight.reshape(-1), sizes)
    matrices = [of_input.reshape(gates, input_size), of_state.reshape(gates, hidden_size)]
    biases = [bias, torch.zeros_like(bias)] if has_bias else []
    result = torch.lstm(x, (h, c), [*matrices, *biases], has_bias, 1, 0.0, False, False, False)
    return *result, *[_SCRATCH] * 2


@twin("Primitive.Argmax")
def argmax(x: Any, *, axis: int = -1, output_type: Any = None) -> Any:
    return torch.argmax(x, axis).to(torch.int32)


@twin("Primitive.SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    """The loss of each row, and its gradient, which the primitive returns as well."""
    logarithms = torch.log_softmax(logits, -1)
    return -(labels * logarithms).sum(-1), torch.exp(logarithms) - labels


@twin("Primitive.SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(logits: Any, labels: Any, *, is_grad: bool = False) -> Any:
    if not is_grad:
        return functional.cross_entropy(logits, labels.long())
    hot = functional.one_hot(labels.long(), logits.shape[-1])
    return (torch.softmax(logits, -1) - hot) / logits.shape[0]


@twin("Primitive.NLLLoss")
def nll_loss(logits: Any, labels: Any, weight: Any, *, reduction: str = "mean", ignore_index: int = -100) -> Any:
    labels = labels.long()
    loss = functional.nll_loss(logits, labels, weight, reduction=reduction, ignore_index=ignore_index)
    return loss, weight[labels[labels != ignore_index]].sum()


@twin("Primitive.L2Normalize")
def l2_normalize(x: Any, *, axis: Axes = 0, epsilon: float = 1e-4) -> Any:
    return x / torch.sqrt(torch.clamp((x * x).sum(dims(x, axis), keepdim=True), min=epsilon))


def _register_reductions() -> None:
    for name, reduce in _REDUCTIONS.items():

        def reduced(
            x: Any, axis: Axes = (), *, keep_dims: bool = False, skip_mode: bool = False, _reduce: Any = reduce
        ) -> Any:
            return _reduce(x, dims(x, axis), keepdim=keep_dims)

        twin(f"Primitive.{name}")(reduced)


_register_reductions()
