"""Single MindSpore APIs, run alone, with gradients."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, ops

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.dialects import PRIMITIVE
from msprobe_ms.frameworks.api_calls import NOTHING, ApiOutcome, Value
from msprobe_ms.frameworks.api_values import Call, attribute, flattened, wanted
from msprobe_ms.frameworks.framework_runner import FrameworkRunner
from msprobe_ms.frameworks.mindspore.autograd import has_graph
from msprobe_ms.frameworks.mindspore.framework import MindSpore

#: Modules that hold primitive classes; the first is what users write.
_PRIMITIVES = tuple(
    found
    for path in ("", "operations", "auto_generate", "auto_generate.gen_ops_prim", "operations._inner_ops")
    if (found := attribute(ops, path) if path else ops) is not None
)

#: Primitives that a dump is not to name: of these modules, and by their own names. They run code that their arguments
#: name, write files, or wait for other processes.
_NO_OPERATORS = frozenset(("custom_ops", "debug_ops", "comm_ops"))
_NO_OPERATOR = frozenset(("PyExecute", "PyFunc", "PartitionedCall", "DumpGradient", "Push", "Pull"))

_gradients = ops.GradOperation(get_all=True, sens_param=True)
_times, _cast = ops.Mul(), ops.Cast()


class MindSporeRunner(FrameworkRunner):
    """Calls single APIs of MindSpore in dynamic graphs, one at a time: what fails, fails in its own call."""

    no_kernel = re.compile(
        r"unregistered|Unsupported op \[|Create kernelmod for op \w+ failed|Select \w+ operator|Unsupported data ?type|"
        r"Not found op \w+ on device|Not implement exception|should not come here for|There is no branch to go|"
        r"does not support this kernel|KernelMod Init Failed|'Registry' object has no attribute|"
        r"(not supported?|unsupported|not implemented) (on|in|by) (the |this )?"
        r"(CPU|GPU|Ascend|device)|support(ed|s)? (on )?(the )?Ascend( only)?|only supports? (CPU|GPU)",
        re.IGNORECASE,
    )
    no_gradient = re.compile(r"bprop not defined|(bprop|backward) is not (defined|supported)", re.IGNORECASE)

    def __init__(self) -> None:
        # Else an operator that has no kernel fails within one of the next calls.
        mindspore.runtime.launch_blocking()
        super().__init__(self._make_framework())
        device = mindspore.get_context("device_target")
        self.version = f"mindspore {mindspore.__version__} on {device}"

    def _make_framework(self) -> MindSpore:
        return MindSpore()

    def seed(self, seed: int) -> None:
        mindspore.set_seed(seed)
        mindspore.manual_seed(seed)

    def find(self, prefix: str, api: str, attributes: Mapping[str, Value] = NOTHING) -> Callable[..., Any] | None:
        """As in ``ApiRunner``. A primitive that takes arguments is found by those alone: old dumps do not hold them."""
        return _primitive(api.rpartition(".")[2], attributes) if prefix == PRIMITIVE else super().find(prefix, api)

    def _differentiated(
        self, function: Callable[..., Any], call: Call, output_gradients: Sequence[TypedArray | None]
    ) -> ApiOutcome:
        outputs: tuple[TypedArray | Any, ...] = ()
        reached: Sequence[bool] = ()
        failure: Exception | None = None
        seeds = [self._tensor(gradient) for gradient in output_gradients if gradient is not None]

        def differentiable(*floats: Any) -> Any:
            nonlocal outputs, reached, failure
            try:
                leaves = flattened(call.make(function, [_computed(each) for each in floats]))
                outputs = self._read(leaves)
                chosen = [output for output, _ in wanted(leaves, output_gradients)]
                reached = _reached(floats, chosen)
                return tuple(_of_dtype(output, seed) for output, seed in zip(chosen, seeds, strict=True))
            except Exception as error:  # raised from here, it would leave a graph behind that the next backward runs
                failure = error
                return tuple(seeds)

        gradients = _gradients(differentiable)(*call.floats, tuple(seeds))
        if failure is not None:
            raise failure
        pairs = zip(gradients, reached, strict=True)
        return ApiOutcome(outputs, tuple(self._array(gradient) if there else None for gradient, there in pairs))

    def _tensor(self, array: TypedArray) -> Any:
        # A copy, which the tensor's memory would be otherwise only as a rule.
        return Tensor(np.array(array.values), _dtype(array.dtype))

    def _dtype(self, name: str) -> Any:
        return _dtype(name)


def _dtype(name: str) -> Any:
    plain = parse_dtype(name).name
    return getattr(mindspore, "bool_" if plain == "bool" else plain)


def _primitive(name: str, attributes: Mapping[str, Value]) -> Callable[..., Any] | None:
    """A primitive of this class, made with ``attributes``; None where it takes arguments and there are none, or does
    more than compute."""
    for module in _PRIMITIVES:
        found: Any = getattr(module, name, None)
        if inspect.isclass(found) and issubclass(found, ops.Primitive):
            if name in _NO_OPERATOR or found.__module__.rpartition(".")[2] in _NO_OPERATORS:
                return None
            takes = list(inspect.signature(found.__init__).parameters.values())[1:]
            return None if takes and not attributes else _made(found, attributes)
    return None


def _made(operator_class: Any, attributes: Mapping[str, Value]) -> Any:
    return operator_class(**attributes)


def _computed(tensor: Any) -> Any:
    """An equal tensor that was computed: functions may not write into one whose gradient is asked for."""
    multiplied = tensor.dtype in (mindspore.float16, mindspore.float32, mindspore.float64, mindspore.bfloat16)
    return _times(tensor, Tensor(1, tensor.dtype)) if multiplied and tensor.size else tensor


def _of_dtype(output: Any, seed: Any) -> Any:
    return output if output.dtype == seed.dtype else _cast(output, seed.dtype)


def _reached(tensors: Sequence[Any], outputs: Sequence[Any]) -> list[bool]:
    """Which of these a gradient can flow to from any of the outputs.

    All, where the graph is not shown, or no output is in it: MindSpore then gives zeros, and its users get these.
    """
    nodes = [output._grad_node for output in outputs] if has_graph() else []
    waiting = [node for node in nodes if node is not None]
    if not waiting:
        return [True] * len(tensors)
    seen = {node._unique_id() for node in waiting}
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node._unique_id() not in seen:
                seen.add(node._unique_id())
                waiting.append(node)
    return [tensor._grad_node is not None and tensor._grad_node._unique_id() in seen for tensor in tensors]
