"""The pickle inside a ``torch.save`` file, read as a description of one tensor: nothing in it is ever called.

A pickle is a program for a small stack machine. This module runs the few instructions that describe a tensor and gives
back where its numbers lie; names of functions and classes stay names. Everything else is refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msprobe_ms.support.translation import tr

#: A tensor's description takes some 200 bytes, with attributes of its own a few thousand; more is something else.
LONGEST_PICKLE = 64 << 10

#: Typed storages of torch and the dtype of their elements.
_STORAGES = {
    "torch.DoubleStorage": "float64",
    "torch.FloatStorage": "float32",
    "torch.HalfStorage": "float16",
    "torch.BFloat16Storage": "bfloat16",
    "torch.LongStorage": "int64",
    "torch.IntStorage": "int32",
    "torch.ShortStorage": "int16",
    "torch.CharStorage": "int8",
    "torch.ByteStorage": "uint8",
    "torch.BoolStorage": "bool",
    "torch.ComplexDoubleStorage": "complex128",
    "torch.ComplexFloatStorage": "complex64",
}
_UNTYPED_STORAGE = "torch.storage.UntypedStorage"

#: dtypes that came after the typed storages: named in the tensor's description.
_DTYPES = {
    f"torch.{name}": name
    for name in (
        *_STORAGES.values(),
        *("uint16", "uint32", "uint64", "complex32"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    )
}
_CLASSES = {"torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer"}


class Refused(ValueError):
    """The pickle describes something else than a plain tensor; the text says what."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Where numbers lie: the archive's record ``data/{key}``; ``dtype`` is None for a storage of plain bytes."""

    key: str
    dtype: str | None


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor as a strided view of a storage; ``offset`` and ``strides`` count elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    conjugate: bool
    negative: bool


class _Name(str):
    """A function or class by name, never the thing itself."""

    __slots__ = ()


def describe(data: bytes) -> TensorRecord:
    """Read the tensor that a torch pickle describes.

    :raises Refused: it is damaged, describes something else than a tensor, or names anything but torch's tensors
    """
    if len(data) > LONGEST_PICKLE:
        raise Refused(tr("{count} bytes are too many for the description of one tensor", count=len(data)))
    found = run_machine(Machine(STEPS, LITERALS), data)
    if not isinstance(found, TensorRecord):
        raise Refused(tr("it holds a {name}, not one tensor", name=type(found).__name__))
    return found


def run_machine(machine: Machine, data: bytes) -> object:
    """Run the pickle ``data`` and return what it leaves on the stack. Raises Refused, also where it is damaged."""
    try:
        return machine.run(data)
    except Refused:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise Refused(tr("the pickle is damaged ({name})", name=type(error).__name__)) from error


def is_known(name: str) -> bool:
    """Whether ``name`` is one of torch's tensors, storages, dtypes or of the functions that rebuild them."""
    return name in _CALLS or name in _STORAGES or name in _DTYPES or name in _CLASSES or name == _UNTYPED_STORAGE


