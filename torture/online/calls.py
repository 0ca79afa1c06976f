"""The calls that ranks send, right and wrong ones, made without a framework, so that many ranks fit on a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

#: Name, and what a framework would have computed.
_APIS = {
    "relu": lambda a, b: np.maximum(a, 0),
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "abs": lambda a, b: np.abs(a),
    "matmul": lambda a, b: (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32),
}
#: Different calls; every so many of them is wrong.
VARIANTS, _WRONG = 40, 7
APIS = tuple(_APIS)
PREFIX = {"relu": "Functional"}


def write_dump(folder: Path, variants: list[int]) -> list[str]:
    """Write a dump with these calls; return their names, by which the k-th call of an API is known."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    counts: dict[str, int] = {}
    data: dict[str, Any] = {}
    names = []
    for variant in variants:
        api = APIS[variant % len(APIS)]
        name = f"{PREFIX.get(api, 'Torch')}.{api}.{counts.setdefault(api, 0)}"
        counts[api] += 1
        names.append(name)
        data[f"{name}.forward"] = _entry(folder / "dump_tensor_data", f"{name}.forward", api, variant)
    content = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    part = folder / "dump.json.part"
    part.write_text(json.dumps(content))
    part.rename(folder / "dump.json")
    return names


def _entry(folder: Path, entry: str, api: str, variant: int) -> dict[str, Any]:
    random = np.random.default_rng(variant)
    first, second = (random.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    result = _APIS[api](first, second)
    if variant % _WRONG == 0:
        result = result * np.float32(1.01)
    arguments = [first] if api in ("relu", "abs") else [first, second]
    return {
        "input_args": [_leaf(folder, f"{entry}.input.{place}", each) for place, each in enumerate(arguments)],
        "input_kwargs": {},
        "output": [_leaf(folder, f"{entry}.output.0", result)],
    }


def _leaf(folder: Path, name: str, array: np.ndarray) -> dict[str, Any]:
    np.save(folder / f"{name}.npy", array)
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(array.shape), "data_name": f"{name}.npy"}
