"""Measure what a recording holds in memory: large tensors, a stalled disk, very long steps, very many steps.

python -m torture.bounded                                 # everything, half an hour
python -m torture.bounded --cases tensors stall --small   # the same in small, a minute
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
import torch

from msprobe_ms.dump.writing.writer import TENSOR_FOLDER
from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.support import folder as folders
from msprobe_ms.support.files import replacing
from torture.harness import Outcome, Tool, main
from torture.recordings import write_config

MIB = 1 << 20


def peak_of(call: Callable[[], Any]) -> int:
    """By how many bytes this process grew while ``call`` ran, at most."""
    Path("/proc/self/clear_refs").write_text("5")
    before = held("VmRSS")
    call()
    return held("VmHWM") - before


def held(key: str = "VmRSS") -> int:
    """Bytes of this process's memory: ``VmRSS`` now, ``VmHWM`` at most since the last `peak_of` began."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) << 10


class Disk:
    """Tensor files pass through a pipe whose reader may stand still: the writer then waits in the kernel."""

    def __init__(self) -> None:
        self._reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert self._reader.stdin is not None
        self._pipe = self._reader.stdin.fileno()

    def stands_still(self) -> None:
        self._reader.send_signal(signal.SIGSTOP)

    def goes_on(self) -> None:
        self._reader.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.goes_on()
        self._reader.communicate()

    @contextmanager
    def replacing(self, path: Path | str, *where: Any) -> Iterator[Any]:
        """Stands for `files.replacing`."""
        with replacing(path, *where) as file:
            yield _Through(self._pipe, file) if Path(path).parent.name == TENSOR_FOLDER else file


class _Through:
    def __init__(self, pipe: int, file: BinaryIO) -> None:
        self._pipe, self._file = pipe, file

    def write(self, content: Any) -> int:
        left = memoryview(content).cast("B")
        while left:
            left = left[os.write(self._pipe, left) :]
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()


# -- the cases ---------------------------------------------------------------------------------------------------------


class Recording:
    """A debugger that records into a folder of its own; what the last step's dump holds."""

    def __init__(self, folder: str, task: str, debugger: Any = PrecisionDebugger, **keys: Any) -> None:
        self._folder = Path(folder)
        self.debugger = debugger(config_path=str(write_config(self._folder, task, **keys)))

    def entries(self) -> int:
        (dump,) = self._folder.rglob("dump.json")
        return len(json.loads(dump.read_bytes())["data"])

    def troubles(self) -> int:
        """Lines of the error log, at most the 1000 that it takes."""
        return sum(len(log.read_text().splitlines()) for log in self._folder.rglob("dump_error_info.log"))


