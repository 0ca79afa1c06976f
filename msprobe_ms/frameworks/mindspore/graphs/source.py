"""Source that MindSpore's parser reads: what is compiled into graphs beside the user's code.

The inner functions here are never run by Python while a graph is compiled. MindSpore parses them, so they keep to what
it understands: no comprehensions over calls, no keyword-only cleverness, tuples built by addition. Conditions in them
are decided while a graph is compiled. What is left of them in the graph is the user's own operators and the callbacks.
"""

# ruff: noqa: RUF005, SIM118  # the parser knows neither `(*members, member)` nor `in` a dictionary

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.ops import constexpr
from mindspore.ops import functional as F

from msprobe_ms.frameworks.graph_observer import Tapped
from msprobe_ms.frameworks.mindspore.graphs.compilation import Parts

#: Containers nested deeper than this, the arguments of a call being one, are left alone.
DEEPEST = 6


class Structures(NamedTuple):
    """``describe(value)``, what `compilation.layout_of` reads, and ``watch(value, call, field, path)``."""

    describe: Callable[[Any], Any]
    watch: Callable[[Any, Any, str, Any], Any]


def structures(watch_tensor: Callable[[Any, Any, str, Any], Any]) -> Structures:
    """Both for the parser; ``watch`` gives back the value, each tensor in it as ``watch_tensor`` gives it."""

    def described(value: Any) -> Any:
        if isinstance(value, Tensor):
            if F.isconstant(value.shape):
                return ("tensor", value.dtype, value.shape)
            return ("tensor", value.dtype, None)
        if F.isconstant(value):
            return ("constant", value)
        return ("unknown",)

    def describer(member: Any) -> Any:
        def describe(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                members: Any = ()
                for index in range(len(value)):
                    members = members + (member(value[index]),)
                return ("list", members)
            if isinstance(value, dict):
                members = ()
                for key in value.keys():
                    members = members + ((key, member(value[key])),)
                return ("dict", members)
            return described(value)

        return describe

    def watched(value: Any, call: Any, field: str, path: Any) -> Any:
        return watch_tensor(value, call, field, path) if isinstance(value, Tensor) else value

    def watcher(member: Any) -> Any:
        def watch(value: Any, call: Any, field: str, path: Any) -> Any:
            if isinstance(value, Tensor):
                return watch_tensor(value, call, field, path)
            if isinstance(value, tuple):
                members: Any = ()
                for index in range(len(value)):
                    members = members + (member(value[index], call, field, path + (index,)),)
                return members
            if isinstance(value, list):
                listed: Any = []
                for index in range(len(value)):
                    listed = listed + [member(value[index], call, field, path + (index,))]
                return listed
            if isinstance(value, dict):
                # Filled one by one, a dictionary forgets which of its values are constants.
                return {key: member(value[key], call, field, path + (key,)) for key in value.keys()}
            return value

        return watch

    # Not by recursion: MindSpore forgets what it knows of the arguments of a function that calls itself.
    describe, watch = described, watched
    for _ in range(DEEPEST):
        describe, watch = describer(describe), watcher(watch)
    return Structures(describe, watch)


#: How a tensor is handed to a callback: as it is, as one element because it has no dimensions, or as statistics where
#: only the running graph knows its shape, which callbacks cannot have. Empty tensors cannot be handed over at all.
WHOLE, SINGLE, STATISTICS, NOTHING = range(4)


class Callbacks(Protocol):
    """What graphs call while they are compiled (the first four) and while they run."""

    def layout(self, module: int, first: Any, second: Any) -> int: ...
    def place(self, field: str, path: tuple[Any, ...], is_gradient: bool, dtype: Any, form: int) -> int: ...
    def parameter(self, module: int, name: str, dtype: Any, form: int) -> int: ...
    def is_float(self, dtype: Any) -> bool: ...

    def on_begin(self, layout: np.ndarray) -> np.ndarray: ...
    def on_value(self, value: Any, call: np.ndarray, place: np.ndarray) -> np.ndarray: ...
    def on_end(self, call: np.ndarray, layout: np.ndarray) -> np.ndarray: ...
    def on_parameter(self, gradient: Any, parameter: np.ndarray) -> np.ndarray: ...


def callback(function: Callable[..., Any]) -> Any:
    """An operator that calls ``function``, in the order of the program among its like, whoever reads its result.

    MindSpore takes the number of its inputs from the function's parameters.
    """
    operator = ops.Custom(function, out_shape=[1], out_dtype=mindspore.int32, func_type="pyfunc")
    operator.add_prim_attr("side_effect_io", True)
    # In a Cell that is computed again in backward: not told again.
    return operator.recompute(False)


_shape = ops.TensorShape()


def _statistics(value: Any) -> Any:
    wide = ops.cast(value, mindspore.float32)
    norm = ops.sqrt((wide * wide).sum())
    shape = ops.cast(_shape(value), mindspore.float32)
    return ops.concat((ops.stack((wide.max(), wide.min(), wide.mean(), norm)), shape))


def form_of(shape: tuple[int, ...] | None) -> int:
    if shape is None:
        return STATISTICS
    if 0 in shape:
        return NOTHING
    return WHOLE if shape else SINGLE


class _Plan(NamedTuple):
    """How a tensor is told: its form, whether it has a gradient, and the places of both; numbers of a graph."""

    form: int
    is_float: bool
    place: Tensor
    back: Tensor


class _Tap(nn.Cell):
    """Tells a tensor and, in backward, its gradient. Both go on as they are.

    They go on as one of two results. A function that returns its argument alone is taken for one that wrote into it
    (2.9 and later), and whoever uses the argument after that is given the result: gradients of both uses would come
    here. In a function whose gradient is taken outside of the graph such a result is not even the right value.
    """

    def __init__(self, tell: Any, *, values: bool, gradients: bool) -> None:
        super().__init__()
        self.tell = tell
        self.values = values
        self.gradients = gradients

    def construct(self, value: Any, call: Any, place: Any, back: Any) -> Any:
        if self.values:
            value = ops.depend(value, self.tell(value, call, place))
        return value, call

    def bprop(self, value: Any, call: Any, place: Any, back: Any, out: Any, dout: Any) -> Any:
        told = dout[0]
        if self.gradients:
            told = ops.depend(told, self.tell(told, call, back))
        return told, ops.zeros_like(call), ops.zeros_like(place), ops.zeros_like(back)


class _SingleTap(_Tap):
    """For tensors without dimensions."""

    def construct(self, value: Any, call: Any, place: Any, back: Any) -> Any:
        if self.values:
            value = ops.depend(value, self.tell(ops.reshape(value, (1,)), call, place))
        return value, call

    def bprop(self, value: Any, call: Any, place: Any, back: Any, out: Any, dout: Any) -> Any:
        told = dout[0]
        if self.gradients:
            told = ops.depend(told, self.tell(ops.reshape(told, (1,)), call, back))
        return told, ops.zeros_like(call), ops.zeros_like(place), ops.zeros_like(back)


class _StatisticsTap(_Tap):
    """For tensors whose shape only the running graph knows."""

    def construct(self, value: Any, call: Any, place: Any, back: Any) -> Any:
        if self.values:
            value = ops.depend(value, self.tell(_statistics(value), call, place))
        return value, call

    def bprop(self, value: Any, call: Any, place: Any, back: Any, out: Any, dout: Any) -> Any:
        told = dout[0]
        if self.gradients:
            told = ops.depend(told, self.tell(_statistics(told), call, back))
        return told, ops.zeros_like(call), ops.zeros_like(place), ops.zeros_like(back)


class _Told(NamedTuple):
    """What graphs can call: numbers that the compiler asks for, and callbacks of the running graph."""

    layout_of: Any
    plan_of: Any
    parameter_of: Any
    place_of: Callable[[str, tuple[Any, ...], bool, Any, int], Tensor]
    begin: Any
    value: Any
    end: Any
    parameter: Any


def _number(number: int) -> Tensor:
    return Tensor([number], mindspore.int32)


def compiled_parts(callbacks: Callbacks, tapped: Tapped) -> Parts:
    """The source of graphs that tell ``callbacks`` what ``tapped`` names."""

    def place_of(field: str, path: tuple[Any, ...], is_gradient: bool, dtype: Any, form: int) -> Tensor:
        return _number(callbacks.place(field, path, is_gradient, dtype, form))

    def plan_of(field: str, path: tuple[Any, ...], dtype: Any, shape: tuple[int, ...] | None) -> _Plan:
        form = form_of(shape)
        if form == NOTHING:
            return _Plan(form, False, _number(-1), _number(-1))
        is_float, place = callbacks.is_float(dtype), place_of(field, path, False, dtype, form)
        return _Plan(form, is_float, place, place_of(field, path, True, dtype, form) if is_float else place)

    def parameter_of(module: int, name: str, dtype: Any, form: int) -> Tensor:
        return _number(callbacks.parameter(module, name, dtype, form))

    told = _Told(
        place_of=place_of,
        plan_of=constexpr(lambda field, path, dtype, shape: plan_of(field, path, dtype, shape)),
        layout_of=constexpr(lambda module, first, second: _number(callbacks.layout(module, first, second))),
        parameter_of=constexpr(lambda module, name, dtype, form: parameter_of(module, name, dtype, form)),
        begin=callback(lambda layout: callbacks.on_begin(layout)),
        value=callback(lambda value, call, place: callbacks.on_value(value, call, place)),
        end=callback(lambda call, layout: callbacks.on_end(call, layout)),
        parameter=callback(lambda gradient, parameter: callbacks.on_parameter(gradient, parameter)),
    )
    return Parts(_construct_between(told, structures(_tensor_watch(told, tapped))), _parameter_hook(told))


def _tensor_watch(told: _Told, tapped: Tapped) -> Callable[[Any, Any, str, Any], Any]:
    """What tells a tensor of a call and its gradient, for the parser."""
    values, gradients = tapped.values, tapped.gradients
    tell, plan_of = told.value, told.plan_of
    whole = _Tap(tell, values=values, gradients=gradients)
    single = _SingleTap(tell, values=values, gradients=gradients)
    statistics = _StatisticsTap(tell, values=values, gradients=gradients)

    def watch_tensor(value: Any, call: Any, field: str, path: Any) -> Any:
        if F.isconstant(value.shape):
            plan = plan_of(field, path, value.dtype, value.shape)
        else:
            plan = plan_of(field, path, value.dtype, None)
        form, is_float = plan[0], plan[1]
        if form == NOTHING:
            return value
        if is_float:
            if form == SINGLE:
                return single(value, call, plan[2], plan[3])[0]
            if form == STATISTICS:
                return statistics(value, call, plan[2], plan[3])[0]
            return whole(value, call, plan[2], plan[3])[0]
        # What takes no gradient may be waited for as it is.
        if values:
            if form == SINGLE:
                return ops.depend(value, tell(ops.reshape(value, (1,)), call, plan[2]))
            if form == STATISTICS:
                return ops.depend(value, tell(_statistics(value), call, plan[2]))
            return ops.depend(value, tell(value, call, plan[2]))
        return value

    return watch_tensor


def _construct_between(told: _Told, structure: Structures) -> Callable[..., Any]:
    """``Parts.construct``: a call whose inputs, result and parameters are told."""
    describe, watch = structure
    layout_of, begin, end = told.layout_of, told.begin, told.end

    def construct_of(original: Any, module: int, names: tuple[str, ...], parameters: tuple[Any, ...]) -> Any:
        tell_parameters = _parameter_tells(told, names, parameters)

        def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
            call = begin(layout_of(module, describe(args), describe(kwargs)))
            args = watch(args, call, "input", ())
            kwargs = watch(kwargs, call, "kwargs", ())
            output = original(*args, **kwargs)
            output = watch(output, call, "output", ())
            tell_parameters(call)
            end(call, layout_of(module, describe(output), ("constant", None)))
            return output

        return construct

    return construct_of


def _parameter_tells(told: _Told, names: tuple[str, ...], parameters: tuple[Any, ...]) -> Callable[[Any], Any]:
    """What tells all parameters of a module in one of its calls, for the parser.

    Each is told by a function of its own that calls that of the next: to compile a loop over them takes as long as a
    third of all the rest.
    """
    tell = told.value

    def before(others: Any, parameter: Any, place: Tensor, is_single: bool) -> Any:
        def tell_single(call: Any) -> Any:
            tell(ops.reshape(parameter, (1,)), call, place)
            return others(call)

        def tell_whole(call: Any) -> Any:
            tell(parameter, call, place)
            return others(call)

        return tell_single if is_single else tell_whole

    def nothing(call: Any) -> Any:
        return call

    tells: Callable[[Any], Any] = nothing
    for name, parameter in zip(reversed(names), reversed(parameters), strict=True):
        form = form_of(parameter.shape)
        if form != NOTHING:
            place = told.place_of("parameters", (name,), False, parameter.dtype, form)
            tells = before(tells, parameter, place, form == SINGLE)
    return tells


def _parameter_hook(told: _Told) -> Callable[[int, str, tuple[int, ...]], Any]:
    """``Parts.hook``: tells the gradient of a parameter of this shape."""
    parameter_of, tell_parameter = told.parameter_of, told.parameter

    def hook_of(module: int, name: str, shape: tuple[int, ...]) -> Any:
        form = form_of(shape)

        def hook(gradient: Any) -> Any:
            number = parameter_of(module, name, gradient.dtype, form)
            if form == SINGLE:
                return ops.depend(gradient, tell_parameter(ops.reshape(gradient, (1,)), number))
            if form == WHOLE:
                return ops.depend(gradient, tell_parameter(gradient, number))
            return gradient

        return hook

    return hook_of
