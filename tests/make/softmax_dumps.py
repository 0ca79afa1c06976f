"""Dumps of one softmax, whose axis frameworks call by other names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

NAME = "Functional.softmax.0.forward"


def softmax(folder: Path, framework: str, keywords: dict[str, object], *positional: object) -> Path:
    """A dump of one softmax of equal inputs, along the axis that its arguments say; results differ between folders."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    given = [_tensor(x, framework), *map(_plain, positional)]
    call = {
        "input_args": given,
        "input_kwargs": {key: _plain(each) for key, each in keywords.items()},
        "output": [_tensor(x * len(folder.name), framework)],
    }
    folder.mkdir()
    head = {"task": "statistics", "level": "mix", "framework": framework, "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": {NAME: call}}))
    return folder


def _plain(number: object) -> dict[str, object]:
    return {"type": type(number).__name__, "value": number}


def _tensor(values: np.ndarray, framework: str) -> dict[str, Any]:
    return {
        "type": f"{framework}.Tensor", "dtype": "Float32" if framework == "mindspore" else "torch.float32",
        "shape": list(values.shape), "Max": float(values.max()), "Min": float(values.min()),
        "Mean": float(values.mean()), "Norm": float(np.linalg.norm(values)), "requires_grad": False,
    }  # fmt: skip
