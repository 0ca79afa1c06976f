"""Repeat single calls of MindSpore within a training."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, ops

from msprobe_ms.arrays.changes import Change, bits_of, measure
from msprobe_ms.dump.dialects import PRIMITIVE
from msprobe_ms.frameworks.mindspore.arrays import is_in_memory, to_numpy, widened
from msprobe_ms.frameworks.repeating import SMALL, Repeater, Restore, bounds_of, first_and_last, one_of
from msprobe_ms.support.translation import tr

_FLOATS = {
    mindspore.float16: "float16",
    mindspore.bfloat16: "bfloat16",
    mindspore.float32: "float32",
    mindspore.float64: "float64",
}
_INTEGERS = {16: np.int16, 32: np.int32, 64: np.int64}

#: Operators whose kernels keep the state of their random numbers to themselves.
_DRAWING = re.compile(
    r"Dropout(?!DoMask|Grad)\w*|Uniform(Real|Int)|\w*CandidateSampler|Standard(Normal|Laplace)|Gamma|Poisson|Random\w+|"
    r"Multinomial\w*|Bernoulli\w*|Randperm\w*|\w*TruncatedNormal|LogNormalReverse|CudnnUniformReal|Normal\w*"
)

#: Functions of PyTorch's interface that draw random numbers, which kernels do that nobody sees.
_DRAWING_FUNCTIONS = re.compile(
    r"\w*dropout\w*|rand\w*|(log_)?normal_?|uniform_?|bernoulli_?|multinomial|poisson\w*|exponential_?|cauchy_?|"
    r"geometric_?|gumbel_softmax|rrelu_?|scaled_dot_product_attention|multi_head_attention_forward|lstm|gru|rnn_\w+"
)

_gradients = ops.GradOperation(get_all=True, sens_param=True)
_cast, _copied, _detached = ops.Cast(), ops.deepcopy, ops.stop_gradient


class MindSporeRepeater(Repeater):
    """Repeats calls of MindSpore in dynamic graphs."""

    def __init__(self) -> None:
        self._on_host = mindspore.get_context("device_target") == "CPU"
        self.no_cpu = None if self._on_host else tr("MindSpore runs single calls on the device alone")

    def float_name(self, tensor: Any) -> str | None:
        return _FLOATS.get(tensor.dtype)

    def is_plain(self, tensor: Any) -> bool:
        return issubclass(type(tensor), Tensor) and is_in_memory(tensor)

    def memory(self, tensor: Any) -> object:
        # Memory may come with the first use: those without any have nothing in common.
        return tensor._data_ptr() or id(tensor), tensor.dtype, tensor.shape

    def storage(self, tensor: Any) -> object:
        return tensor._data_ptr() or id(tensor)

    def detached(self, tensor: Any) -> Any:
        return _detached(tensor)

    def kept(self, tensor: Any) -> Any:
        # No operator runs within a backward.
        if tensor.dtype == mindspore.bfloat16:
            return _cast(Tensor(np.array(to_numpy(tensor)), mindspore.float32), mindspore.bfloat16)
        return Tensor(np.array(tensor.asnumpy()), tensor.dtype)

    def size(self, tensor: Any) -> int:
        return tensor._nbytes

    def alias(self, tensor: Any) -> Any:
        # Kernels write to tensors and nothing tells: the moving average of a batch normalisation is one.
        return self.copy(tensor)

    def copy(self, tensor: Any) -> Any:
        return self.on_cpu(_detached(tensor))  # a Parameter's copy is a Tensor

    def with_bits(self, tensor: Any, change: Callable[[Any, str], Any]) -> Any:
        name = _FLOATS[tensor.dtype]
        array = tensor.asnumpy()
        bits = np.atleast_1d(np.ascontiguousarray(array)).view(_INTEGERS[bits_of(name)])
        with np.errstate(over="ignore"):
            found = change(bits, name).view(array.dtype).reshape(array.shape)
        if name != "bfloat16":
            return Tensor(found, tensor.dtype)
        return _cast(Tensor(widened(found), mindspore.float32), mindspore.bfloat16)

    def exchanged(self, tensor: Any) -> Any:
        if prod(tensor.shape) < 2:
            return None
        found = np.array(to_numpy(tensor))
        first, last = first_and_last(found.ndim)
        found[first], found[last] = found[last].copy(), found[first].copy()
        return _cast(Tensor(found), tensor.dtype)

    def widened(self, tensor: Any) -> Any:
        return _cast(tensor, mindspore.float32)

    def on_cpu(self, tensor: Any) -> Any:
        # A copy in memory of MindSpore's own: sums of some kernels depend on where in memory it begins.
        if tensor.dtype == mindspore.bfloat16:  # which has no kernel that copies
            return _cast(_cast(tensor, mindspore.float32), mindspore.bfloat16)
        return _copied(tensor)

    def like(self, tensor: Any, original: Any) -> Any:
        return tensor if tensor.dtype == original.dtype else _cast(tensor, original.dtype)

    def magnitudes(self, tensor: Any) -> Any:
        return _cast(Tensor(np.abs(to_numpy(tensor))), tensor.dtype)

    def measure(self, original: Any, other: Any, limit: float, noise: float = 0.0) -> Change:
        name = _FLOATS[original.dtype]
        smallest, largest = bounds_of(name)
        if self._on_host or prod(original.shape) <= SMALL:
            wide = np.float64 if name == "float64" or prod(original.shape) <= SMALL else np.float32
            own, others = (to_numpy(each).astype(wide) for each in (original, other))
            with np.errstate(all="ignore"):
                return measure(np, own, others, limit, smallest, largest, noise)
        kind = mindspore.float64 if name == "float64" else mindspore.float32
        return measure(ops, _cast(original, kind), _cast(other, kind), limit, smallest, largest, noise)

    # -- calls -----------------------------------------------------------------------------------------------------

    #: One backward in another runs nodes of the other's graph.
    differentiates_in_backward = False

    def generators(self, values: Sequence[Any]) -> Callable[[], Restore]:
        return _state

    def draws(self, prefix: str, name: str) -> bool:
        return prefix == PRIMITIVE and _DRAWING.fullmatch(name) is not None

    def watch_gradient(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        tensor._grad_node.register_prehook(one_of(tensor._output_index, hook))

    def gradients(
        self,
        function: Callable[[Sequence[Any]], Sequence[Any]],
        tensors: Sequence[Any],
        output_gradients: Sequence[Any],
    ) -> Sequence[Any]:
        failure: Exception | None = None
        seeds = [gradient for gradient in output_gradients if gradient is not None]

        def differentiable(*leaves: Any) -> Any:
            nonlocal failure
            try:
                outputs = function(leaves)
                pairs = zip(outputs, output_gradients, strict=True)
                return tuple(output for output, gradient in pairs if gradient is not None)
            except Exception as error:  # raised from here, it would leave a graph behind that the next backward runs
                failure = error
                return tuple(seeds)

        found = _gradients(differentiable)(*map(_tensor, tensors), tuple(seeds))
        if failure is not None:
            raise failure
        return found if isinstance(found, tuple) else (found,)


class MSAdapterRepeater(MindSporeRepeater):
    """Repeats calls of PyTorch's functions on MindSpore's tensors."""

    def draws(self, prefix: str, name: str) -> bool:
        return _DRAWING_FUNCTIONS.fullmatch(name) is not None


def _tensor(value: Any) -> Any:
    return Tensor(value) if isinstance(value, Parameter) else value


def _state() -> Restore:
    return partial(mindspore.set_rng_state, mindspore.get_rng_state())
