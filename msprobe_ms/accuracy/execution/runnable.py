"""What a process that holds a framework finds for a name: something that can be run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments, Value


class Runnable(Protocol):
    """An API, or what stands for it, that was found."""

    @property
    def how(self) -> str:
        """What it is, for the table: ``torch.sub 2.13.0``."""

    def run(self, arguments: Arguments, output_gradients: Sequence[TypedArray | None] | None) -> ApiOutcome: ...


#: Finds what runs ``(prefix, api)``, of a primitive with what it is made with; a text says why there is none.
Find = Callable[[str, str, Mapping[str, Value]], Runnable | str]
