"""What the parts in C save a recorded training step: ratios to the step without the tool, with them and without.

    python benchmarks/extension_time.py --framework mindspore --levels L0 mix --rounds 25
    python benchmarks/extension_time.py --framework pytorch

Steps without the tool, recorded with the parts in C, and recorded as where there was no compiler, alternate in one
process, so that a slow moment of the machine touches all alike. A line of JSON a level: for wall and CPU time the ratio
of medians, and of the quickest steps. MindSpore runs under ``launch_blocking``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nets

from msprobe_ms.arrays import one_pass
from msprobe_ms.dump.writing import journal, writer

_WARM = 2


def measure(framework: str, level: str, rounds: int, folder: str) -> dict[str, Any]:
    """Ratios of both kinds of recorded steps to those without the tool."""
    if framework == "mindspore":
        import mindspore

        from msprobe_ms import PrecisionDebugger

        mindspore.runtime.launch_blocking()
        net, step = nets.encoder()
    else:
        from msprobe_ms.pytorch import PrecisionDebugger

        net, step = nets.torch_encoder()
    debugger = PrecisionDebugger(task="statistics", level=level, dump_path=folder)
    built = one_pass._figures, journal._at_end, writer._entry

    def recorded(parts: tuple[Any, Any, Any]) -> None:
        one_pass._figures, journal._at_end, writer._entry = parts
        debugger.start(net)
        step()
        debugger.stop()
        debugger.step()

    ways: dict[str, Callable[[], None]] = {
        "bare": step,
        "c": lambda: recorded(built),
        "numpy": lambda: recorded((None,) * 3),
    }
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for number in range(_WARM + rounds):
        for way, run in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            if number >= _WARM:
                times[way].append((time.perf_counter() - wall, time.process_time() - cpu))
            for dump in Path(folder).iterdir():
                shutil.rmtree(dump)
    one_pass._figures, journal._at_end, writer._entry = built
    found: dict[str, Any] = {"framework": framework, "level": level, "rounds": rounds}
    for place, clock in enumerate(("wall", "cpu")):
        for word, choose in (("median", statistics.median), ("least", min)):
            of = {way: choose([row[place] for row in column]) for way, column in times.items()}
            found[f"{clock}_{word}"] = {way: round(of[way] / of["bare"], 2) for way in ("c", "numpy")}
    return found | {"bare_ms": round(statistics.median(wall for wall, _ in times["bare"]) * 1e3, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=("mindspore", "pytorch"), default="mindspore")
    parser.add_argument("--levels", nargs="+", default=["L0", "mix"])
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    if not one_pass.is_built():
        parser.error("the extension is not built: there was no compiler at the install")
    for level in options.levels:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(options.framework, level, options.rounds, folder)), flush=True)


if __name__ == "__main__":
    main()
