"""What recording costs a PyTorch training on a device: time of a step, operations launched, read-backs.

    python benchmarks/device_time.py --device cuda   # ratios, launches and read-backs, as the profiler sees them
    python benchmarks/device_time.py --device cpu    # no device: operations and read-backs, of tensors of the CPU
    python benchmarks/device_time.py --device cuda --nets linears --cases mix:tensor --rounds 50

Steps without the tool and with it alternate in one process. A line of JSON a net and a case: the ratio of median times
of a step and of the quickest ones, each with the device waited for at its end; what a step launches on the device, and
how often it reads back, without the tool and with it. Without a device times mean nothing and are left out: tensors of
the CPU go the way of a device's, and the operations and read-backs that are for their figures are counted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from msprobe_ms.frameworks.pytorch import device_statistics
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.recording.output import deferred_statistics

_WARM = 3
_CASES = ("L0", "L1", "mix", "mix:md5", "L0:tensor", "mix:tensor")


def _encoder(device: str) -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    """Four layers of width 512, 8 sequences of 128 tokens."""
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    net = nn.Sequential(nn.Embedding(1000, 512), encoder, nn.Linear(512, 1000)).to(device)
    ids, labels = torch.randint(0, 1000, (8, 128), device=device), torch.randint(0, 1000, (8 * 128,), device=device)
    return net, lambda: nn.functional.cross_entropy(net(ids).reshape(-1, 1000), labels)


def _linears(device: str) -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(100))).to(device)
    x = torch.randn(32, 16, device=device)
    return net, lambda: net(x).square().mean()


NETS = {"encoder": _encoder, "linears": _linears}


def _training(name: str, device: str) -> tuple[nn.Module, Callable[[], None]]:
    torch.manual_seed(7)
    net, loss = NETS[name](device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    return net, step


def _on_device(step: Callable[[], None]) -> Counter[str]:
    """What a step does on the device, and how often the host waits for it, as the profiler tells it."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        step()
    counts: Counter[str] = Counter()
    for event in found.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            counts["launches"] += 1
            counts["read_backs"] += "DtoH" in event.name
        counts["waits"] += event.name.startswith(("cudaStreamSynchronize", "cudaDeviceSynchronize"))
    return counts


class _Launches(TorchDispatchMode):
    """Counts operations that a device would be sent."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        aliases = [argument.alias_info for argument in function._schema.arguments if argument.alias_info]
        is_view = any(not alias.is_write for alias in aliases) or "view" in function.__name__
        self._counts["launches"] += not is_view and "empty" not in function.__name__
        return function(*args, **(kwargs or {}))


@contextmanager
def counted(counts: Counter[str]) -> Iterator[None]:
    """Have tensors of the CPU go the way of a device's, and count what that would be sent."""
    start, read, is_on_device = device_statistics.start, device_statistics.read, device_statistics.is_on_device

    def starting(*args: Any, **kwargs: Any) -> Any:
        counts["tensors"] += 1
        with _Launches(counts):
            return start(*args, **kwargs)

    def reading(*args: Any) -> Any:
        counts["read_backs"] += 1
        with _Launches(counts):
            return read(*args)

    def fetching(self: PyTorch, tensor: torch.Tensor) -> torch.Tensor:
        counts["read_backs"] += 1
        return on_host(self, tensor)

    on_host, PyTorch.on_host = PyTorch.on_host, fetching  # type: ignore[method-assign]
    device_statistics.start, device_statistics.read = starting, reading
    device_statistics.is_on_device = lambda tensor: True
    longest, deferred_statistics.LONGEST = deferred_statistics.LONGEST, 1e9  # a device would take less than a second
    try:
        yield
    finally:
        device_statistics.start, device_statistics.read = start, read
        device_statistics.is_on_device = is_on_device
        deferred_statistics.LONGEST = longest
        PyTorch.on_host = on_host  # type: ignore[method-assign]


def measure(name: str, case: str, device: str, rounds: int, folder: str) -> dict[str, Any]:
    """Figures of one net, recorded at a level and by a task."""
    level, _, task = case.partition(":")
    net, step = _training(name, device)
    config = Path(folder) / "config.json"
    of_task = {"statistics": {"summary_mode": "md5"}} if task == "md5" else {"task": task or "statistics"}
    config.write_text(json.dumps({"level": level, "dump_path": f"{folder}/dump", **of_task}))
    debugger = PrecisionDebugger(config)

    def recorded() -> None:
        debugger.start(net)
        step()
        debugger.stop()
        debugger.step()

    found: dict[str, Any] = {"net": name, "case": case, "device": device}
    if device == "cpu":
        counts: Counter[str] = Counter()
        with counted(counts):
            recorded()
        return found | counts
    times: dict[Callable[[], None], list[float]] = {step: [], recorded: []}
    for number in range(_WARM + rounds):
        for run, taken in times.items():
            began = time.perf_counter()
            run()
            if number >= _WARM:
                taken.append(time.perf_counter() - began)
        shutil.rmtree(f"{folder}/dump")
    for word, choose in (("ratio", statistics.median), ("ratio_least", min)):
        found[word] = round(choose(times[recorded]) / choose(times[step]), 2)
    found["bare_ms"] = round(statistics.median(times[step]) * 1e3, 2)
    torch.cuda.reset_peak_memory_stats()
    step()
    bare = torch.cuda.max_memory_allocated()
    recorded()
    found["more_memory_mb"] = round((torch.cuda.max_memory_allocated() - bare) / 1e6, 1)
    return found | {"bare": dict(_on_device(step)), "recorded": dict(_on_device(recorded))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--cases", nargs="+", default=_CASES, metavar="LEVEL[:TASK]")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    for name in options.nets:
        for case in options.cases:
            with tempfile.TemporaryDirectory() as folder:
                print(json.dumps(measure(name, case, options.device, options.rounds, folder)), flush=True)


if __name__ == "__main__":
    main()
