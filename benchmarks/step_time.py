"""Time of a training step with a dump tool on, as a ratio to the same step without it. See README.md beside this file.

    python benchmarks/step_time.py                          levels L0, L1, mix; task statistics
    python benchmarks/step_time.py --cases L0:tensor mix:md5

One JSON line a case; ``bench.py`` makes a table of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

#: What a configuration has instead of ``task: statistics``; ``async``: tensor files written by a thread of their own.
TASKS: dict[str, dict[str, Any]] = {
    "statistics": {},
    "md5": {"statistics": {"summary_mode": "md5"}},
    "structure": {"task": "structure"},
    "tensor": {"task": "tensor"},
    "async": {"task": "tensor", "async_dump": True},
} | {
    # Calls of APIs made again, at level L1.
    name: {"task": "free_benchmark", "free_benchmark": {"pert_mode": mode, "fuzz_stage": stage, "list": names}}
    for name, mode, stage, names in (
        ("add_noise", "add_noise", "forward", []),
        ("bit_noise", "bit_noise", "forward", []),
        ("no_change", "no_change", "forward", []),
        ("to_cpu", "to_cpu", "forward", []),
        ("exchange_value", "change_value", "forward", []),
        ("improve_precision", "improve_precision", "forward", []),
        ("noise_backward", "add_noise", "backward", []),
        (
            "noise_functions",
            "add_noise",
            "forward",
            ["mindspore.ops.softmax", "mindspore.ops.matmul", "mindspore.ops.gelu"],
        ),
    )
}
_WARM = 3


def _training_step() -> tuple[nn.Cell, Callable[[], None]]:
    # In the environment of another tool nothing of ours is installed.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from torture.nets.mindspore.transformers import Encoder

    generator = np.random.default_rng(7)
    net = Encoder(4, width=256, factor=4, length=64, tokens=1000, classes=1000, pooled=False)
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


def _debugger(adapter: str | None, folder: str, level: str, task: str, **more: Any) -> Any:
    config = Path(folder) / "config.json"
    content = {"task": "statistics", "level": level, "dump_path": f"{folder}/dump", "rank": [], "step": []}
    sections = {name: {"scope": [], "list": [], "data_mode": ["all"]} for name in ("statistics", "tensor", "structure")}
    sections["statistics"]["summary_mode"] = TASKS[task].get("statistics", {}).get("summary_mode", "statistics")
    kept = {key: value for key, value in TASKS[task].items() if key != "statistics"}
    config.write_text(json.dumps({**content, **sections, **kept, **more}))
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


def measure(level: str, task: str, steps: int, adapter: str | None, folder: str) -> dict[str, Any]:
    """Seconds of steps without the tool, with it, and after ``stop``, in turns; megabytes of one dump."""
    net, step = _training_step()
    debugger = _debugger(adapter, folder, level, task)
    exports: list[float] = []
    sizes: list[int] = []

    def recorded() -> None:
        debugger.start(net)
        step()
        began = time.perf_counter()
        debugger.stop()
        debugger.step()
        exports.append(time.perf_counter() - began)

    def cleared() -> None:
        dump = Path(folder) / "dump"
        sizes.append(sum(file.stat().st_size for file in dump.rglob("*") if file.is_file()))
        shutil.rmtree(dump, ignore_errors=True)  # else a disk full of tensors is what is timed

    for _ in range(_WARM):
        step()
    first = _timed(recorded)[0]
    cleared()
    without, with_tool, after = [], [], []
    for _ in range(steps):
        without.append(_timed(step))
        with_tool.append(_timed(recorded))
        cleared()
        after.append(_timed(step))
    figures: dict[str, Any] = {"level": level, "task": task, "steps": steps, "megabytes": sizes[0] / 1e6}
    for number, kind in enumerate(("wall", "cpu")):
        for name, column in (("", with_tool), ("_after_stop", after)):
            for word, choose in (("", statistics.median), ("_least", min)):
                base = choose([row[number] for row in without])
                figures[f"{kind}_ratio{name}{word}"] = choose([row[number] for row in column]) / base
    figures["base_ms"] = statistics.median(row[0] for row in without) * 1e3
    figures["export_ms"] = statistics.median(exports) * 1e3
    figures["first_recorded_s"] = first
    return figures


def calls_when_off(folder: str) -> dict[str, int]:
    """Calls of functions of msprobe_ms in one training step: before start, after stop, in a step not selected."""
    import msprobe_ms

    package = os.path.dirname(os.path.abspath(msprobe_ms.__file__)) + os.sep
    net, step = _training_step()
    debugger = _debugger(None, folder, "mix", "statistics", step=[1])
    counted = 0

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal counted
        counted += event == "call" and frame.f_code.co_filename.startswith(package)

    def calls() -> int:
        nonlocal counted
        counted = 0
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            step()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        return counted

    found = {"before start": calls()}
    debugger.start(net)
    found["in a step not selected"] = calls()
    debugger.stop()
    debugger.step()
    debugger.start(net)
    found["in the selected step"] = calls()
    debugger.stop()
    found["after stop"] = calls()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cases", nargs="+", default=["L0", "L1", "mix"], metavar="LEVEL[:TASK]", help=", ".join(TASKS)
    )
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--adapter", help="a file with make(config_path), to time another tool")
    parser.add_argument("--blocking", action="store_true", help="launch operators synchronously")
    parser.add_argument("--graph", action="store_true", help="GRAPH_MODE; of the levels, L0 records Cells there")
    parser.add_argument("--off", action="store_true", help="count our calls in steps that are not recorded instead")
    options = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE if options.graph else ms.PYNATIVE_MODE)
    if options.blocking:
        ms.runtime.launch_blocking()
    if options.off:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(calls_when_off(folder)))
        return
    for case in options.cases:
        level, _, task = case.partition(":")
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(level, task or "statistics", options.steps, options.adapter, folder)
        rounded = {name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()}
        print(json.dumps(rounded), flush=True)


if __name__ == "__main__":
    main()
