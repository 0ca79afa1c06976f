"""Dumps of nets made up module by module, with shapes and figures; the same net can be told under other names."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import FORWARD, module_entry, parse_entry
from msprobe_ms.dump.reading.items import TensorSource

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Module:
    """``key`` is what the module is, whatever it is called: figures come from it, twins share it.

    ``parts``  keys whose weights and outputs, one behind the other, are this one's (a fused projection)
    ``takes``  the key of what comes in, where it is no own tensor
    """

    name: str
    class_name: str
    children: tuple[Module, ...] = ()
    input: Shape = (2, 4)
    output: Shape = (2, 4)
    weights: tuple[Shape, ...] = ()
    key: str = ""
    takes: str = ""
    calls: int = 1


@dataclass(frozen=True)
class Told:
    """How a dump tells a net: without figures, without parameters, with another error from some module on."""

    figures: bool = True
    parameters: bool = True
    faulty_from: str = ""
    noise: float = 0.0
    wrong: set[str] = field(default_factory=set)


def keyed(module: Module, above: str = "") -> Module:
    """The net with every module's path as its key."""
    key = f"{above}.{module.name}" if above else module.name or "net"
    below = "" if not module.name else key
    return replace(module, key=key, children=tuple(keyed(child, below) for child in module.children))


def changed(module: Module, change: Callable[[Module], Module]) -> Module:
    """Every module replaced, the innermost first."""
    return change(replace(module, children=tuple(changed(child, change) for child in module.children)))


def paths(module: Module, above: str = "") -> Iterator[tuple[str, Module]]:
    """Path and module, parents after their children."""
    path = f"{above}.{module.name}" if above else module.name
    for child in module.children:
        yield from paths(child, path)
    yield path, module


def dump_of(framework: str, modules: Sequence[Module], told: Told = Told()) -> Dump:
    """Forward entries in the order the calls end. ``modules`` are the children of the network."""
    prefix = "Cell" if framework == "mindspore" else "Module"
    entries = {}
    faulty = False
    for path, module in (both for top in modules for both in paths(top)):
        faulty = faulty or module.key == told.faulty_from != ""
        if not module.class_name:  # a list: it has no calls
            continue
        for call in range(module.calls):
            name = module_entry(prefix, path, module.class_name, FORWARD, call)
            entries[name] = Entry(name, parse_entry(name), list(_items(name, module, call, told, faulty)))
    where = Path("dump.json")
    return Dump(where, "statistics", "L0", framework, "statistics", "latest", entries, TensorSource(where.parent))


def _items(name: str, module: Module, call: int, told: Told, faulty: bool) -> Iterator[Item]:
    for state, shape, key in (
        ("input", module.input, module.takes or f"{module.key} takes"),
        ("output", module.output, f"{module.key} gives"),
    ):
        yield _item(name, state, ("0",), shape, f"{key} {call}{' wrongly' if faulty else ''}", told)
    if told.parameters:
        for number, shape in enumerate(module.weights):
            wrong = " wrong" if module.key in told.wrong else ""
            yield _item(name, "parameters", (("weight", "bias")[number],), shape, f"{module.key} {number}{wrong}", told)


def _item(name: str, state: str, path: tuple[str, ...], shape: Shape, key: str, told: Told) -> Item:
    if not told.figures:
        return Item(name, state, path, False, "tensor", "Tensor", "float32", shape)
    chance, noise = random.Random(key), random.Random(f"{name} {state}")
    maximum, minimum, mean, norm = (
        (chance.uniform(*span)) * (1 + told.noise * noise.uniform(-1, 1))
        for span in ((1, 5), (-5, -1), (-1, 1), (9, 99))
    )
    return Item(name, state, path, False, "tensor", "Tensor", "float32", shape, maximum, minimum, mean, norm)
