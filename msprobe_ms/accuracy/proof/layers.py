"""Standard layers: the function of PyTorch that is each one, and what it may have been made with.

A dump of modules holds their parameters and not their settings, so these are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Value

Named = dict[str, Value]
Shape = tuple[int, ...]

#: Epsilons of the frameworks' layers, the most usual first; others are searched for between the ends.
EPSILONS = (1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 1e-3, 1e-2, 1e-4)
#: Settings that are tried of a layer.
_MOST = 600
_SLOPES = (0.01, 0.2, 0.1, 0.3)
#: The parameters of layers by the names that frameworks give them.
_NAMES = {
    "weight": ("weight", "gamma", "embedding_table"),
    "bias": ("bias", "beta"),
    "running_mean": ("running_mean", "moving_mean"),
    "running_var": ("running_var", "moving_variance"),
}


@dataclass(frozen=True)
class Layer:
    """A kind of layer.

    ``api``         of ``torch.nn.functional``
    ``parameters``  that it reads, by PyTorch's names
    ``settings``    what it may have been made with, the frameworks' defaults first: from inputs and parameters by name,
                    and the shape of the output
    ``searched``    the setting that may be any positive number
    """

    api: str
    parameters: tuple[str, ...] = ()
    settings: Callable[[Mapping[str, Value], Shape], Iterator[Named]] = lambda *_: iter(({},))
    searched: str = ""

    def arguments(self, inputs: Sequence[Value], parameters: Mapping[str, Value]) -> Named | None:
        """Return its tensors by PyTorch's names; None where the module has others than this layer."""
        if not inputs or not isinstance(inputs[0], TypedArray):
            return None
        own = self.own_names(parameters)
        if len(own) < len(parameters):
            return None
        found = {name: parameters[theirs] for name, theirs in own.items()}
        if self.api.startswith("conv"):
            found["weight"] = _squeezed(found.get("weight"), inputs[0].values.ndim)
        if self.api in ("linear", "embedding", "conv1d", "conv2d", "conv3d") and found.get("weight") is None:
            return None
        return {"input": inputs[0], **found}

    def possible(self, named: Mapping[str, Value], output: Shape) -> list[Named]:
        """Return what it may have been made with, the most usual first; nothing where its tensors are of none."""
        try:
            return list(islice(self.settings(named, output), _MOST))
        except (IndexError, ZeroDivisionError):  # fewer axes than such a layer takes
            return []

    def own_names(self, parameters: Iterable[str]) -> dict[str, str]:
        """Return what the module's framework calls each parameter, by PyTorch's names."""
        there = set(parameters)
        pairs = ((name, own) for name in self.parameters for own in _NAMES[name] if own in there)
        return dict(pairs)


def layer_of(class_name: str) -> Layer | None:
    """Return the layer that classes of this name are: of layers with parameters the longest name that it ends with; of
    others the name itself, as a FastGelu is no GELU.

    >>> layer_of("LlamaRMSNorm").api
    'rms_norm'
    """
    plain = class_name.replace("_", "").lower()
    ends = (name for name in _LONGEST_FIRST if plain == name or (_LAYERS[name].parameters and plain.endswith(name)))
    return next((_LAYERS[name] for name in ends), None)


def _squeezed(weight: Value, dimensions: int) -> Value:
    """MindSpore's Conv1d holds its weight with an axis more."""
    if isinstance(weight, TypedArray) and weight.values.ndim == dimensions + 1 and weight.values.shape[2] == 1:
        return TypedArray(weight.dtype, weight.values[:, :, 0])
    return weight


def _normalized(named: Mapping[str, Value], _: Shape) -> Iterator[Named]:
    weight = named.get("weight")
    ends = weight.values.shape if weight is not None else named["input"].values.shape[-1:]
    for epsilon in EPSILONS:
        yield {"normalized_shape": tuple(ends), "eps": epsilon}


def _grouped(named: Mapping[str, Value], _: Shape) -> Iterator[Named]:
    channels = named["input"].values.shape[1]
    counts = [count for count in (32, *range(1, channels + 1)) if channels % count == 0]
    yield from ({"num_groups": count, "eps": epsilon} for epsilon in EPSILONS for count in dict.fromkeys(counts))


