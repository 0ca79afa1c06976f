"""Kernel dumps as MindSpore leaves them: a compiled training in a process of its own, and folders laid out by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from forked import run_forked

#: Graphs are compiled from source: the training is a file.
SCRIPT = Path(__file__).with_name("kernel_training.py")

_INSIDE = (("my_fc", "Dense"), ("norm", "LayerNorm"), ("act", "Tanh"))
#: The Cells of the script's net.
CELLS = {
    "": "Net", "fc1": "Dense", "blocks": "SequentialCell", "head": "Dense",
    **{f"blocks.{i}": "Block" for i in (0, 1)},
    **{f"blocks.{i}.{name}": cls for i in (0, 1) for name, cls in _INSIDE},
}  # fmt: skip


def compiled_dump(
    path: Path, *, epsilon: float = 1e-5, scale: float = 0.5, steps: int = 2, kind: str = "graph"
) -> Path:
    """Train in a compiled graph with the framework's kernel dump on; ``path`` gets ``rank_0``.

    ``kind``: ``graph``, ``forward`` (and run the net once more, alone), ``jit`` (a jitted function around
    value_and_grad), ``inner`` (a jitted Cell in a dynamic network), ``bfloat16``.
    """
    path.mkdir(parents=True)
    settings = {
        "common_dump_settings": {
            "dump_mode": 0, "path": str(path), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
            "input_output": 0, "kernels": [], "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    configuration = path.with_suffix(".json")
    configuration.write_text(json.dumps(settings))
    variables = {**os.environ, "MINDSPORE_DUMP_CONFIG": str(configuration)}
    ended = run_forked(SCRIPT, *map(str, (epsilon, scale, steps, kind)), framework="mindspore", env=variables, cwd=path)
    assert ended.returncode == 0, ended.stderr
    return path


def raw_files(root: Path, pattern: str = "rank_*/Net/*/*/*") -> list[Path]:
    return sorted(path for path in root.glob(pattern) if path.is_file())


def lay_out(folder: Path, tensors: Mapping[str, np.ndarray], start: int = 1000) -> Path:
    """Write ``{"MatMul.Default_fc-Dense_MatMul-op0.input.0": array}`` as the framework does, a moment later each."""
    folder.mkdir(parents=True, exist_ok=True)
    for moment, (name, array) in enumerate(tensors.items(), start):
        kernel, io, slot = name.rsplit(".", 2)
        dtype = {"float32": "Float32", "int32": "Int32", "bool": "Bool", "float16": "Float16"}[array.dtype.name]
        np.save(folder / f"{kernel}.0.0.{moment}.{io}.{slot}.DefaultFormat.{dtype}.npy", array)
    return folder
