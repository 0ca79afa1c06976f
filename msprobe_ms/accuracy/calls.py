"""API calls of a dump as they can be made again: the arguments of each, in place, with what was recorded of them.

Readers of comparisons flatten a call to items; here containers, positions and keywords stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.dump.dialects import API_PREFIXES, DIALECTS, JIT, KERNEL, MINDSPORE, apis_by_prefixes
from msprobe_ms.dump.names import ATTRIBUTES, BACKWARD, DEBUG, FORWARD, EntryName, parse_entry
from msprobe_ms.dump.reading.items import DEEPEST
from msprobe_ms.dump.reading.json_stream import members
from msprobe_ms.dump.reading.locate import parts_of
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument, Value
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr

#: ``type`` of the leaves that are dtypes, and of those that mean nothing in another process.
_DTYPES = frozenset({"mindspore.dtype", "torch.dtype"})
_TENSORS = ("mindspore.Tensor", "torch.Tensor", "numpy.ndarray", "mindspore.Parameter", "torch.nn.Parameter")
#: A device is left to the process that runs the call: everything lies on its own.
_DEVICE = "torch.device"


class RecordedTensor(NamedTuple):
    """What a dump says of a tensor.

    ``dtype``             in numpy's spelling: ``float32``, ``bfloat16``
    ``maximum`` … ``norm``  as recorded; None where they were not
    ``finite_maximum``, ``finite_minimum``  of the finite elements, where the dump tells them
    ``data_name``         the file with its values; None where there is none
    ``requires_grad``     whether the dump says that a gradient may flow through it
    ``place``             where it stands, ``forward.input.0``: the same call has no other of that place
    ``entry``             the entry that holds it; "" of a call of an API
    """

    dtype: str
    shape: tuple[int, ...]
    maximum: Statistic = None
    minimum: Statistic = None
    mean: Statistic = None
    norm: Statistic = None
    finite_maximum: Statistic = None
    finite_minimum: Statistic = None
    data_name: str | None = None
    place: str = ""
    requires_grad: bool = False
    entry: str = ""


class Unknown(NamedTuple):
    """An argument whose record does not tell its value: a function, a process group, a list that was cut."""

    type: str


@dataclass(slots=True)
class ApiCall:
    """One call of an API, forward and backward.

    ``arguments``         leaves are ``RecordedTensor``, ``Unknown``, dtypes and plain values; None: no forward entry
    ``attributes``        what a primitive was made with
    ``outputs``           leaves of the results, flattened; None where they were not recorded
    ``output_gradients``  gradients with respect to the results (``input`` of the backward entry), flattened; None
                          where there is no backward entry
    ``input_gradients``   those with respect to the arguments, flattened
    """

    name: str
    prefix: str
    api: str
    arguments: Arguments | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    outputs: Sequence[Value] | None = None
    output_gradients: Sequence[Value] | None = None
    input_gradients: Sequence[Value] | None = None


@dataclass(slots=True)
class Calls:
    """What a dump.json holds: its envelope, its API calls in the order they began to be recorded, and other entries.

    ``others``: entries that are no call of an API, with what they are.
    """

    path: Path
    envelope: dict[str, Any] = field(default_factory=dict)
    apis: dict[str, ApiCall] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)

    @property
    def framework(self) -> str:
        """The framework whose APIs these are; old dumps name none, but prefixes of entries tell."""
        named = self.envelope.get("framework")
        known = {dialect.name for dialect in DIALECTS}
        if isinstance(named, str) and named.lower() in known:
            return named.lower()
        return apis_by_prefixes(call.prefix for call in self.apis.values()) or MINDSPORE.name

    @property
    def tensor_folder(self) -> str | None:
        """Where the dump says that its tensors are."""
        folder = self.envelope.get("dump_data_dir")
        return folder if isinstance(folder, str) else None

    @property
    def has_tensors(self) -> bool:
        """Whether tensors were recorded."""
        return self.envelope.get("task") == "tensor"


def read_calls(path: Path) -> Calls:
    """Read the API calls of a dump.json; of a divided step, as ``find_places`` gives it, those of both halves.

    :raises DumpFormatError: a file cannot be read, is damaged, or is none of a dump
    """
    calls = Calls(path)
    for part in parts_of(path):
        _read(part, calls)
    return calls


def _read(path: Path, calls: Calls) -> None:
    envelope: dict[str, Any] = {}
    try:
        for holder, key, value in members(path, opened="data"):
            if holder:
                _add(calls, key, value)
            else:
                envelope[key] = value
    except RecursionError as error:
        raise DumpFormatError(tr("{path}: nested deeper than {deepest} levels", path=path, deepest=DEEPEST)) from error
    if envelope.get("data") != {}:
        raise DumpFormatError(tr("{path}: has no object 'data'; accepted is the dump.json of a dump", path=path))
    calls.envelope = {**envelope, **calls.envelope}  # that of what ran outside of graphs comes first


def _add(calls: Calls, name: str, body: Any) -> None:
    parsed = parse_entry(name)
    if parsed is None or not _is_api(parsed):
        calls.others[name] = _what(parsed)
        return
    if not isinstance(body, dict):
        calls.others[name] = tr("holds no values")
        return
    key = name.rpartition(".")[0]
    call = calls.apis.setdefault(key, ApiCall(key, parsed.prefix, parsed.name))
    read = _Leaves(parsed.direction)
    if parsed.direction == FORWARD:
        positional = read.value(body.get("input_args") or [], "input")
        keywords = read.value(body.get("input_kwargs") or {}, "input")
        call.arguments = Arguments(
            positional if isinstance(positional, tuple) else (positional,),
            keywords if isinstance(keywords, dict) else {},
        )
        attributes = read.value(body.get(ATTRIBUTES) or {}, ATTRIBUTES)
        call.attributes = attributes if isinstance(attributes, dict) else {}
        call.outputs = _flat(read.value(body["output"], "output")) if "output" in body else None
    else:
        call.output_gradients = _flat(read.value(body["input"], "input")) if "input" in body else ()
        call.input_gradients = _flat(read.value(body["output"], "output")) if "output" in body else None


def _is_api(parsed: EntryName) -> bool:
    return (
        not parsed.is_module
        and parsed.direction in (FORWARD, BACKWARD)
        and parsed.prefix in API_PREFIXES
        and parsed.prefix not in (JIT, KERNEL)
    )


def _what(parsed: EntryName | None) -> str:
    if parsed is not None and parsed.is_module:
        return tr("modules: the APIs in them are checked one by one")
    if parsed is not None and parsed.prefix == JIT:
        return tr("a compiled function")
    if parsed is not None and parsed.prefix == KERNEL:
        return tr("a kernel")
    if parsed is not None and parsed.direction == DEBUG:
        return tr("saved value (such as the loss)")
    return tr("not an API call")


class _Leaves:
    """Reads the values of one entry."""

    def __init__(self, direction: str) -> None:
        self._direction = direction

    def value(self, value: Any, place: str, depth: int = 0) -> Value:
        """Give a value with its containers; lists as tuples, which every API takes."""
        if depth > DEEPEST:
            raise RecursionError
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                return self._leaf(value, place)
            return {str(key): self.value(member, f"{place}.{key}", depth + 1) for key, member in value.items()}
        if isinstance(value, list):
            return tuple(self.value(member, f"{place}.{number}", depth + 1) for number, member in enumerate(value))
        return value  # null, and the bare scalars of other tools

    def _leaf(self, leaf: Mapping[str, Any], place: str) -> Value:
        kind = leaf["type"]
        if kind in _TENSORS or ("dtype" in leaf and "shape" in leaf):
            return self._tensor(leaf, place)
        value = leaf.get("value")
        if kind in _DTYPES:
            return DtypeArgument(parse_dtype(str(value)).name)
        read = _PLAIN.get(kind)
        if read is None or (value is None and kind != "NoneType"):
            return Unknown(kind)
        try:
            return read(value)
        except (TypeError, ValueError):
            return Unknown(kind)

    def _tensor(self, leaf: Mapping[str, Any], place: str) -> Value:
        shape = leaf.get("shape")
        if not (isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)):
            return Unknown(tr("{leaf} without a shape", leaf=leaf["type"]))
        file = leaf.get("data_name")
        statistics: dict[str, Any] = {field: leaf.get(key) for field, key in _STATISTICS.items()}
        return RecordedTensor(
            parse_dtype(str(leaf.get("dtype"))).name,
            tuple(shape),
            **statistics,
            data_name=file if isinstance(file, str) and file not in ("", "-1") else None,
            place=f"{self._direction}.{place}",
            requires_grad=leaf.get("requires_grad") is True,
        )


#: Field of RecordedTensor → key of the leaf; the last two are 26.x's.
_STATISTICS = {
    "maximum": "Max",
    "minimum": "Min",
    "mean": "Mean",
    "norm": "Norm",
    "finite_maximum": "Max_except_inf_nan",
    "finite_minimum": "Min_except_inf_nan",
}


def _number(value: Any) -> Any:
    if not isinstance(value, (bool, int, float)):
        raise TypeError
    return value


def _slice(value: Any) -> slice:
    start, stop, step = value
    return slice(start, stop, step)


_PLAIN: dict[str, Callable[[Any], Value]] = {
    "bool": _number,
    "int": _number,
    "float": _number,
    "str": str,
    "NoneType": lambda _: None,
    "slice": _slice,
    "ellipsis": lambda _: ...,
    "Ellipsis": lambda _: ...,
    "complex": lambda value: complex(value) if isinstance(value, str) else complex(*value),
    "torch.Size": tuple,
    _DEVICE: lambda _: None,
    # Scalars of numpy.
    **dict.fromkeys(("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool_"), _number),
}


def _flat(value: Value) -> tuple[Value, ...]:
    return tuple(flat_leaves(value))


def flat_leaves(value: Value) -> Iterator[Value]:
    """Yield the leaves of nested containers, depth first; None is a leaf, and so is a named tuple."""
    if isinstance(value, dict):
        for member in value.values():
            yield from flat_leaves(member)
    elif type(value) in (tuple, list):
        for member in value:
            yield from flat_leaves(member)
    else:
        yield value


def mapped(value: Value, change: Callable[[Any], Any]) -> Value:
    """Give nested containers with each leaf changed."""
    if isinstance(value, dict):
        return {key: mapped(member, change) for key, member in value.items()}
    if type(value) in (tuple, list):
        return tuple(mapped(member, change) for member in value)
    return change(value)


def map_arguments(arguments: Arguments, change: Callable[[Any], Any]) -> Arguments:
    """Give arguments with each leaf changed, positional ones first."""
    positional = tuple(mapped(value, change) for value in arguments.positional)
    return Arguments(positional, {key: mapped(value, change) for key, value in arguments.keywords.items()})


def argument_leaves(arguments: Arguments) -> tuple[Value, ...]:
    """Return the leaves of all arguments, positional ones first."""
    return (*flat_leaves(arguments.positional), *flat_leaves(arguments.keywords))
