"""The catalogue of faults: which places of a network each kind can be planted in, how, and what compare should name.

A fault is written ``kind@place``: the path of a Cell or of a parameter, or nothing for bugs of the training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops


@dataclass
class Training:
    """How the target is trained; as the golden, until a fault changes it."""

    batch_keys: tuple[str, ...]
    learning_rate: float = 1.0
    weight_decay: float = 0.0
    momentum: float = 0.9
    bias_correction: bool = True
    label_smoothing: float = 0.0
    loss_scale: float = 1.0
    clip: float = 0.0
    accumulates: bool = False
    reversed_rows: bool = False
    #: Of parameters, by identity: mindone's change their names as they are listed.
    frozen: set[int] = field(default_factory=set)

    @property
    def other_loss(self) -> bool:
        return self.label_smoothing != 0 or self.loss_scale != 1

    def batch(self, batch: dict[str, ms.Tensor]) -> list[ms.Tensor]:
        """The values of a batch as the network gets them."""
        values = [batch[key] for key in self.batch_keys]
        return [ops.flip(each, (0,)) for each in values] if self.reversed_rows else values

    def gradients(self, gradients: tuple[Any, ...], kept: Any) -> tuple[tuple[Any, ...], Any]:
        """What the optimizer is given of the gradients of a step, and what is kept for the next."""
        if self.accumulates and kept is not None:
            gradients = tuple(now + before for now, before in zip(gradients, kept, strict=True))
        if self.clip:
            gradients = tuple(ops.clip_by_norm(each, self.clip) for each in gradients)
        return gradients, gradients


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    ``places``: where it can be planted in a network. ``plant``: changes the network or the training. ``seen``: what
    shows it: "module" (the place is the origin), "inside" (it or a part of it), "parameter" (of that path, or its
    Cell), "weights" (of all), "loss", "data", "update".
    ``first_step``: whether step 0 shows it; if not, step 0 has to be quiet and step 1 to show it.
    """

    name: str
    places: Callable[[nn.Cell], Iterator[str]]
    plant: Callable[[nn.Cell, str, Training], None]
    seen: str = "module"
    first_step: bool = True

    @property
    def may_come_late(self) -> bool:
        """Whether it is a setting or code that may change between two steps, and shows as soon as it does."""
        return self.first_step and self.seen in ("module", "inside", "loss", "data") and self.name != "unloaded_cell"


def cells(net: nn.Cell) -> Iterator[tuple[str, nn.Cell]]:
    """Every Cell but the network itself, in order."""
    yield from ((path, cell) for path, cell in net.cells_and_names() if path)


def leaves(net: nn.Cell) -> Iterator[tuple[str, nn.Cell]]:
    yield from ((path, cell) for path, cell in cells(net) if not list(cell.cells()))


def cell_of(net: nn.Cell, path: str) -> nn.Cell:
    return dict(net.cells_and_names())[path]


def parameter_of(net: nn.Cell, path: str) -> ms.Parameter:
    return dict(net.parameters_and_names())[path]


def weighted(net: nn.Cell) -> Iterator[str]:
    """Leaves with a weight of two axes or more that compute with floats."""
    for path, cell in leaves(net):
        own = [each for _, each in cell.parameters_and_names()]
        if any(each.ndim > 1 for each in own) and "Embedding" not in type(cell).__name__:
            yield path


def activations(net: nn.Cell) -> Iterator[str]:
    return (path for path, cell in leaves(net) if type(cell).__name__ in _OTHER_ACTIVATION)


def norms(net: nn.Cell) -> Iterator[str]:
    for path, cell in leaves(net):
        if any(isinstance(getattr(cell, name, None), float) for name in _EPSILON):
            yield path


def batch_norms(net: nn.Cell) -> Iterator[str]:
    return (path for path, cell in leaves(net) if "BatchNorm" in type(cell).__name__ and hasattr(cell, "momentum"))


def containers(net: nn.Cell) -> Iterator[str]:
    """Cells of several parts that are called themselves and hold parameters."""
    for path, cell in cells(net):
        if len(list(cell.cells())) > 1 and list(cell.get_parameters()) and not isinstance(cell, nn.CellList):
            yield path


def squares(net: nn.Cell) -> Iterator[str]:
    for path, parameter in net.parameters_and_names():
        if parameter.ndim == 2 and parameter.shape[0] == parameter.shape[1]:
            yield path


