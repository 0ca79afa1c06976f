"""Dumps of a small parallel net on many ranks and steps, computed with numpy and written as a run would write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def write_run(root: Path, *, steps: int = 1, ranks: int = 4, faulty: int = -1, from_step: int = 0) -> Path:
    """``{root}/step{s}/rank{r}/dump.json``; from ``from_step`` on the layer of rank ``faulty`` is wrong, ever more."""
    for step in range(steps):
        write_step(root / f"step{step}", ranks, {faulty: 0.01 * (1 + step - from_step)} if step >= from_step else {})
    return root


def write_step(folder: Path, ranks: int, faults: dict[int, float], shared_fault: float = 0.0) -> None:
    """One step: each rank computes, all sum. ``faults``: a rank → how wrong its layer is; ``shared_fault``: the sum."""
    inputs = np.random.default_rng(1).normal(size=(ranks, 8)).astype(np.float32)
    group = {"type": "mindspore.ProcessGroup", "group_ranks": list(range(ranks)), "group_id": "77849d8c"}
    layers = [x * np.float32(2 * (1 + faults.get(rank, 0.0))) + np.float32(0.5) for rank, x in enumerate(inputs)]
    summed = np.sum(layers, axis=0, dtype=np.float32) * np.float32(1 + shared_fault)
    total = np.sum(inputs, axis=0, dtype=np.float32)
    for rank in range(ranks):
        data = {
            "MintDistributed.all_reduce.0.forward": call(inputs[rank], total, group=group),
            "Cell.fc.Dense.forward.0": call(inputs[rank], layers[rank]),
            "MintDistributed.all_reduce.1.forward": call(layers[rank], summed, group=group),
            "Cell.head.Dense.forward.0": call(summed, summed * np.float32(3)),
        }
        write_dump(folder / f"rank{rank}", data)


def write_dump(folder: Path, data: dict[str, Any], task: str = "statistics", level: str = "mix") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if task == "tensor":
        for name, body in data.items():
            for place, leaves in (("input", body["input_args"]), ("output", body["output"])):
                for number, each in enumerate(leaves):
                    each["data_name"] = f"{name}.{place}.{number}.npy"
    envelope = {"task": task, "level": level, "framework": "mindspore", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(envelope))


def call(given: np.ndarray, result: np.ndarray, **keywords: Any) -> dict[str, Any]:
    return {"input_args": [leaf(given)], "input_kwargs": keywords, "output": [leaf(result)]}


def leaf(array: np.ndarray) -> dict[str, Any]:
    wide = array.astype(np.float64)
    figures = {"Max": wide.max(), "Min": wide.min(), "Mean": wide.mean(), "Norm": np.sqrt((wide**2).sum())}
    shape = list(array.shape)
    return {"type": "mindspore.Tensor", "dtype": "Float32", "shape": shape, **{k: float(v) for k, v in figures.items()}}
