"""Names of the files that operators in a compiled graph write, and what the compiler knew of what they hold.

TensorDump appends to a name that was fixed when the graph was compiled the dtype and a number that counts its files
in the process: ``3.7.value.12_float32_41.npy``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from msprobe_ms.frameworks.graph_observer import Described, Layout, Place
from msprobe_ms.frameworks.graph_observer import Path as Route


class Kind(str, Enum):
    """What a file tells: marks of where a call begins and ends, whose content means nothing, and tensors."""

    BEGIN = "begin"
    END = "end"
    VALUE = "value"
    GRADIENT = "gradient"
    PARAMETER_GRADIENT = "parameter_gradient"


class FileName(NamedTuple):
    """A name as it is compiled in.

    ``call`` numbers what calls of a module are given. ``number`` says which place a tensor stands in, which result
    ends a call, which parameter a gradient is of, and nothing of a beginning.
    """

    module: int
    call: int
    kind: Kind
    number: int

    @property
    def text(self) -> str:
        return f"{self.module}.{self.call}.{self.kind.value}.{self.number}"


class Written(NamedTuple):
    """A file: its name and the number that says when it was written."""

    name: FileName
    identity: int
    path: Path


#: With ``_in`` in front of the dtype where TensorDump was told to write what an operator reads.
_WRITTEN = re.compile(
    rf"(\d+)\.(\d+)\.({'|'.join(kind.value for kind in Kind)})\.(\d+)(?:_in)?_[A-Za-z0-9]+_(\d+)\.npy", re.ASCII
)


def read_name(path: Path) -> Written | None:
    """What a file's name says; None where it is no name of ours."""
    found = _WRITTEN.fullmatch(path.name)
    if found is None:
        return None
    module, call, kind, number, identity = found.groups()
    return Written(FileName(int(module), int(call), Kind(kind), int(number)), int(identity), path)


class Given(NamedTuple):
    """What calls of a module are given, as the compiler knows it."""

    module: int
    args: Layout
    kwargs: Layout


class ParameterOf(NamedTuple):
    module: int
    name: str
    dtype: str


_T = TypeVar("_T")


class Numbers(Generic[_T]):
    """Things by number. Compilers ask again and again: the same thing has the same number."""

    def __init__(self) -> None:
        self._things: list[_T] = []
        self._numbers: dict[str, int] = {}

    def of(self, thing: _T) -> int:
        number = self._numbers.setdefault(repr(thing), len(self._things))
        if number == len(self._things):
            self._things.append(thing)
        return number

    def __getitem__(self, number: int) -> _T:
        return self._things[number]

    def __len__(self) -> int:
        return len(self._things)


class Compiled:
    """What the names in compiled graphs stand for."""

    def __init__(self) -> None:
        self.given = Numbers[Given]()
        self.outputs = Numbers[Layout]()
        self.places = Numbers[Place]()
        self.parameters = Numbers[ParameterOf]()
        #: By call: the result that graphs compiled last end it with.
        self.latest_output: dict[int, int] = {}
        #: By module: parameters whose values are told.
        self.told_parameters: dict[int, tuple[str, ...]] = {}

    def begin(self, call: int) -> str:
        return self._text(call, Kind.BEGIN, 0)

    def end(self, call: int, output: Layout) -> str:
        number = self.latest_output[call] = self.outputs.of(output)
        return self._text(call, Kind.END, number)

    def tensor(self, call: int, place: Place) -> str:
        return self._text(call, Kind.GRADIENT if place.is_gradient else Kind.VALUE, self.places.of(place))

    def parameter_gradient(self, parameter: ParameterOf) -> str:
        return FileName(parameter.module, 0, Kind.PARAMETER_GRADIENT, self.parameters.of(parameter)).text

    def _text(self, call: int, kind: Kind, number: int) -> str:
        return FileName(self.given[call].module, call, kind, number).text

    def expected(self, call: int, output: int) -> Iterator[tuple[str, Route]]:
        """Field and path of every tensor that a call and this result of it are told by; parameters as well."""
        given = self.given[call]
        yield from _tensors("input", given.args, ())
        yield from _tensors("kwargs", given.kwargs, ())
        yield from _tensors("output", self.outputs[output], ())
        for name in self.told_parameters.get(given.module, ()):
            yield "parameters", (name,)


def _tensors(field: str, layout: Layout, path: Route) -> Iterator[tuple[str, Route]]:
    if isinstance(layout, Described):
        # Those without elements are not written: their shape says all.
        if layout.shape is None or 0 not in layout.shape:
            yield field, path
    elif isinstance(layout, list):
        for index, each in enumerate(layout):
            yield from _tensors(field, each, (*path, str(index)))
    elif isinstance(layout, dict):
        for key, each in layout.items():
            yield from _tensors(field, each, (*path, key))
