"""Values as the text dump.json holds: ``json.dump(indent=1)`` byte for byte, NaN and infinities as bare tokens.

An entry is turned into text once, when it is stored; the journal holds that text and export only strings it together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.dump.names import SKETCH, STRIDE

#: A text as a JSON string, quotes included.
encode_text: Callable[[str], str] = encode_basestring_ascii

#: Depth of an entry's fields (``input_args``…) in dump.json.
FIELD_LEVEL = 3


class _Breaks(dict[int, str]):
    """Newline and indentation by depth; those at hand are found without a call."""

    def __missing__(self, depth: int) -> str:
        return "\n" + " " * depth


_BREAKS = _Breaks((depth, "\n" + " " * depth) for depth in range(64))


class DeferredStatistic:
    """A statistic, sketch or checksum still on its device.

    ``value`` is there before it is turned into text, or nothing is.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Statistic = None


#: A statistic, at hand or not.
EntryStatistic = Statistic | DeferredStatistic


class TensorLeaf(NamedTuple):
    """A tensor's leaf, keys in the order of the format."""

    type: str
    dtype: str
    shape: Sequence[int]
    maximum: EntryStatistic
    minimum: EntryStatistic
    mean: EntryStatistic
    norm: EntryStatistic
    requires_grad: bool | None = None
    data_name: str | None = None
    md5: str | DeferredStatistic | None = None
    sketch: str | DeferredStatistic | None = None
    strides: Sequence[int] | None = None


#: Depth of most leaves: of those in a list or object that is a field.
LEAF_LEVEL = FIELD_LEVEL + 1

#: What an entry's field is made of. Bytes are the text of a leaf that is at hand, as it stands at `LEAF_LEVEL`.
Value = None | bool | int | float | str | bytes | TensorLeaf | Sequence["Value"] | Mapping[str, "Value"]


def number_text(value: float) -> str:
    """A float as Python's json writes it: shortest repr, or the tokens NaN, Infinity, -Infinity."""
    if value - value == 0.0:
        return float.__repr__(value)
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def value_text(value: Value, depth: int) -> str:
    """JSON text of ``value`` whose own opening bracket stands at ``depth`` spaces."""
    if isinstance(value, bytes):
        text = value.decode()
        return text if depth == LEAF_LEVEL else text.replace(_BREAKS[LEAF_LEVEL], _BREAKS[depth])
    if isinstance(value, TensorLeaf):
        return _leaf_text(value, depth)
    if isinstance(value, (list, tuple)):
        return _list_text(value, depth)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return number_text(value)
    if not isinstance(value, (dict, Mapping)):
        return _list_text(value, depth)
    if not value:
        return "{}"
    inner = _BREAKS[depth + 1]
    members = [f"{inner}{encode_text(key)}: {value_text(member, depth + 1)}" for key, member in value.items()]
    return "{" + ",".join(members) + _BREAKS[depth] + "}"


def _list_text(values: Sequence[Value], depth: int) -> str:
    if not values:
        return "[]"
    inner = _BREAKS[depth + 1]
    return "[" + ",".join([inner + value_text(member, depth + 1) for member in values]) + _BREAKS[depth] + "]"


def _leaf_frame(depth: int) -> tuple[str, ...]:
    """What stands before, between and after the values of a tensor's leaf."""
    line = _BREAKS[depth + 1]
    keys = ("dtype", "Max", "Min", "Mean", "Norm", "requires_grad", "data_name", "md5", SKETCH)
    dtype, maximum, minimum, mean, norm, grad, file, md5, sketch = (f',{line}"{key}": ' for key in keys)
    return (
        f'{{{line}"type": "', f'"{dtype}"', f'",{line}"shape": [', _BREAKS[depth + 2], f"{line}]{maximum}",
        f"]{maximum}", minimum, mean, norm, f"{grad}true", f"{grad}false", file, md5, sketch, _BREAKS[depth] + "}",
    )  # fmt: skip


#: Made once: a dump has a million leaves, at three depths.
_LEAF_FRAMES = tuple(map(_leaf_frame, range(16)))


def _leaf_text(leaf: TensorLeaf, depth: int) -> str:
    frame = _LEAF_FRAMES[depth] if depth < len(_LEAF_FRAMES) else _leaf_frame(depth)
    kind, dtype, shape, size, filled, empty, minimum, mean, norm, required, unneeded, file, md5, sketch, end = frame
    if leaf.shape:
        sizes = size + f",{size}".join(map(str, leaf.shape))
    else:
        sizes, filled = "", empty
    # Nearly all are finite floats; the others have a function.
    numbers = [
        float.__repr__(value) if type(value) is float and value - value == 0.0 else _statistic_text(value)
        for value in (leaf.maximum, leaf.minimum, leaf.mean, leaf.norm)
    ]
    text = (
        f"{kind}{leaf.type}{dtype}{leaf.dtype}{shape}{sizes}{filled}{numbers[0]}"
        f"{minimum}{numbers[1]}{mean}{numbers[2]}{norm}{numbers[3]}"
    )
    if leaf.requires_grad is not None:
        text += required if leaf.requires_grad else unneeded
    if leaf.data_name is not None:
        text += file + encode_text(leaf.data_name)
    for key, value in ((md5, leaf.md5), (sketch, leaf.sketch)):
        known = value.value if isinstance(value, DeferredStatistic) else value
        if known is not None:
            text += f'{key}"{known}"'
    if leaf.strides is not None:
        text += f',{_BREAKS[depth + 1]}"{STRIDE}": {value_text(leaf.strides, depth + 1)}'
    return text + end