def trained(net: nn.Cell) -> Iterator[str]:
    return (path for path, parameter in net.parameters_and_names() if parameter.requires_grad and parameter.ndim)


def anywhere(net: nn.Cell) -> Iterator[str]:
    yield ""


_EPSILON = ("epsilon", "eps", "variance_epsilon")
_OTHER_ACTIVATION: dict[str, Callable[[Any], Any]] = {
    "ReLU": lambda x: ops.leaky_relu(x, 0.05),
    "ReLU6": ops.relu,
    "GELU": lambda x: ops.gelu(x, approximate="tanh"),
    "GELUActivation": lambda x: ops.gelu(x, approximate="tanh"),
    "NewGELUActivation": lambda x: ops.gelu(x, approximate="none"),
    "GELUTanh": lambda x: ops.gelu(x, approximate="none"),
    "SiLU": ops.gelu,
    "SiLUActivation": ops.gelu,
    "HSwish": ops.silu,
    "Hardswish": ops.silu,
    "Swish": ops.gelu,
    "Tanh": ops.sigmoid,
    "Sigmoid": lambda x: ops.clamp(x / 6 + 0.5, 0, 1),
    "HSigmoid": ops.sigmoid,
}


def _around(cell: nn.Cell, change: Callable[..., Any]) -> None:
    """Let a Cell give out ``change(its construct, its arguments …)``."""
    construct = cell.construct
    cell.construct = lambda *arguments, **named: change(construct, *arguments, **named)