def _batch(named: Mapping[str, Value], _: Shape) -> Iterator[Named]:
    for epsilon in EPSILONS:
        yield {"running_mean": None, "running_var": None, "training": True, "eps": epsilon}
        if named.get("running_mean") is not None:
            yield {"training": False, "eps": epsilon}


def _axes(named: Mapping[str, Value], _: Shape) -> Iterator[Named]:
    dimensions = named["input"].values.ndim
    yield from ({"dim": axis} for axis in (-1, *range(dimensions - 1)))


def _convolved(named: Mapping[str, Value], output: Shape) -> Iterator[Named]:
    sizes, weight = named["input"].values.shape, named["weight"].values.shape
    if len(weight) != len(sizes) or not weight[1] or sizes[1] % weight[1]:
        return
    for stride, dilation in product(range(1, 5), range(1, 4)):
        paddings = [
            [pad for pad in range(reach + 1) if (size + 2 * pad - reach + dilation - 1) // stride + 1 == out]
            for reach, size, out in _dimensions(sizes, weight, output, dilation)
        ]
        for padding in product(*paddings):
            yield {"stride": stride, "padding": padding, "dilation": dilation, "groups": sizes[1] // weight[1]}


def _dimensions(sizes: Shape, weight: Shape, output: Shape, dilation: int) -> Iterator[tuple[int, int, int]]:
    """Of each dimension that a kernel moves along: what the kernel covers, and sizes of input and output."""
    for kernel, size, out in zip(weight[2:], sizes[2:], output[2:], strict=False):
        yield dilation * kernel, size, out


def _pooled(named: Mapping[str, Value], output: Shape) -> Iterator[Named]:
    sizes = named["input"].values.shape[2:]
    for kernel, stride, padding in product(range(2, 9), range(1, 9), range(4)):
        outs = tuple((size + 2 * padding - kernel) // stride + 1 for size in sizes)
        if 2 * padding <= kernel and outs == tuple(output[2:]):
            yield {"kernel_size": kernel, "stride": stride, "padding": padding}


def _each(name: str, *values: Any) -> Callable[[Mapping[str, Value], Shape], Iterator[Named]]:
    return lambda *_: ({name: value} for value in values)


_WEIGHT_BIAS = ("weight", "bias")
_BATCH_NORM = Layer("batch_norm", (*_WEIGHT_BIAS, "running_mean", "running_var"), _batch, "eps")
_LINEAR = Layer("linear", _WEIGHT_BIAS)
_LAYERS: dict[str, Layer] = {
    "layernorm": Layer("layer_norm", _WEIGHT_BIAS, _normalized, "eps"),
    "rmsnorm": Layer("rms_norm", ("weight",), _normalized, "eps"),
    "groupnorm": Layer("group_norm", _WEIGHT_BIAS, _grouped, "eps"),
    **dict.fromkeys(("batchnorm1d", "batchnorm2d", "batchnorm3d"), _BATCH_NORM),
    **dict.fromkeys(("linear", "dense"), _LINEAR),
    **{f"conv{n}d": Layer(f"conv{n}d", _WEIGHT_BIAS, _convolved) for n in (1, 2, 3)},
    "embedding": Layer("embedding", ("weight",)),
    "softmax": Layer("softmax", (), _axes),
    "logsoftmax": Layer("log_softmax", (), _axes),
    "gelu": Layer("gelu", (), _each("approximate", "none", "tanh")),
    **{name: Layer(name) for name in ("relu", "relu6", "tanh", "sigmoid", "mish", "softplus", "selu")},
    **dict.fromkeys(("silu", "swish"), Layer("silu")),
    "hardswish": Layer("hardswish"),
    "hardsigmoid": Layer("hardsigmoid"),
    "leakyrelu": Layer("leaky_relu", (), _each("negative_slope", *_SLOPES), "negative_slope"),
    "elu": Layer("elu", (), _each("alpha", 1.0, 0.1, 0.5), "alpha"),
    "maxpool1d": Layer("max_pool1d", (), _pooled),
    "maxpool2d": Layer("max_pool2d", (), _pooled),
    "avgpool1d": Layer("avg_pool1d", (), _pooled),
    "avgpool2d": Layer("avg_pool2d", (), _pooled),
    "dropout": Layer("dropout", (), _each("p", 0.0)),
}
_LONGEST_FIRST = sorted(_LAYERS, key=len, reverse=True)
