"""One call to prove: its operation, and the values that it took in and gave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msprobe_ms.accuracy.proof.operation import Operation
from msprobe_ms.frameworks.api_calls import Arguments, Value


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one side, with values.

    ``entry``             the forward entry it was recorded as
    ``title``             what to call it in a sentence: ``layer_norm``, ``LayerNorm``
    ``framework``         of the dump; that of the operation may be another, where a formula stands for a module
    ``outputs``           as recorded; None where they were not, or the values are drawn
    ``output_gradients``  gradients that arrive; None: no backward
    ``input_gradients``   as recorded, one for each floating-point tensor among the arguments; None entries are unknown
    ``is_recorded``       whether the values are those that were recorded, not drawn
    ``items``             name of an argument → the item of the entry that it was
    ``is_module``         whether a module was recorded; then what it was made with was found by trying
    """

    entry: str
    title: str
    framework: str
    dump: Path
    operation: Operation
    arguments: Arguments
    outputs: Sequence[Value] | None = None
    output_gradients: Sequence[Value] | None = None
    input_gradients: Sequence[Value] | None = None
    is_recorded: bool = True
    items: Mapping[str, str] = field(default_factory=dict)
    is_module: bool = False
