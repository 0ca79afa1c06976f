"""Step time with a dump tool on, as a ratio to the same step without it. See README.md beside this file."""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from encoder import Encoder
from mindspore import Tensor, nn


def _training_step() -> tuple[nn.Cell, Callable[[], None]]:
    generator = np.random.default_rng(7)
    net = Encoder()
    net.set_train()
    ids = Tensor(generator.integers(0, 1000, (4, 64)).astype(np.int32))
    labels = Tensor(generator.integers(0, 1000, 4 * 64).astype(np.int32))
    cross_entropy = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.01)

    def forward(ids: Tensor, labels: Tensor) -> Tensor:
        logits = net(ids)
        return cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)

    gradient = ms.value_and_grad(forward, None, net.trainable_params())

    def step() -> None:
        loss, gradients = gradient(ids, labels)
        optimizer(gradients)
        float(loss)
        ms.runtime.synchronize()

    return net, step


def _debugger(adapter: str | None, folder: str, level: str) -> Any:
    config = Path(folder) / "config.json"
    content = {"task": "statistics", "level": level, "dump_path": f"{folder}/dump", "rank": [], "step": []}
    content["statistics"] = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    config.write_text(json.dumps(content))
    if adapter is None:
        from msprobe_ms import PrecisionDebugger

        return PrecisionDebugger(config_path=str(config))
    spec = importlib.util.spec_from_file_location("adapter", adapter)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make(str(config))


def _timed(action: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


def _measure(level: str, steps: int, adapter: str | None, folder: str) -> dict[str, float]:
    net, step = _training_step()
    debugger = _debugger(adapter, folder, level)

    def recorded() -> None:
        debugger.start(net)
        step()
        debugger.stop()
        debugger.step()

    for _ in range(3):
        step()
    began = time.perf_counter()
    recorded()
    first = time.perf_counter() - began
    without, with_tool, after = [], [], []
    for _ in range(steps):
        without.append(_timed(step))
        with_tool.append(_timed(recorded))
        after.append(_timed(step))
    base_wall, base_cpu = (statistics.median(column) for column in zip(*without, strict=True))
    return {
        "base_ms": base_wall * 1e3,
        "wall_ratio": statistics.median(wall for wall, _ in with_tool) / base_wall,
        "cpu_ratio": statistics.median(cpu for _, cpu in with_tool) / base_cpu,
        "wall_ratio_after_stop": statistics.median(wall for wall, _ in after) / base_wall,
        "first_recorded_s": first,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--levels", default="L0,L1,mix")
    parser.add_argument("--adapter", help="a file with make(config_path), to time another tool")
    parser.add_argument("--blocking", action="store_true", help="launch operators synchronously")
    parser.add_argument("--graph", action="store_true", help="GRAPH_MODE; of the levels, L0 records Cells there")
    options = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE if options.graph else ms.PYNATIVE_MODE)
    if options.blocking:
        ms.runtime.launch_blocking()
    for level in options.levels.split(","):
        with tempfile.TemporaryDirectory() as folder:
            figures = _measure(level, options.steps, options.adapter, folder)
        print(level, json.dumps({name: round(value, 2) for name, value in figures.items()}), flush=True)


if __name__ == "__main__":
    main()
