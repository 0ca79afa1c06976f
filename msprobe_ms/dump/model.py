"""A dump as values: what the readers return and what compare works on. No framework, no file handle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.dump.names import EntryName, parse_entry

#: What an item is to its call.
STATES = ("input", "output", "parameters", "parameters_grad", "debug")


class Item(NamedTuple):
    """One value of an entry: a tensor, a plain value, or nothing (``null``).

    ``entry``     the entry's name, ``Cell.fc1.Dense.forward.0``
    ``state``     one of ``STATES``; keyword arguments are inputs
    ``path``      the place below the state: ``("0",)``, ``("1", "2")``, ``("weight",)``
    ``keyword``   True for a keyword argument
    ``kind``      ``tensor`` (has dtype, shape, statistics), ``value`` (a builtin: ``maximum`` … hold it) or ``null``
    ``type``      the leaf's ``type`` text, ``mindspore.Tensor``, ``int``…; "" for null
    ``dtype``     as written: ``Float32``, ``torch.float32``, ``<class 'int'>``; None for null
    ``shape``     the tensor's shape; for other kinds a text or None
    ``sketch``    the text of a tensor's sketch, which ``arrays.sketch.decode`` reads; None where it has none
    """

    entry: str
    state: str
    path: tuple[str, ...]
    keyword: bool = False
    kind: str = "null"
    type: str = ""
    dtype: str | None = None
    shape: tuple[int, ...] | str | None = None
    maximum: Statistic = None
    minimum: Statistic = None
    mean: Statistic = None
    norm: Statistic = None
    requires_grad: bool | None = None
    md5: str | None = None
    data_name: str | None = None
    sketch: str | None = None

    @property
    def name(self) -> str:
        """Full item name: ``{entry}.{state}.{path}``; parameter gradients leave the state out (it is in the entry)."""
        return ".".join((self.entry, *suffix_of(self.state, self.path)))

    @property
    def suffix(self) -> str:
        """The name below the entry: ``input.0``, ``parameters.weight``; what pairs items of paired entries."""
        return ".".join(suffix_of(self.state, self.path))

    def name_in(self, entry: str) -> str:
        """The name below an entry; the full one of an item of another entry, as of a call of the same group."""
        return self.suffix if self.entry == entry else self.name


def suffix_of(state: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return what follows the entry in an item's name."""
    return path if state in ("parameters_grad", "debug") else (state, *path)


@dataclass(slots=True)
class Entry:
    """One recorded call with its items in the order input, output, parameters (or the parameter gradients).

    ``items`` of a dump that was read are made when they are asked for: ask once where they are used often.
    ``parsed`` is None when the name follows no known grammar (it is still compared by name).
    ``parent`` is the enclosing module's entry in the same direction, ``stack`` the call site, innermost first.
    ``scope`` is the path of a compiled kernel, from the outermost Cell in; "" for all others.
    ``recomputed`` calls only repeated in backward what an earlier one had computed.
    ``attributes`` are what a primitive was made with, as they are written; None of all else.
    """

    name: str
    parsed: EntryName | None
    items: Sequence[Item]
    parent: str | None = None
    stack: tuple[str, ...] = ()
    recomputed: bool = False
    scope: str = ""
    attributes: Mapping[str, Any] | None = None

    @property
    def is_module(self) -> bool:
        """Whether it is a module's and not a function's."""
        return self.parsed is not None and self.parsed.is_module

    def in_state(self, state: str) -> list[Item]:
        return [item for item in self.items if item.state == state]


def ancestors(entries: Mapping[str, Entry], name: str) -> Iterator[str]:
    """Yield the names of the calls around an entry, from the inside out.

    Of calls that enclose each other, as a damaged construct.json says, each comes once.
    """
    seen = {name}
    entry = entries.get(name)
    while entry is not None and entry.parent is not None and entry.parent not in seen:
        seen.add(entry.parent)
        yield entry.parent
        entry = entries.get(entry.parent)


def knows_root(entries: Iterable[Entry]) -> bool:
    """Return whether one of the entries is a call of the model itself, or was made in one."""
    around = set[str]()
    for entry in entries:
        if entry.parsed is not None and entry.parsed.is_root:
            return True
        if entry.parent is not None:
            around.add(entry.parent)
    return any((parsed := parse_entry(name)) is not None and parsed.is_root for name in around)


class Tensors(Protocol):
    """The tensors of one dump; nothing is kept between calls."""

    def load(self, item: Item) -> np.ndarray:
        """Load the tensor of ``item``, with its shape. Raises MissingTensorError and DumpFormatError."""

    def where(self, item: Item) -> str:
        """Name the file of ``item`` for a person to look at; "" where the dump has none."""


@dataclass(slots=True)
class Dump:
    """One process's dump of one step.

    ``framework``  ``mindspore``, ``pytorch``, ``mindtorch``
    ``mode``       what the leaves allow: ``tensor`` (files), ``md5`` (checksums) or ``statistics``
    ``profile``    the format's age, ``v110`` or ``latest``
    ``entries``    in execution (completion) order
    ``damage``     why it is not whole, "" where it is: dump.json is damaged from some place on and only the entries
                   before it could be read, or its process was killed before it was done
    """

    path: Path
    task: str
    level: str
    framework: str
    mode: str
    profile: str
    entries: dict[str, Entry]
    tensors: Tensors
    extra: Mapping[str, Any] = field(default_factory=dict)
    damage: str = ""
