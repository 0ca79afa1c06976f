"""Write dumps of calls that differ in one setting each: ``python setting_dumps.py FRAMEWORK FOLDER``.

Of each framework there are the dumps ``{framework}_{variant}_{task}`` of one net, whose modules make one call each, on
inputs of their own (MindSpore has no RmsNorm on CPU). Golden dumps are ``pytorch_base_{task}``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Setting → its usual value, another near to it and one far from it.
SETTINGS: dict[str, dict[str, Any]] = {
    "layer_eps": {"base": 1e-5, "near": 1e-6, "far": 1e-2},
    "rms_eps": {"base": 1e-6, "near": 1e-7, "far": 1e-2},
    "batch_eps": {"base": 1e-5, "near": 1.1e-5, "far": 1e-2},
    "adam_eps": {"base": 1e-8, "near": 2e-8, "far": 1e-2},
    "slope": {"base": 0.01, "near": 0.0100001, "far": 0.2},
    "approximate": {"base": "none", "near": "tanh", "far": "tanh"},
    "alpha": {"base": 1.0, "near": 1.0000005, "far": 0.5},
    "times": {"base": 1.0, "near": 1.0000005, "far": 2.0},
    "padding": {"base": 0, "near": 1, "far": 1},
    "align": {"base": False, "near": True, "far": True},
    "reduction": {"base": "mean", "near": "sum", "far": "sum"},
    "axis": {"base": -1, "near": 1, "far": 1},
    "kept": {"base": True, "near": False, "far": False},
    "correction": {"base": 1, "near": 0, "far": 0},
}
#: Calls of both sides that mean the same by other values.
SAME = ("same_axis", "same_kernel", "off")
VARIANTS, TASKS = ("base", "near", "far"), ("tensor", "statistics")


def tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = {"x": (4, 6, 8), "image": (2, 3, 6, 6), "other": (4, 6, 8), "weight": (3, 3, 3, 3)}
    arrays = {name: random.normal(size=shape) for name, shape in shapes.items()}
    arrays |= {name: random.uniform(0.5, 2.0, size) for name, size in (("gamma", 8), ("variance", 3), ("mean", 3))}
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def calls_of_mindspore(t: dict[str, Any]) -> dict[str, Callable[[Any], Any]]:
    from mindspore import mint, ops

    return {
        "layer_eps": lambda v: ops.LayerNorm(2, 2, v)(t["x"], t["gamma"], t["gamma"])[0],
        "batch_eps": lambda v: ops.batch_norm(
            t["image"], t["mean"], t["variance"], t["mean"], t["mean"], False, 0.1, v
        ),
        "adam_eps": lambda v: mint.add(t["other"] * t["other"], v),
        "slope": lambda v: ops.leaky_relu(t["x"], v),
        "approximate": lambda v: ops.gelu(t["x"], approximate=v),
        "alpha": lambda v: ops.celu(t["x"], v),
        "times": lambda v: mint.sub(t["x"], t["other"], alpha=v),
        "padding": lambda v: ops.conv2d(t["image"], t["weight"], None, 1, "pad", v),
        "align": lambda v: ops.interpolate(t["image"], size=(9, 9), mode="bilinear", align_corners=v),
        "reduction": lambda v: ops.mse_loss(t["x"], t["other"], v),
        "axis": lambda v: ops.softmax(t["x"], v),
        "kept": lambda v: ops.mean(t["x"], 1, v),
        "correction": lambda v: ops.std(t["x"], 1, v),
        "same_axis": lambda _: ops.softmax(t["x"], 2),
        "same_kernel": lambda _: ops.avg_pool2d(t["image"], (2, 2), (2, 2)),
        "off": lambda _: ops.dropout(t["x"], 0.5, False),
    }


def calls_of_pytorch(t: dict[str, Any]) -> dict[str, Callable[[Any], Any]]:
    import torch
    from torch.nn import functional

    return {
        "layer_eps": lambda v: functional.layer_norm(t["x"], (8,), t["gamma"], t["gamma"], v),
        "rms_eps": lambda v: functional.rms_norm(t["x"], (8,), t["gamma"], v),
        "batch_eps": lambda v: functional.batch_norm(
            t["image"], t["mean"], t["variance"], t["mean"], t["mean"], False, 0.1, v
        ),
        "adam_eps": lambda v: torch.add(t["other"] * t["other"], v),
        "slope": lambda v: functional.leaky_relu(t["x"], v),
        "approximate": lambda v: functional.gelu(t["x"], approximate=v),
        "alpha": lambda v: functional.celu(t["x"], v),
        "times": lambda v: torch.sub(t["x"], t["other"], alpha=v),
        "padding": lambda v: functional.conv2d(t["image"], t["weight"], None, 1, v),
        "align": lambda v: functional.interpolate(t["image"], (9, 9), mode="bilinear", align_corners=v),
        "reduction": lambda v: functional.mse_loss(t["x"], t["other"], reduction=v),
        "axis": lambda v: functional.softmax(t["x"], v),
        "kept": lambda v: torch.mean(t["x"], 1, v),
        "correction": lambda v: torch.std(t["x"], 1, correction=v),
        "same_axis": lambda _: functional.softmax(t["x"], -1),
        "same_kernel": lambda _: functional.avg_pool2d(t["image"], 2),
        "off": lambda _: functional.dropout(t["x"], 0.5, False),
    }


def record(framework: str, folder: Path) -> None:
    if framework == "mindspore":
        import mindspore
        from mindspore.nn import Cell as Module

        from msprobe_ms import PrecisionDebugger

        calls = calls_of_mindspore({name: mindspore.Tensor(array) for name, array in tensors().items()})
    else:
        import torch
        from torch.nn import Module  # type: ignore[assignment]

        from msprobe_ms.pytorch import PrecisionDebugger

        calls = calls_of_pytorch({name: torch.tensor(array) for name, array in tensors().items()})

    class Call(Module):  # type: ignore[misc, valid-type]
        def __init__(self, call: Callable[[Any], Any], value: Any) -> None:
            super().__init__()
            self.call, self.value = call, value

        def forward(self) -> Any:
            return self.call(self.value)

        construct = forward

    class Net(Module):  # type: ignore[misc, valid-type]
        def __init__(self, variant: str) -> None:
            super().__init__()
            for name, call in calls.items():
                setattr(self, name, Call(call, SETTINGS.get(name, {}).get(variant)))

        def forward(self) -> Any:
            return [getattr(self, name)() for name in calls]

        construct = forward

    for variant in VARIANTS:
        for task in TASKS:
            net = Net(variant)
            path = folder / f"{framework}_{variant}_{task}"
            debugger = PrecisionDebugger(level="mix", task=task, dump_path=path, step=[0])
            debugger.start(net)
            net()
            debugger.stop()
            debugger.step()


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
