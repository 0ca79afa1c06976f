"""Time of a training step with a dump tool on, as a ratio to the same step without it. See README.md beside this file.

    python benchmarks/step_time.py                          levels L0, L1, mix; task statistics
    python benchmarks/step_time.py --cases L0:tensor mix:md5
    python benchmarks/step_time.py --net torch-encoder      another network
    python benchmarks/step_time.py --adapter benchmarks/hooks_only.py   hooks that do nothing, in place of the tool
    python benchmarks/step_time.py --adapter benchmarks/floor.py        hooks that do what no tool can do without
    python benchmarks/step_time.py --cases L1:add_noise_listed L2:grad_probe    the checks; a level of gradients

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
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from nets import MINDSPORE, NETS, sgd

_LISTED = ["mindspore.ops.softmax", "mindspore.ops.matmul", "mindspore.ops.gelu"]
#: What a configuration has instead of ``task: statistics``; ``async``: tensor files written by a thread of their own.
TASKS: dict[str, dict[str, Any]] = {
    "statistics": {},
    "md5": {"statistics": {"summary_mode": "md5"}},
    "structure": {"task": "structure"},
    "tensor": {"task": "tensor"},
    "async": {"task": "tensor", "async_dump": True},
    # Figures of gradients at each call of an optimizer; the level is theirs.
    "grad_probe": {"task": "grad_probe"},
} | {
    # Calls of APIs made again, at level L1; ``listed``: those of three functions alone.
    f"{mode}{kind}": {
        "task": "free_benchmark",
        "free_benchmark": {
            "pert_mode": "change_value" if mode == "exchange_value" else mode,
            "fuzz_stage": "backward" if kind == "_backward" else "forward",
            "list": _LISTED if kind == "_listed" else [],
        },
    }
    for mode in ("add_noise", "bit_noise", "no_change", "exchange_value", "improve_precision", "to_cpu")
    for kind in ("", "_backward", "_listed")
}
_WARM = 3


def _debugger(adapter: str | None, net: str, folder: str, level: str, task: str, **more: Any) -> Any:
    config = Path(folder) / "config.json"
    content = {"task": "statistics", "level": level, "dump_path": f"{folder}/dump", "rank": [], "step": []}
    sections = {name: {"scope": [], "list": [], "data_mode": ["all"]} for name in ("statistics", "tensor", "structure")}
    sections["statistics"]["summary_mode"] = TASKS[task].get("statistics", {}).get("summary_mode", "statistics")
    kept = {key: value for key, value in TASKS[task].items() if key != "statistics"}
    if task == "grad_probe":
        content["level"], sections["grad_probe"] = "L1", {"grad_level": level, "param_list": [], "bounds": [-1, 0, 1]}
    config.write_text(json.dumps({**content, **sections, **kept, **more}))
    if adapter is None:
        package = import_module("msprobe_ms.mindspore" if net in MINDSPORE else "msprobe_ms.pytorch")
        return package.PrecisionDebugger(config_path=str(config))
    spec = importlib.util.spec_from_file_location("adapter", adapter)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make(str(config))


def _timed(action: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(net: str, level: str, task: str, steps: int, adapter: str | None, folder: str) -> dict[str, Any]:
    """Seconds of steps without the tool, with it, and after ``stop``, in turns; megabytes of one dump."""
    model, step = NETS[net]()
    debugger = _debugger(adapter, net, folder, level, task)
    exports: list[float] = []
    sizes: list[int] = []
    entries: list[str] = []

    def recorded() -> None:
        debugger.start(model)
        step()
        began = time.perf_counter()
        debugger.stop()
        debugger.step()
        exports.append(time.perf_counter() - began)

    def cleared() -> None:
        dump = Path(folder) / "dump"
        sizes.append(sum(file.stat().st_size for file in dump.rglob("*") if file.is_file()))
        if len(sizes) == 1:
            entries.extend(name for file in dump.rglob("dump.json") for name in json.loads(file.read_text())["data"])
        if task != "grad_probe":  # its folder is one for all steps
            shutil.rmtree(dump, ignore_errors=True)  # else a disk full of tensors is what is timed

    action: Callable[[], None] = recorded
    if task == "grad_probe":
        watched = sgd(model)
        debugger.monitor(watched)
        action = partial(step, watched)
    for _ in range(_WARM):
        step()
    first = _timed(action)[0]
    cleared()
    without, with_tool, after = [], [], []
    for _ in range(steps):
        without.append(_timed(step))
        with_tool.append(_timed(action))
        cleared()
        after.append(_timed(step))
    figures: dict[str, Any] = {"net": net, "level": level, "task": task, "steps": steps, "megabytes": sizes[0] / 1e6}
    for number, kind in enumerate(("wall", "cpu")):
        for name, column in (("", with_tool), ("_after_stop", after)):
            for word, choose in (("", statistics.median), ("_least", min)):
                base = choose([row[number] for row in without])
                figures[f"{kind}_ratio{name}{word}"] = choose([row[number] for row in column]) / base
    figures["base_ms"] = statistics.median(row[0] for row in without) * 1e3
    figures["base_least_ms"] = min(row[0] for row in without) * 1e3
    figures["entries"] = len(entries)
    figures["export_ms"] = statistics.median(exports or [0.0]) * 1e3
    figures["first_recorded_s"] = first
    return figures


def calls_of_ours(net: str, level: str, folder: str) -> dict[str, int]:
    """Calls of functions of msprobe_ms: in one training step that is not recorded, and in and around one that is."""
    import msprobe_ms

    package = os.path.dirname(os.path.abspath(msprobe_ms.__file__)) + os.sep
    model, step = NETS[net]()
    debugger = _debugger(None, net, folder, level, "statistics", step=[1, 2])
    counted = 0

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal counted
        counted += event == "call" and frame.f_code.co_filename.startswith(package)

    def calls(*actions: Callable[[], Any]) -> int:
        nonlocal counted
        counted = 0
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            for action in actions:
                action()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        return counted

    found = {"before start": calls(step)}
    debugger.start(model)
    found["in a step not selected"] = calls(step)
    debugger.stop()
    debugger.step()
    debugger.start(model)  # whatever is made once is made now
    step()
    debugger.stop()
    debugger.step()
    found["in `start`"] = calls(lambda: debugger.start(model))
    found["in the selected step"] = calls(step)
    found["in `stop` and `step`"] = calls(debugger.stop, debugger.step)
    found["after stop"] = calls(step)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cases", nargs="+", default=["L0", "L1", "mix"], metavar="LEVEL[:TASK]", help=", ".join(TASKS)
    )
    parser.add_argument("--net", choices=NETS, default="encoder")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--adapter", help="a file with make(config_path), to time another tool")
    parser.add_argument("--blocking", action="store_true", help="launch operators synchronously")
    parser.add_argument("--graph", action="store_true", help="GRAPH_MODE; of the levels, L0 records Cells there")
    parser.add_argument("--calls", action="store_true", help="count our calls at the level of the last case instead")
    options = parser.parse_args()
    if options.net in MINDSPORE:
        import mindspore as ms

        ms.set_context(mode=ms.GRAPH_MODE if options.graph else ms.PYNATIVE_MODE)
        if options.blocking:
            ms.runtime.launch_blocking()
    if options.calls:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(calls_of_ours(options.net, options.cases[-1], folder)))
        return
    for case in options.cases:
        level, _, task = case.partition(":")
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(options.net, level, task or "statistics", options.steps, options.adapter, folder)
        rounded = {name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()}
        print(json.dumps(rounded), flush=True)


if __name__ == "__main__":
    main()
