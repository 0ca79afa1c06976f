"""``python -m torture.api_sweep.as_dump FOLDER [DTYPE]``: the examples of all MindSpore APIs as a dump of statistics,
their floats in float16 or bfloat16 where that is named.

``msprobe acc_check`` on it judges every API that has a reference, on values that are drawn anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from msprobe_ms.accuracy.calls import map_arguments
from msprobe_ms.arrays.statistics import statistics
from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments, DtypeArgument
from torture.api_sweep.__main__ import names
from torture.api_sweep.check import runner_of, tables
from torture.api_sweep.examples import examples_of

_TEXTS = {"bool": "Bool", "bfloat16": "BFloat16"}


def leaf(value: Any) -> Any:
    """Return a value as dump.json has it."""
    if isinstance(value, TypedArray):
        return tensor(value)
    if isinstance(value, DtypeArgument):
        return {"type": "mindspore.dtype", "value": value.name}
    if isinstance(value, slice):
        return {"type": "slice", "value": [value.start, value.stop, value.step]}
    if isinstance(value, (tuple, list)):
        return [leaf(each) for each in value]
    if isinstance(value, dict):
        return {key: leaf(each) for key, each in value.items()}
    if value is None or value is ...:
        return None if value is None else {"type": "ellipsis", "value": "..."}
    if isinstance(value, (np.generic, bool, int, float, str)):
        plain = value.item() if isinstance(value, np.generic) else value
        return {"type": type(plain).__name__, "value": plain}
    return {"type": type(value).__name__, "value": None}


def tensor(array: TypedArray) -> dict[str, Any]:
    figures = statistics(array.values)
    return {
        "type": "mindspore.Tensor", "dtype": _TEXTS.get(array.dtype, array.dtype.capitalize()),
        "shape": list(array.values.shape), "Max": figures.maximum, "Min": figures.minimum, "Mean": figures.mean,
        "Norm": figures.norm,
    }  # fmt: skip


def narrowed(leaf: Any, dtype: str) -> Any:
    """Return a leaf of arguments with its float32 in ``dtype``."""
    if isinstance(leaf, TypedArray) and leaf.dtype == "float32":
        return rounded(leaf.values, dtype)
    return DtypeArgument(dtype) if leaf == DtypeArgument("float32") else leaf


def entries(dtype: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the entries of each example that MindSpore runs in ``dtype``."""
    mindspore = runner_of("mindspore")
    for prefix, api in names("mindspore"):
        function = mindspore.find(prefix, api)
        if function is None:
            continue
        for number, example in enumerate(examples_of(tables(), "mindspore", prefix, api)):
            given = example.arguments(f"{prefix}.{api}.{number}")
            arguments = given if dtype == "float32" else map_arguments(given, lambda leaf: narrowed(leaf, dtype))
            try:
                outcome = mindspore.run(function, arguments)
            except Exception:
                continue
            yield from _call(f"{prefix}.{api}.{number}", arguments, outcome)


def _call(name: str, arguments: Arguments, outcome: ApiOutcome) -> Iterator[tuple[str, dict[str, Any]]]:
    yield f"{name}.forward", {
        "input_args": leaf(arguments.positional), "input_kwargs": leaf(dict(arguments.keywords)),
        "output": leaf(outcome.outputs),
    }  # fmt: skip


def main(folder: Path, dtype: str = "float32") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = dict(entries(dtype))
    dump = {"task": "statistics", "level": "L1", "framework": "mindspore", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(dump))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
