"""Find the Cell that a kernel belongs to by its scope path.

``Default/network-Net/fc1-Dense/MatMul-op0`` is the operator ``MatMul`` in the Cell ``network.fc1`` of class ``Dense``;
``Gradients/Default/network-Net/fc1-Dense/Grad_MatMul/MatMul-op0`` a gradient of it. File names have ``_`` for ``/``,
and attributes hold ``_`` too: the names and classes of the model decide what was meant, and where nothing is known of
it, that classes are written in CamelCase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import NamedTuple

from msprobe_ms.dump.dialects import MINDSPORE
from msprobe_ms.dump.names import BACKWARD, FORWARD, module_entry

#: Cells of a model by dotted name → class name; the model itself under "".
Cells = Mapping[str, str]

#: Readings of one file name that are tried; each attribute or class that looks like another of the model doubles them.
_MOST_READINGS = 256

_OPERATOR = re.compile(r"-op\d+$")
#: What a path begins with before the first Cell, in a file name.
_HEAD = re.compile(r"(?:(?i:gradients?|recompute|Default|Expand)_)*")


class Component(NamedTuple):
    """One Cell of a path: ``fc1-Dense``."""

    attribute: str
    class_name: str


@dataclass(frozen=True, slots=True)
class Scope:
    """A path taken apart: the Cells from the outside in, without the operator."""

    components: tuple[Component, ...]
    backward: bool = False
    recomputed: bool = False

    @property
    def direction(self) -> str:
        return BACKWARD if self.backward else FORWARD


def parse_scope(text: str, cells: Cells | None = None) -> Scope:
    """Parse a scope with ``/``, or as file names have it, with ``_``. Never fails: what is no path has no components.

    >>> parse_scope("Default/network-Net/fc1-Dense/MatMul-op0").components[-1]
    Component(attribute='fc1', class_name='Dense')
    >>> parse_scope("Gradients_Default_my_net-Net_my_fc-Dense_Grad_MatMul_MatMul-op0").components[-1]
    Component(attribute='my_fc', class_name='Dense')
    """
    if "/" in text:
        *parts, _ = text.split("/")
        head = [part for part in parts if "-" not in part]
        found = (part.rpartition("-") for part in parts if "-" in part)
        components = tuple(Component(attribute, name) for attribute, _, name in found if attribute and name)
    else:
        begins = _HEAD.match(text)
        head = [begins[0]] if begins else []
        components = _from_file_name(_OPERATOR.sub("", text[begins.end() if begins else 0 :]), cells or {})
    marks = "/".join(head[:3]).lower()
    return Scope(components, marks.startswith("gradient"), "recompute" in marks)


def cell_of(scope: Scope, cells: Cells | None = None) -> tuple[str, str] | None:
    """Return dotted name and class of the innermost Cell; None outside of all.

    With ``cells`` the name is relative to their model, wherever in the graph that stands; a Cell that is none of its
    own (a loss, an optimizer) keeps the whole path.

    >>> cell_of(parse_scope("Default/network-WithLossCell/_backbone-Net/fc1-Dense/MatMul-op0"))
    ('network._backbone.fc1', 'Dense')
    >>> path = parse_scope("Default/network-WithLossCell/_backbone-Net/fc1-Dense/MatMul-op0")
    >>> cell_of(path, {"": "Net", "fc1": "Dense"})
    ('fc1', 'Dense')
    """
    components = scope.components
    if not components:
        return None
    names, class_name = [each.attribute for each in components], components[-1].class_name
    if cells:
        start = _model_start(components, cells)
        if start is not None:
            return ".".join(names[start:]), class_name
    return ".".join(names), class_name


def cell_entry(scope: Scope, cells: Cells | None = None) -> str | None:
    """Return the Cell's entry as ``construct.json`` names parents. A graph does not tell calls apart: it is call 0.

    >>> cell_entry(parse_scope("Gradients/Default/network-Net/fc1-Dense/Grad_MatMul/MatMul-op0"))
    'Cell.network.fc1.Dense.backward.0'
    """
    found = cell_of(scope, cells)
    return None if found is None else module_entry(MINDSPORE.module_prefix, *found, scope.direction, 0)


def _model_start(components: tuple[Component, ...], cells: Cells) -> int | None:
    """The first component inside the model; the number of components where the innermost is the model itself."""
    names, class_name = [each.attribute for each in components], components[-1].class_name
    starts = [start for start in range(len(names) + 1) if cells.get(".".join(names[start:])) == class_name]
    root = cells.get("")
    below_root = [start for start in starts if start and components[start - 1].class_name == root]
    # At the root of the graph, the model's own name is not part of the path.
    return next(iter(below_root or [start for start in starts if start < len(names)]), None)


def _from_file_name(text: str, cells: Cells) -> tuple[Component, ...]:
    first, *rest = text.split("-")
    if not rest:
        return ()
    attributes = {part for name in cells for part in name.split(".")}
    classes = set(cells.values())
    *middle, last = rest
    options = [_readings(segment, classes, attributes) for segment in middle]
    options.append(_readings(last, classes, None))
    if not all(options):
        return ()
    readings = [_components(first, reading) for reading in islice(product(*options), _MOST_READINGS)]
    return next((each for each in readings if cells and _model_start(each, cells) is not None), readings[0])


def _components(first: str, reading: tuple[tuple[str, str], ...]) -> tuple[Component, ...]:
    attributes = [first, *(attribute for _, attribute in reading[:-1])]
    return tuple(
        Component(attribute, name) for attribute, (name, _) in zip(attributes, reading, strict=True) if attribute
    )


def _readings(segment: str, classes: set[str], attributes: set[str] | None) -> list[tuple[str, str]]:
    """``Class_attribute`` → where it may part, the likeliest first. ``attributes`` None: an operator follows."""
    places = [place for place, letter in enumerate(segment) if letter == "_" and 0 < place < len(segment) - 1]
    cuts = [(segment[:place], segment[place + 1 :]) for place in places if segment[:place].strip("_")]
    # Stable: what is known equally well stays in order, shortest class first, as CamelCase has no underscore.
    return sorted(cuts, key=lambda cut: (cut[0] not in classes, attributes is not None and cut[1] not in attributes))