_BEFORE_SKETCH, _BEFORE_FILE = (f',{_BREAKS[LEAF_LEVEL + 1]}"{key}": '.encode() for key in (SKETCH, "data_name"))


@lru_cache(maxsize=1 << 10)  # those of one step are those of the next
def leaf_frame(kind: str, dtype: str, shape: tuple[int, ...], requires_grad: bool | None) -> tuple[bytes, ...]:
    """Return what stands around the figures in the text of a leaf at `LEAF_LEVEL`.

    Before Max, Min, Mean and Norm, behind Norm, before the sketch, and at the end.
    """
    leaf = TensorLeaf(kind, dtype, shape, "@", "@", "@", "@", requires_grad, sketch="@")
    maximum, minimum, mean, norm, rest, end = _leaf_text(leaf, LEAF_LEVEL).encode().split(b'"@"')
    return maximum, minimum, mean, norm, rest.removesuffix(_BEFORE_SKETCH), _BEFORE_SKETCH, end


def framed_leaf(frame: tuple[bytes, ...], statistics: Iterable[Statistic], sketch: str | None) -> bytes:
    """Return the text of a leaf of these figures, from what `leaf_frame` gives."""
    maximum, minimum, mean, norm, rest, before_sketch, end = frame
    numbers = [
        (float.__repr__(value) if type(value) is float and value - value == 0.0 else value_text(value, 0)).encode()
        for value in statistics
    ]
    parts = (maximum, numbers[0], minimum, numbers[1], mean, numbers[2], norm, numbers[3], rest)
    return b"".join((*parts, end) if sketch is None else (*parts, before_sketch, b'"%b"' % sketch.encode(), end))


def number_frame() -> tuple[bytes, ...]:
    """Return what stands around numbers in the text of a leaf at `LEAF_LEVEL` that is of one.

    The whole of None, what stands before a bool, an int and a float, and behind each.
    """
    leaves = ({"type": kind, "value": None} for kind in ("bool", "int", "float"))
    parts = [value_text(leaf, LEAF_LEVEL).encode().rpartition(b"null") for leaf in leaves]
    return (value_text(None, LEAF_LEVEL).encode(), *(before for before, _, _ in parts), parts[0][2])


def _statistic_text(value: EntryStatistic) -> str:
    return value_text(value.value if isinstance(value, DeferredStatistic) else value, 0)


_END = leaf_frame("", "", (), None)[-1]
#: What a leaf has behind its statistics.
_REQUIRED = {required: leaf_frame("", "", (), required)[4] for required in (True, False, None)}


def with_file(text: bytes, requires_grad: bool | None, data_name: str | None) -> bytes:
    """Add what `leaf_frame` was not told to the text of a leaf: ``requires_grad``, and the name of its file."""
    place = text.rfind(_BEFORE_SKETCH)
    place = len(text) - len(_END) if place < 0 else place
    file = b"" if data_name is None else _BEFORE_FILE + encode_text(data_name).encode()
    return b"".join((text[:place], _REQUIRED[requires_grad], file, text[place:]))


class Whole(NamedTuple):
    """Stands for the one field, without a name, of an entry that is a value itself and no object of fields."""

    value: Value


#: What stands around the members of a field, between them and behind the last.
_BEGIN, _END_OF_FIELD = _BREAKS[LEAF_LEVEL], _BREAKS[FIELD_LEVEL].encode()
_LIST, _OBJECT = (f"[{_BEGIN}", _END_OF_FIELD + b"]"), (f"{{{_BEGIN}", _END_OF_FIELD + b"}")
_NEXT = f",{_BEGIN}".encode()


def field_text(name: str, value: Value | Whole) -> bytes:
    """One field of an entry, ``"input_args": […]``, indented for its place in dump.json."""
    if isinstance(value, Whole):
        return _encoded(value_text(value.value, FIELD_LEVEL - 1))
    # Nearly all are lists of leaves that are at hand, which are strung together as they are.
    if value and isinstance(value, list):
        begin, end = _LIST
        return b"".join((_head(name, begin), _strung(value), end))
    if value and isinstance(value, dict):
        begin, end = _OBJECT
        named = [_named(key, each) for key, each in value.items()]
        return b"".join((_head(name, begin), _NEXT.join(named), end))
    return _head(name, "") + _encoded(value_text(value, FIELD_LEVEL))


@lru_cache(maxsize=1 << 10)  # those of one entry are those of the next
def _head(name: str, begin: str) -> bytes:
    return _encoded(f"{' ' * FIELD_LEVEL}{encode_text(name)}: {begin}")


def _strung(values: list[Any]) -> bytes:
    try:
        return _NEXT.join(values)
    except TypeError:  # not all of them are text
        return _NEXT.join(map(_member, values))


def _member(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    return b"null" if value is None else _encoded(value_text(value, LEAF_LEVEL))


def _named(key: str, value: Value) -> bytes:
    return f"{encode_text(key)}: ".encode() + _member(value)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
