"""What is asked of a process that holds a framework, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.dialects import PYTORCH
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments, Value

#: Roles of processes: the framework's own APIs; the references that stand for them.
DEVICE, REFERENCE = "device", "reference"


class Role(NamedTuple):
    """What a process is for. ``framework`` as dump.json names it; ``references``: a file of the user's."""

    name: str
    framework: str
    references: str | None = None

    @property
    def imports(self) -> str:
        """The framework that runs in the process, as dump.json names it."""
        return self.framework if self.name == DEVICE else PYTORCH.name


@dataclass(frozen=True, slots=True)
class Request:
    """One API to run.

    ``prefix``, ``api``   as entries name it: ``Mint``, ``sub``
    ``arguments``         one set of arguments for each time it is to run, with the same reference each time
    ``output_gradients``  for each set, one for each result; None: no gradients are computed
    ``seed``              of random generators, before each run
    ``attributes``        what a primitive is made with
    """

    prefix: str
    api: str
    arguments: tuple[Arguments, ...]
    output_gradients: tuple[Sequence[TypedArray | None] | None, ...]
    seed: int
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Describe:
    """One API whose arguments are to be told; fields as in ``Request``."""

    prefix: str
    api: str
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Described:
    """What an API takes, in order: name, whether it has a default, and the default, where that is a plain value."""

    parameters: tuple[tuple[str, bool, Value], ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """The call was made.

    ``outcomes``  one for each set of arguments, of at least the first; None: what came after it raised
    ``how``       what made it: ``torch.sub 2.13.0``, ``numpy: rms_norm``
    """

    outcomes: tuple[ApiOutcome | None, ...]
    how: str


@dataclass(frozen=True, slots=True)
class Refused:
    """It cannot be made here, and cannot elsewhere: there is no such API, kernel or reference."""

    reason: str


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raised, or its process ended in it."""

    reason: str


Answer: TypeAlias = Ran | Refused | Raised
