"""What was recorded of a call, as values: arguments, results and gradients from the dump's tensor files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msprobe_ms.accuracy.calls import RecordedTensor, argument_leaves
from msprobe_ms.accuracy.data import Source
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.model import Item, Tensors
from msprobe_ms.dump.reading.items import TensorSource
from msprobe_ms.dump.reading.locate import folder_of, parts_of
from msprobe_ms.frameworks.api_calls import Arguments, Value


def tensors_of(dump: Path, folder: str | None) -> Tensors:
    """Return what loads the tensors of the APIs' calls of a dump; ``folder`` is its ``dump_data_dir``.

    Of a divided step that is the half of what ran outside of graphs.
    """
    return TensorSource(folder_of(parts_of(dump)[0]), folder)


def recorded_source(tensors: Tensors) -> Source:
    """Return what loads the tensors of calls of a dump.

    What is returned raises MissingTensorError and DumpFormatError, as `TensorSource.load` does.
    """

    def load(tensor: RecordedTensor) -> TypedArray:
        item = Item(
            tensor.entry or tensor.place, "input", (), kind="tensor", dtype=tensor.dtype, shape=tensor.shape,
            data_name=tensor.data_name,
        )  # fmt: skip
        return TypedArray(tensor.dtype, tensors.load(item))

    return load


def aligned_gradients(arguments: Arguments, gradients: Sequence[Value]) -> list[Value] | None:
    """Pick of recorded gradients those of floating-point tensors, one each; None where they cannot be told apart.

    Tools record one for each tensor among the arguments, for each argument, or for those that are floats.
    """
    leaves = argument_leaves(arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, RecordedTensor)]
    floats = [leaf for leaf in tensors if _is_float(leaf)]
    for those in (tensors, leaves, floats):
        if len(those) == len(gradients):
            chosen = [
                gradient
                for leaf, gradient in zip(those, gradients, strict=True)
                if isinstance(leaf, RecordedTensor) and _is_float(leaf)
            ]
            if _fit(floats, chosen):
                return chosen
    return None


def _fit(floats: Sequence[RecordedTensor], gradients: Sequence[Any]) -> bool:
    return len(floats) == len(gradients) and all(
        not isinstance(gradient, RecordedTensor) or gradient.shape == tensor.shape
        for tensor, gradient in zip(floats, gradients, strict=True)
    )


def _is_float(tensor: RecordedTensor) -> bool:
    return parse_dtype(tensor.dtype).kind == "float"
