"""Time of training steps with ``msprobe run --check`` at its default budget, as a ratio to the same without it.

    python benchmarks/check_time.py                 five minutes of each, in turns
    python benchmarks/check_time.py --share 0.2 --seconds 60 --blocking

One training: some seconds with the check, some without, in which what judges is stopped; the budget knows of the former
alone. One JSON line: the ratio of the mean times of a step, and what was sampled.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore
from nets import encoder

from msprobe_ms.accuracy.online.driver import SamplingDriver
from msprobe_ms.accuracy.online.settings import Budget, Judging
from msprobe_ms.mindspore import PrecisionDebugger

_WARM = 5


class _Turns:
    """Steps with the check and without in turns, and how long they took."""

    def __init__(self, block: float, share: float, folder: Path) -> None:
        self._block = block
        self.net, self._step = encoder()
        for _ in range(_WARM):
            self._step()
        self._away = 0.0
        self.times: dict[str, list[float]] = {"with": [], "without": []}
        self.processor = {"with": 0.0, "without": 0.0}
        debugger = PrecisionDebugger(task="tensor", level="L1", dump_path=folder)
        debugger.steps_are_called = True
        self.driver = SamplingDriver(
            debugger, lambda network: "cpu", Budget(share), Judging(str(folder)),
            clock=lambda: time.perf_counter() - self._away,
        )  # fmt: skip

    def run(self, seconds: float) -> None:
        """Train for so many seconds with the check, and as many without."""
        while sum(self.times["with"]) < seconds:
            self._steps("with", self._checked)
            began = time.perf_counter()
            judging = [*_below(os.getpid())]
            for process in judging:
                _signal(process, signal.SIGSTOP)
            self._steps("without", self._step)
            for process in judging:
                _signal(process, signal.SIGCONT)
            self._away += time.perf_counter() - began

    def _checked(self) -> None:
        self.driver.start(self.net)
        self._step()
        self.driver.stop()
        self.driver.step()

    def _steps(self, name: str, step: Callable[[], None]) -> None:
        end = time.perf_counter() + self._block
        while (began := time.perf_counter()) < end:
            processor = time.process_time()
            step()
            self.times[name].append(time.perf_counter() - began)
            self.processor[name] += time.process_time() - processor


def _below(parent: int) -> Iterator[int]:
    """The processes that a process has begun, and those that these have."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number = int(stat.read_text().rpartition(") ")[2].split()[1])
        except OSError:
            continue
        if number == parent:
            yield int(stat.parent.name)
            yield from _below(int(stat.parent.name))


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300.0, help="with the check; as many without")
    parser.add_argument("--block", type=float, default=5.0, help="seconds of a turn")
    parser.add_argument("--share", type=float, default=Budget().share)
    parser.add_argument("--blocking", action="store_true", help="with launch_blocking()")
    options = parser.parse_args()
    if options.blocking:
        mindspore.runtime.launch_blocking()
    with tempfile.TemporaryDirectory() as place:
        turns = _Turns(options.block, options.share, Path(place))
        turns.run(options.seconds)
        figures: dict[str, Any] = {"share": options.share, "blocking": options.blocking}
        figures["wall_ratio"] = _mean(turns.times["with"]) / _mean(turns.times["without"])
        per_step = {name: turns.processor[name] / len(turns.times[name]) for name in turns.times}
        figures["cpu_ratio"] = per_step["with"] / per_step["without"]
        figures["step_ms"] = _mean(turns.times["without"]) * 1e3
        figures["steps"] = {name: len(times) for name, times in turns.times.items()}
        figures |= turns.driver.figures
        turns.driver.retire()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