def _on_output(change: Callable[[Any], Any]) -> Callable[[nn.Cell, str, Training], None]:
    """Change the first output of a Cell."""

    def plant(net: nn.Cell, place: str, training: Training) -> None:
        def changed(construct: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            output = construct(*arguments, **named)
            return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

        _around(cell_of(net, place), changed)

    return plant


def _half(net: nn.Cell, place: str, training: Training) -> None:
    def halved(construct: Callable[..., Any], x: Any, *others: Any, **named: Any) -> Any:
        output = construct(x.astype(ms.float16), *others, **named)
        return output.astype(x.dtype)

    cell = cell_of(net, place)
    for _, parameter in cell.parameters_and_names():
        parameter.set_dtype(ms.float16)
    _around(cell, halved)


def _softmax_half(net: nn.Cell, place: str, training: Training) -> None:
    def halved(construct: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        owners = [(ops, "softmax"), (mint, "softmax"), (mint.nn.functional, "softmax")]
        before = [getattr(owner, name) for owner, name in owners]
        for (owner, name), softmax in zip(owners, before, strict=True):
            setattr(owner, name, _in_half(softmax))
        try:
            return construct(*arguments, **named)
        finally:
            for (owner, name), softmax in zip(owners, before, strict=True):
                setattr(owner, name, softmax)

    _around(cell_of(net, place), halved)


def _in_half(function: Callable[..., Any]) -> Callable[..., Any]:
    def halved(x: Any, *arguments: Any, **named: Any) -> Any:
        named.pop("dtype", None)
        return function(x.astype(ms.float16), *arguments, **named).astype(x.dtype)

    return halved


def _other_epsilon(net: nn.Cell, place: str, training: Training) -> None:
    cell = cell_of(net, place)
    name = next(each for each in _EPSILON if isinstance(getattr(cell, each, None), float))
    setattr(cell, name, 1e-2)
    _set_operators(cell, "epsilon", 1e-2)


def _set_operators(cell: nn.Cell, name: str, value: float) -> None:
    """Give the operators that a Cell holds another value of one of their settings."""
    for key, part in list(vars(cell).items()):
        if isinstance(part, ops.Primitive) and name in getattr(part, "init_attrs", {}):
            setattr(cell, key, type(part)(**{**part.init_attrs, name: value}))


def _other_activation(net: nn.Cell, place: str, training: Training) -> None:
    cell = cell_of(net, place)
    function = _OTHER_ACTIVATION[type(cell).__name__]
    _around(cell, lambda construct, x: function(x))


def _without_residual(net: nn.Cell, place: str, training: Training) -> None:
    def dropped(construct: Callable[..., Any], x: Any, *others: Any, **named: Any) -> Any:
        output = construct(x, *others, **named)
        first = output[0] if isinstance(output, tuple) else output
        if first.shape != x.shape:
            raise ValueError(f"{place} gives another shape than it takes")
        return (first - x, *output[1:]) if isinstance(output, tuple) else first - x

    _around(cell_of(net, place), dropped)


def _redrawn(parameter: ms.Parameter) -> None:
    noise = np.random.default_rng(11).standard_normal(parameter.shape).astype(np.float32)
    parameter.set_data(ms.Tensor(noise * np.float32(0.05 if parameter.ndim > 1 else 0.3)))


def _unloaded(net: nn.Cell, place: str, training: Training) -> None:
    _redrawn(parameter_of(net, place))


def _unloaded_cell(net: nn.Cell, place: str, training: Training) -> None:
    for parameter in cell_of(net, place).get_parameters():
        if parameter.requires_grad:
            _redrawn(parameter)


def _unloaded_all(net: nn.Cell, place: str, training: Training) -> None:
    for parameter in net.trainable_params():
        _redrawn(parameter)


def _transposed(net: nn.Cell, place: str, training: Training) -> None:
    parameter = parameter_of(net, place)
    parameter.set_data(ms.Tensor(np.ascontiguousarray(parameter.asnumpy().T)))


def _frozen(net: nn.Cell, place: str, training: Training) -> None:
    training.frozen.add(id(parameter_of(net, place)))


def _other_momentum(net: nn.Cell, place: str, training: Training) -> None:
    cell = cell_of(net, place)
    cell.momentum = 0.5
    _set_operators(cell, "momentum", 0.5)


def _split_of(x: ms.Tensor) -> ms.Tensor:
    """The float32 of 11 significant bits nearest to each element (Dekker, A floating-point technique, 1971)."""
    wide = x * 8193.0
    return wide - (wide - x)


def _narrow_products(net: nn.Cell, place: str, training: Training) -> None:
    cell = cell_of(net, place)
    _around(cell, lambda construct, x, *others, **named: construct(_split_of(x), *others, **named))


def _setting(**changed: Any) -> Callable[[nn.Cell, str, Training], None]:
    def plant(net: nn.Cell, place: str, training: Training) -> None:
        for name, value in changed.items():
            setattr(training, name, value)

    return plant


KINDS = {
    kind.name: kind
    for kind in (
        Kind("half", weighted, _half),
        Kind("softmax_half", containers, _softmax_half, "inside"),
        Kind("epsilon", norms, _other_epsilon),
        Kind("activation", activations, _other_activation),
        Kind("rolled", weighted, _on_output(lambda x: ops.cat((x[..., -1:], x[..., :-1]), -1))),
        Kind("scaled", containers, _on_output(lambda x: x * 1.05)),
        Kind("detached", weighted, _on_output(ops.stop_gradient)),
        Kind("dropout", weighted, _on_output(lambda x: ops.dropout(x, 0.1, training=True))),
        Kind("residual", containers, _without_residual),
        Kind("unloaded", trained, _unloaded, "parameter"),
        Kind("unloaded_cell", containers, _unloaded_cell, "inside"),
        Kind("transposed", squares, _transposed, "parameter"),
        Kind("unloaded_all", anywhere, _unloaded_all, "weights"),
        Kind("label_smoothing", anywhere, _setting(label_smoothing=0.1), "loss"),
        Kind("divided_twice", anywhere, _setting(loss_scale=0.5), "loss"),
        Kind("data_order", anywhere, _setting(reversed_rows=True), "data"),
        Kind("learning_rate", anywhere, _setting(learning_rate=2.0), "update", False),
        Kind("weight_decay", anywhere, _setting(weight_decay=0.1), "update", False),
        Kind("bias_correction", anywhere, _setting(bias_correction=False), "update", False),
        Kind("clipped", anywhere, _setting(clip=1e-3), "update", False),
        Kind("momentum", batch_norms, _other_momentum, "parameter", False),
        Kind("frozen", trained, _frozen, "parameter", False),
    )
}

#: Faults of which a training feels little: products of floats that were rounded to 11 bits, as accelerators do unless
#: told otherwise (TF32, HF32), and factors next to 1.
SMALL = {
    kind.name: kind
    for kind in (
        Kind("narrow_products", weighted, _narrow_products),
        Kind("scaled_by_1.0003", containers, _on_output(lambda x: x * 1.0003)),
        Kind("scaled_by_1.00015", containers, _on_output(lambda x: x * 1.00015)),
        Kind("layer_scaled_by_1.0003", weighted, _on_output(lambda x: x * 1.0003)),
    )
}


def plant(fault: str, net: nn.Cell, training: Training) -> None:
    """Plant ``kind@place``."""
    kind, _, place = fault.partition("@")
    (KINDS | SMALL)[kind].plant(net, place, training)