class Machine:
    """The stack machine; its stack holds plain values, names, storages and tensor records only.

    ``steps`` are the instructions it runs, ``literals`` those that put their argument on the stack.
    """

    def __init__(self, steps: Mapping[str, Step], literals: frozenset[str]) -> None:
        self._steps, self._literals = steps, literals
        self.stack: list[Any] = []
        self.outer: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self, data: bytes) -> object:
        for opcode, argument, position in pickletools.genops(data):
            if opcode.name == "STOP":
                return self.stack.pop()
            if opcode.name in self._literals:
                self.stack.append(argument)
            elif step := self._steps.get(opcode.name):
                step(self, argument)
            else:
                raise Refused(
                    tr(
                        "instruction {name} at byte {position} has no place in a tensor",
                        name=opcode.name,
                        position=position,
                    )
                )
        raise Refused(tr("the pickle has no end"))

    def pop_to_mark(self) -> list[Any]:
        above, self.stack = self.stack, self.outer.pop()
        return above

    def mark(self, _: object) -> None:
        self.outer.append(self.stack)
        self.stack = []

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise IndexError
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def tuple_to_mark(self, _: object) -> None:
        above = self.pop_to_mark()
        self.stack.append(tuple(above))

    def put(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def name(self, text: str) -> None:
        """``text`` is "module name"; only torch's tensors, storages, dtypes and the functions that rebuild them."""
        name = text.replace(" ", ".")
        if not is_known(name):
            raise Refused(tr("it names {name}, which is no part of a tensor", name=repr(name[:200])))
        self.stack.append(_Name(name))

    def name_from_stack(self, _: object) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError
        self.name(f"{module} {name}")

    def storage(self, _: object) -> None:
        kind, storage_type, key, _location, _length = self.stack.pop()
        if kind != "storage" or not isinstance(storage_type, _Name) or type(key) is not str:
            raise TypeError
        dtype = None if storage_type == _UNTYPED_STORAGE else _STORAGES[storage_type]
        self.stack.append(Storage(key, dtype))

    def reduce(self, _: object) -> None:
        arguments, name = self.stack.pop(), self.stack.pop()
        self.stack.append(_rebuild(name, arguments))

    def set_item(self, _: object) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.update([key, value])

    def set_items(self, _: object) -> None:
        self.update(self.pop_to_mark())

    def update(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict:
            raise TypeError
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type(key) is not str:  # hashing a tuple of tuples of … can take for ever
                raise TypeError
            target[key] = value

    def append(self, _: object) -> None:
        self.extend([self.stack.pop()])

    def appends(self, _: object) -> None:
        self.extend(self.pop_to_mark())

    def extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError
        target.extend(values)


LITERALS = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"})

Step = Callable[[Any, Any], None]
STEPS: Mapping[str, Step] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "EMPTY_TUPLE": lambda machine, _: machine.stack.append(()),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "MARK": Machine.mark,
    "TUPLE": Machine.tuple_to_mark,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "BINPUT": Machine.put,
    "LONG_BINPUT": Machine.put,
    "MEMOIZE": lambda machine, _: machine.put(len(machine.memo)),
    "BINGET": lambda machine, index: machine.stack.append(machine.memo[index]),
    "LONG_BINGET": lambda machine, index: machine.stack.append(machine.memo[index]),
    "GLOBAL": lambda machine, text: machine.name(text),
    "STACK_GLOBAL": Machine.name_from_stack,
    "BINPERSID": Machine.storage,
    "REDUCE": lambda machine, _: machine.reduce(_),
    "SETITEM": Machine.set_item,
    "SETITEMS": Machine.set_items,
    "APPEND": Machine.append,
    "APPENDS": Machine.appends,
}


def _rebuild(name: object, arguments: Any) -> object:
    """What the call of a torch function would describe."""
    if not isinstance(name, _Name) or name not in _CALLS or not isinstance(arguments, tuple):
        raise Refused(
            tr("it calls {name}", name=repr(name[:200]))
            if isinstance(name, str)
            else tr("it calls something that has no name")
        )
    return _CALLS[name](arguments)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, dtype: str | None, metadata: Any) -> TensorRecord:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, Storage) or dtype is None or not all(type(number) is int for number in numbers):
        raise TypeError
    if type(shape) is not tuple or type(strides) is not tuple or not isinstance(metadata, dict):
        raise TypeError
    return TensorRecord(
        storage, dtype, offset, shape, strides, metadata.get("conj") is True, metadata.get("neg") is True
    )


def _tensor_v2(arguments: tuple[Any, ...]) -> TensorRecord:
    """(storage, offset, size, stride[, requires_grad, backward_hooks[, metadata]]), also of ``_rebuild_tensor``."""
    storage, offset, shape, strides = arguments[:4]
    return _tensor(storage, offset, shape, strides, storage.dtype, arguments[6] if len(arguments) > 6 else {})


def _tensor_v3(arguments: tuple[Any, ...]) -> TensorRecord:
    """(storage, offset, size, stride, requires_grad, backward_hooks, dtype[, metadata])."""
    storage, offset, shape, strides, _requires_grad, _hooks, dtype = arguments[:7]
    if not isinstance(dtype, _Name):
        raise TypeError
    return _tensor(storage, offset, shape, strides, _DTYPES[dtype], arguments[7] if len(arguments) > 7 else {})


_CALLS: dict[str, Callable[[tuple[Any, ...]], object]] = {
    "torch._utils._rebuild_tensor": _tensor_v2,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": lambda arguments: arguments[0],
    "torch._utils._rebuild_parameter_with_state": lambda arguments: arguments[0],
    "torch._tensor._rebuild_from_type_v2": lambda arguments: _rebuild(arguments[0], arguments[2]),
    "collections.OrderedDict": lambda arguments: {},
}
