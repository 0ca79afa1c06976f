"""Plain arguments of two counterpart calls by name, and which of them say that the calls compute different things.

An argument is known by its keyword, or by its place where the signature of the function is known (``signatures.yaml``);
attributes of primitives have names. What a call leaves out has its default. Frameworks spell names and values in their
own ways, so two values differ only where both are numbers, or both texts, and nothing else could be meant: axes may be
counted from either end, one size may stand for several, and a number that large may be what a mask fills with.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

import yaml

from msprobe_ms.arrays.dtypes import same_dtype
from msprobe_ms.dump.columns import ItemSlice
from msprobe_ms.dump.dialects import apis_of
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import EntryName
from msprobe_ms.support.yaml_files import FASTEST_LOADER

#: Spellings of one argument in the frameworks, the first as it is told.
SPELLINGS = (
    ("input", "x", "input_x", "self", "logits", "tensor", "input_tensor"),
    ("other", "y", "input_y"),
    ("weight", "gamma", "scale", "embedding_table"),
    ("bias", "beta", "offset"),
    ("epsilon", "eps"),
    ("dim", "axis", "dims", "axes"),
    ("keepdim", "keep_dims", "keepdims"),
    ("p", "keep_prob"),
    ("indices", "index", "ids"),
    ("num_groups", "groups", "group"),
    ("negative_slope", "alpha"),
    ("correction", "ddof", "unbiased"),
    ("stride", "strides"),
    ("dilation", "dilations"),
)
#: What is computed with, by the first spelling.
OPERANDS = ("input", "other")
CANONICAL: Mapping[str, str] = {name: spellings[0] for spellings in SPELLINGS for name in spellings}

#: What changes no number of the results, or is stated in other terms by others.
_WITHOUT_EFFECT = frozenset({
    "inplace", "out", "_stacklevel", "return_indices", "memory_format", "name", "seed", "non_blocking",
    "copy", "device", "layout", "requires_grad", "momentum", "dtype", "pin_memory", "sparse", "recompute_scale_factor",
})  # fmt: skip
_AXES = "dim"
#: How a place is called whose name is not known.
_UNNAMED = "argument "
#: What dropout keeps on one side and drops on the other.
_SHARE = "p"
#: A number that large is what a mask fills with, which may be any.
_FILL = 1e3
#: The relative difference of two numbers of which one was kept as float32.
_FLOAT32 = 2.0**-22

Plain = bool | int | float | str


class Stated(NamedTuple):
    """An argument as a call states it: its own name, and one value or several; None where it is no plain value.

    ``items``    what holds it in the dump; none where it is an attribute or left out
    ``default``  whether the call left it out
    """

    name: str
    values: tuple[Plain, ...] | None
    items: Sequence[Item] = ()
    default: bool = False


class SameArgument(NamedTuple):
    """One argument as the two calls state it, and whether that means different things."""

    target: Stated
    golden: Stated
    differs: bool


class OtherSetting(NamedTuple):
    """A setting that differs: what the target calls it, and both values."""

    name: str
    target: tuple[Plain, ...]
    golden: tuple[Plain, ...]


def other_settings(
    target: Entry, golden: Entry, frameworks: tuple[str, str], *, several: bool = False
) -> list[OtherSetting]:
    """Return the settings of two counterpart calls that differ in value, in the target's order.

    ``several``: as `same_arguments` takes it
    """
    same = _are_one_function(target, golden, frameworks)
    if same and target.attributes == golden.attributes and not any(map(_holds_plain, (target, golden))):
        return []  # as of most calls, of which no more need be read
    return [
        OtherSetting(mine.name, mine.values, other.values)
        for mine, other, differs in same_arguments(target, golden, frameworks, several=several)
        if differs and mine.values is not None and other.values is not None
    ]


def same_arguments(
    target: Entry, golden: Entry, frameworks: tuple[str, str], *, several: bool = False
) -> Iterator[SameArgument]:
    """Yield the arguments that both of two counterpart calls have, by whatever name, in the target's order.

    ``several``: several calls do what one does. Axes, sizes and operands of one of them may well be others; a float
    that is no operand, as an epsilon, means the same in whatever calls.
    """
    named_alike = _are_one_function(target, golden, frameworks)
    ours, theirs = stated(target, frameworks[0]), stated(golden, frameworks[1])
    shapes = [_first_shape(entry) for entry in (target, golden)]
    for name, mine in ours.items():
        other = theirs.get(name)
        if other is None or (name.startswith(_UNNAMED) and not named_alike):
            continue
        if name == _SHARE and mine.name != other.name:
            continue
        if several and (name in OPERANDS or not _are_floats(mine, other)):
            continue
        yield SameArgument(mine, other, name not in _WITHOUT_EFFECT and _say_different(name, mine, other, shapes))


def _say_different(name: str, mine: Stated, other: Stated, shapes: Sequence[tuple[int, ...] | None]) -> bool:
    if mine.values is None or other.values is None:
        return False
    axes = 0
    if name == _AXES:
        if shapes[0] is None or shapes[0] != shapes[1]:
            return False  # of another layout other axes are right
        axes = len(shapes[0])
    return _differ(mine.values, other.values, axes)


def _are_floats(mine: Stated, other: Stated) -> bool:
    return all(isinstance(each, float) for each in (*(mine.values or (None,)), *(other.values or (None,))))


def _are_one_function(target: Entry, golden: Entry, frameworks: tuple[str, str]) -> bool:
    """Whether a place without a name means the same in both: it does in one function alone."""
    return _function(target) == _function(golden) and apis_of(frameworks[0]) == apis_of(frameworks[1])


def names_in_order(name: EntryName, framework: str) -> list[str]:
    """Return what a function calls its arguments, in order; [] where its signature is not known."""
    return [each for each, _ in _parameters(apis_of(framework), name.prefix, name.name)]


def _holds_plain(entry: Entry) -> bool:
    """Whether any value of a call is plain; no item need be made for it."""
    items = entry.items
    if isinstance(items, ItemSlice):
        return items.hold_values
    return any(item.kind == "value" for item in items)


def stated(entry: Entry, framework: str) -> dict[str, Stated]:
    """Return the arguments of a call by their canonical names, defaults and attributes included."""
    parsed = entry.parsed
    if parsed is None or parsed.is_module:
        return {}
    parameters = _parameters(apis_of(framework), parsed.prefix, parsed.name)
    found: dict[str, Stated] = {}
    for keyword, place, items in _arguments(entry):
        name = place if keyword else _name(place, parameters)
        values = [item.maximum for item in items if item.kind == "value"]
        plain = tuple(value for value in values if isinstance(value, (bool, int, float, str)))
        found[_canonical(name)] = Stated(name, plain if len(plain) == len(items) else None, items)
    for name, value in (entry.attributes or {}).items():
        found.setdefault(_canonical(name), Stated(name, _attribute(value)))
    for name, default in parameters:
        if isinstance(default, (bool, int, float, str)):
            found.setdefault(_canonical(name), Stated(name, (default,), default=True))
    if (how := found.get("pad_mode")) is not None and how.values != ("pad",):
        for name in ("padding", "pad"):  # which then says nothing of how much is padded
            found.pop(name, None)
    return found


def _arguments(entry: Entry) -> Iterator[tuple[bool, str, list[Item]]]:
    """Of each argument whether it has a keyword, its place or name, and what it holds."""
    found: dict[tuple[bool, str], list[Item]] = {}
    for item in entry.in_state("input"):
        if item.path:
            found.setdefault((item.keyword, item.path[0]), []).append(item)
    for (keyword, place), items in found.items():
        yield keyword, place, items


def _name(place: str, parameters: Sequence[tuple[str, Any]]) -> str:
    """The name of a positional argument; its place where the signature is not known."""
    number = int(place) if place.isdecimal() else len(parameters)
    return parameters[number][0] if number < len(parameters) else f"{_UNNAMED}{place}"


def _function(entry: Entry) -> tuple[str, str] | None:
    return (entry.parsed.prefix, entry.parsed.name) if entry.parsed is not None else None


def _canonical(name: str) -> str:
    return CANONICAL.get(name.lower(), name.lower())


def _attribute(value: Any) -> tuple[Plain, ...] | None:
    leaves = value if isinstance(value, list) else [value]
    plain = [leaf.get("value") if isinstance(leaf, dict) else leaf for leaf in leaves]
    found = tuple(each for each in plain if isinstance(each, (bool, int, float, str)))
    return found if len(found) == len(leaves) and found else None


def _differ(mine: tuple[Plain, ...], other: tuple[Plain, ...], axes: int) -> bool:
    if not mine or not other:
        return False
    if len(set(mine)) == len(set(other)) == 1:  # one size that stands for several
        mine, other = mine[:1], other[:1]
    if len(mine) != len(other):
        return False
    if any(isinstance(a, str) != isinstance(b, str) for a, b in zip(mine, other, strict=True)):
        return False
    if axes and all(isinstance(each, int) for each in (*mine, *other)):
        return {int(each) % axes for each in mine} != {int(each) % axes for each in other}
    return any(_are_apart(a, b) for a, b in zip(mine, other, strict=True))


def _are_apart(mine: Plain, other: Plain) -> bool:
    if isinstance(mine, str) or isinstance(other, str):
        words = [str(each).casefold().strip("_- ") for each in (mine, other)]
        return words[0] != words[1] and not same_dtype(str(mine), str(other))
    if math.isnan(mine) or math.isnan(other):
        return False
    if min(abs(mine), abs(other)) >= _FILL and (mine < 0) == (other < 0):
        return False
    return not math.isclose(mine, other, rel_tol=_FLOAT32)


def _first_shape(entry: Entry) -> tuple[int, ...] | None:
    items = (item for item in entry.items if item.state == "input" and item.kind == "tensor")
    shape = next((item.shape for item in items), None)
    return shape if isinstance(shape, tuple) and shape else None


@lru_cache(maxsize=1024)
def _parameters(apis: str, prefix: str, name: str) -> tuple[tuple[str, Plain | None], ...]:
    """The names that a function takes in order, each with its plain default; () where they are not known."""
    if name.startswith("__"):
        return (("self", None), ("other", None))
    text = _table().get(apis, {}).get(f"{prefix}.{name}", "")
    parts = [part.partition("=") for part in text.split(", ") if part]
    return tuple((word, ast.literal_eval(default) if default else None) for word, _, default in parts)


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    file = resources.files(__package__ or "msprobe_ms.comparison.pairing").joinpath("signatures.yaml")
    read: Mapping[str, Mapping[str, str]] = yaml.load(file.read_text("utf-8"), Loader=FASTEST_LOADER)  # noqa: S506 - a safe one
    return read