def tensors(kind: str, small: bool) -> tuple[str, bool]:
    """A tensor of 2 GB: what its figures and its checksum take beside it."""
    size = (256 if small else 2048) * MIB
    make: dict[str, Callable[[], torch.Tensor]] = {
        "float32": lambda: torch.ones(size // 4),
        "complex64": lambda: torch.ones(size // 8, dtype=torch.complex64),
        "transposed": lambda: torch.ones(1 << 13, size >> 15).T,
        "sliced": lambda: torch.ones(size // 8, 2)[:, 1],
    }
    wide = make.get(kind, lambda: torch.ones(size // getattr(torch, kind).itemsize, dtype=getattr(torch, kind)))
    x, peaks = wide(), {}
    for mode in ("statistics", "md5", "tensor"):
        with TemporaryDirectory() as folder:
            recording = Recording(folder, mode, level="L1")
            recording.debugger.start()
            torch.zeros(8).to(torch.bfloat16).view_as(torch.zeros(8))  # what is loaded the first time
            peaks[mode] = peak_of(lambda: x.view_as(x))
            recording.debugger.stop()
            recording.debugger.step()
            recording.debugger.retire()
    shown = ", ".join(f"{mode} {peak / MIB:.0f} MiB" for mode, peak in peaks.items())
    if kind in ("transposed", "sliced"):  # a file of PyTorch holds contiguous memory, which a view is copied to
        del peaks["tensor"]
    good = max(peaks.values()) < 96 * MIB
    return f"a tensor of {size >> 20} MiB beside itself: {shown}", good


def stall(kind: str, small: bool) -> tuple[str, bool]:
    """Tensors that come faster than a disk takes them, and one that takes none for a minute."""
    disk, cap, seconds = Disk(), 64, 15 if small else 60
    folders.replacing = disk.replacing  # type: ignore[assignment]
    values, over = np.ones(MIB // 4, np.float32), threading.Event()
    x = torch.from_numpy(values)

    def falter() -> None:
        while not over.is_set():
            disk.stands_still()
            over.wait(seconds if kind == "standing" else 0.05)
            disk.goes_on()
            over.wait(0.01)

    with TemporaryDirectory() as folder:
        recording = Recording(folder, "async", level="L1", max_memory=cap)
        recording.debugger.start()
        torch.relu(x)
        threading.Thread(target=falter, daemon=True).start()
        time.sleep(0.1)
        calls, begun = 0, time.monotonic()

        def train() -> None:
            nonlocal calls
            while time.monotonic() - begun < seconds:
                values[:] += 1  # What was written before would need no disk but a link.
                torch.relu(x)
                calls += 1
                time.sleep(0.01)  # The index of so many calls has room in an eighth of the cap, which is kept for it.

        peak, longest = peak_of(train), time.monotonic() - begun
        over.set()
        recording.debugger.stop()
        recording.debugger.step()
        entries, lost = recording.entries(), recording.troubles()
        recording.debugger.retire()
    disk.close()
    text = (
        f"a disk {kind} for {seconds} s, max_memory {cap} MiB: {calls} calls in {longest:.0f} s, "
        f"{peak / MIB:.0f} MiB at most, {entries} entries, {'over ' * (lost >= 1000)}{lost} tensors without a file"
    )
    # Beside what is held: a few tensors of the training, and what the allocator has not given back.
    return text, peak < (cap + 64) * MIB and entries == calls + 1 and bool(lost) == (kind == "standing")


def entries(kind: str, small: bool) -> tuple[str, bool]:
    """A step of 200,000 entries, forward and backward."""
    wanted, layers = (20_000 if small else 200_000), 500
    net = torch.nn.Sequential(*(torch.nn.Tanh() for _ in range(layers)))
    x = torch.ones(4, requires_grad=True)
    torch.set_num_threads(1)

    def train() -> None:
        for _ in range(wanted // layers // (2 if kind == "L0" else 4)):
            net(x).sum().backward()

    with TemporaryDirectory() as folder:
        recording = Recording(folder, "statistics", level=kind)
        recording.debugger.start(net)
        begun = time.monotonic()
        training, took = peak_of(train), time.monotonic() - begun
        begun = time.monotonic()
        export = peak_of(recording.debugger.stop)
        exported = time.monotonic() - begun
        recording.debugger.step()
        count, lost = recording.entries(), recording.troubles()
        recording.debugger.retire()
    text = (
        f"a step of {count} entries: while it trains {training / MIB:.0f} MiB ({took:.0f} s), "
        f"as it is exported {export / MIB:.0f} MiB ({exported:.0f} s)"
    )
    return text, count >= wanted and not lost and max(training, export) < count * 2048


def steps(kind: str, small: bool) -> tuple[str, bool]:
    """A thousand steps: memory, open files, threads and hooks."""
    count = 100 if small else 1000
    net, train, hooks, debugger = _mindspore() if kind == "mindspore" else _pytorch()

    def state() -> tuple[int, int, int, int, int]:
        gc.collect()
        return held(), len(gc.get_objects()), len(os.listdir("/proc/self/fd")), threading.active_count(), hooks()

    for number in range(count):  # MindSpore's own growth: some 12 kB a step
        if number == count // 5:
            before = held()
        train()
    bare = held() - before
    with TemporaryDirectory() as folder:
        recording = Recording(folder, "async", debugger, level="mix", max_memory=64)

        def record(number: int) -> None:
            for _ in range(number):
                recording.debugger.start(net)
                train()
                recording.debugger.stop()
                recording.debugger.step()

        record(count // 5)
        before = state()
        record(count - count // 5)
        after = state()
        recording.debugger.retire()
    grown = [now - then for now, then in zip(after, before, strict=True)]
    text = (
        f"{count} steps of {kind}: from step {count // 5} on {grown[0] / MIB:+.1f} MiB (without the tool "
        f"{bare / MIB:+.1f} MiB), {grown[1]:+d} Python objects, "
        f"{grown[2]:+d} open files, {grown[3]:+d} threads, {grown[4]:+d} hooks"
    )
    return text, grown[0] - bare < 8 * MIB and grown[1] < 500 and not any(grown[2:])


def _pytorch() -> tuple[Any, Callable[[], Any], Callable[[], int], Any]:
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
    x = torch.ones(2, 8)

    def hooks() -> int:
        modules = sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in net.modules())
        return modules + sum(len(each._backward_hooks or ()) for each in net.parameters())

    return net, lambda: net(x).sum().backward(), hooks, PrecisionDebugger


def _mindspore() -> tuple[Any, Callable[[], Any], Callable[[], int], Any]:
    import mindspore
    from mindspore import Tensor, nn

    from msprobe_ms.mindspore import PrecisionDebugger as Debugger

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.runtime.launch_blocking()
    net = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 8))
    x = Tensor([[1.0] * 8] * 2, mindspore.float32)
    train = mindspore.value_and_grad(lambda: net(x).sum(), None, net.trainable_params())

    def hooks() -> int:
        return sum(len(cell._forward_hook) + len(cell._forward_pre_hook) for _, cell in net.cells_and_names())

    return net, train, hooks, Debugger


#: What is measured, and of which kinds.
CASES: dict[Callable[[str, bool], tuple[str, bool]], tuple[str, ...]] = {
    tensors: ("bfloat16", "float16", "float32", "int8", "complex64", "transposed", "sliced"),
    stall: ("standing", "slow"),
    entries: ("L0", "mix"),
    steps: ("mindspore", "pytorch"),
}
NAMES = {measure.__name__: measure for measure in CASES}


class Bounded(Tool):
    """Each measurement in a process of its own: what one leaves to Python's allocator is not the next one's."""

    module = "torture.bounded"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cases", nargs="+", default=list(NAMES), choices=NAMES)
        parser.add_argument("--small", action="store_true", help="smaller tensors, shorter steps, fewer of them")

    def outcomes(self) -> Iterator[Outcome]:
        for name in self.options.cases:
            for kind in CASES[NAMES[name]]:
                yield from self.apart(f"{name} {kind}")

    def run(self, case: str) -> Iterator[Outcome]:
        name, kind = case.split()
        text, good = NAMES[name](kind, self.options.small)
        yield Outcome(case, [] if good else [f"{text}   TOO MUCH"], {"text": text})

    def lines(self, outcome: Outcome) -> Iterator[str]:
        yield f"{outcome.case}: {outcome.problems[0] if outcome.problems else outcome.figures['text']}"


if __name__ == "__main__":
    sys.exit(main(Bounded))
