"""An entry's body in dump.json → the items of the call, in the order of the format: inputs, outputs, parameters.

A container passes its keys on to the names of what it holds; only a *leaf*, an object with a text ``type``, and null
end a path. Nothing is dropped: a leaf of an unknown type becomes a value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msprobe_ms.errors import DumpFormatError
from msprobe_ms.names import UNWRITTEN
from msprobe_ms.store.model import Item, Statistic

#: Nesting the readers of the format accept.
DEEPEST = 400

#: Sections of an entry's body in the order of items: key, state of the items, whether they are keyword arguments.
_SECTIONS = (
    ("input_args", "input", False),
    ("input_kwargs", "input", True),
    ("input", "input", False),
    ("output", "output", False),
    ("parameters", "parameters", False),
)
SECTION_KEYS = frozenset(key for key, _, _ in _SECTIONS)

#: JSON integers have no bounds, floats have.
_LARGEST_EXPONENT = 1023


def call_items(entry: str, body: dict[str, Any]) -> list[Item]:
    """The items of a forward or backward entry.

    :raises DumpFormatError: nested deeper than ``DEEPEST``
    """
    items: list[Item] = []
    for key, state, keyword in _SECTIONS:
        section = body.get(key)
        if section is None:
            continue
        if not isinstance(section, (list, dict)) or _is_leaf(section):
            section = [section]  # an output that was not wrapped into a list
        _Walk(entry, state, keyword, items).into(section, ())
    return items


def gradient_items(entry: str, body: dict[str, Any]) -> list[Item]:
    """The items of a parameters_grad entry ``{parameter: [leaf]}``: the list around one gradient is no level."""
    items: list[Item] = []
    for parameter, gradient in body.items():
        if isinstance(gradient, list) and len(gradient) == 1:
            gradient = gradient[0]
        _Walk(entry, "parameters_grad", False, items).into(gradient, (parameter,))
    return items


def saved_items(entry: str, body: Any) -> list[Item]:
    """The items of a debug entry: a leaf, null, or any nesting of them."""
    items: list[Item] = []
    _Walk(entry, "debug", False, items).into(body, ())
    return items


class _Walk:
    """Goes down one section and appends what it finds to ``items``."""

    __slots__ = ("_entry", "_items", "_keyword", "_state")

    def __init__(self, entry: str, state: str, keyword: bool, items: list[Item]) -> None:
        self._entry = entry
        self._state = state
        self._keyword = keyword
        self._items = items

    def into(self, value: Any, path: tuple[str, ...]) -> None:
        if len(path) > DEEPEST:
            raise DumpFormatError(f"entry {self._entry!r}: nested deeper than {DEEPEST} levels below {self._state}")
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                self._items.append(self._leaf(value, path))
                return
            for key, member in value.items():
                self.into(member, (*path, key))
        elif isinstance(value, list):
            for index, member in enumerate(value):
                self.into(member, (*path, str(index)))
        elif value is None:
            self._items.append(Item(self._entry, self._state, path, self._keyword))
        else:  # a bare JSON scalar, where the format wants {"type", "value"}
            self._items.append(self._builtin(type(value).__name__, value, path))

    def _leaf(self, leaf: dict[str, Any], path: tuple[str, ...]) -> Item:
        kind = leaf["type"]
        if "value" in leaf:
            return self._value(kind, leaf["value"], path)
        if "dtype" not in leaf and "shape" not in leaf:
            rest = [str(value) for key, value in leaf.items() if key != "type"]
            return self._text(kind, ", ".join(rest), path)
        if leaf.get(UNWRITTEN) is True:  # the file holds what happened to be in memory
            return Item(self._entry, self._state, path, self._keyword)
        get = leaf.get
        maximum, minimum, mean, norm = get("Max"), get("Min"), get("Mean"), get("Norm")
        requires_grad, md5, data_name = get("requires_grad"), get("md5"), get("data_name")
        return Item(
            self._entry,
            self._state,
            path,
            self._keyword,
            "tensor",
            kind,
            str(get("dtype")),
            _shape(get("shape")),
            maximum if type(maximum) is float else _statistic(maximum),
            minimum if type(minimum) is float else _statistic(minimum),
            mean if type(mean) is float else _statistic(mean),
            norm if type(norm) is float else _statistic(norm),
            requires_grad if isinstance(requires_grad, bool) else None,
            md5 if isinstance(md5, str) else None,
            data_name if isinstance(data_name, str) and data_name != "-1" else None,
        )

    def _value(self, kind: str, value: Any, path: tuple[str, ...]) -> Item:
        """Leaves with a ``value``, as the tables of the format hold them (§11.1)."""
        if value is None:
            return Item(self._entry, self._state, path, self._keyword)
        if kind == "torch.Size":
            return self._text(kind, None, path, shape=str(value))
        if kind == "slice" and isinstance(value, list):
            return self._text(kind, None, path, shape=f"({len(value)},)")
        if kind == "ellipsis":
            return self._text(kind, "...", path)
        return self._builtin(kind, value, path)

    def _builtin(self, kind: str, value: Any, path: tuple[str, ...]) -> Item:
        return self._text(kind, _statistic(value), path, dtype=str(type(value)))

    def _text(
        self, kind: str, value: Statistic, path: tuple[str, ...], *, dtype: str | None = None, shape: str = "[]"
    ) -> Item:
        head = (self._entry, self._state, path, self._keyword)
        return Item(*head, "value", kind, dtype or kind, shape, value, value, value, value)


def _is_leaf(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _statistic(value: Any) -> Statistic:
    """A figure as it stands; what is none becomes text, an integer beyond any float infinity."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _LARGEST_EXPONENT:
        return float("inf") if value > 0 else float("-inf")
    return value if value is None or isinstance(value, (float, int, str)) else str(value)


def _shape(shape: Any) -> tuple[int, ...] | str | None:
    """A tensor's shape; what is none is kept as text."""
    try:
        return _sizes(tuple(shape))
    except (TypeError, ValueError):
        return None if shape is None else str(shape)


@lru_cache(maxsize=4096)
def _sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """``shape`` itself, once for all tensors that share it."""
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError
    return shape
