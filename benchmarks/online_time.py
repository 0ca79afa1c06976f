"""Time of training steps of which every call, or a sample, is sent over TLS, as a ratio to the same without.

    python benchmarks/online_time.py --blocking                  every call of every second turn; a minute of each
    python benchmarks/online_time.py --blocking --sampled        a sample, as msprobe run --check --to takes it

The encoder of step_time.py in MindSpore PyNative. What receives runs on the same machine, keeps each call on the disk
and deletes it: nothing is judged. One JSON line: ratios of the times of a step (mean, and median of every step), and
calls and bytes that were sent. Without room steps are left out, and counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.certificates import make_certificates
from msprobe_ms.remote.inbox import Inbox
from msprobe_ms.remote.messages import Ended
from msprobe_ms.remote.receiver import Receiver
from msprobe_ms.remote.stream_server import StreamServer

_WARM, _TURN = 5, 5.0


async def _receive(folder: Path) -> None:
    """Take all that comes, and tell in a file how much it was."""
    inbox = Inbox(folder / "received", (), 1 << 40)
    address = Address("", "localhost", 0, str(folder / "certificates"))
    server = StreamServer(address, lambda: Receiver(inbox, (), lambda client: Ended(judged=len(client.received))))
    await server.start()
    (folder / "port.part").write_text(str(server.port))
    (folder / "port.part").rename(folder / "port")
    calls = size = 0
    while True:
        for kept in inbox.waiting(1000):
            calls += 1
            size += sum(file.stat().st_size for file in kept.folder.rglob("*.npy"))
            inbox.judged(kept.client, kept.number)
        (folder / "sum").write_text(json.dumps({"calls": calls, "tensor_mib": size >> 20}))
        await inbox.changed(1)


def _recorder(
    folder: Path, address: Address, clock: Callable[[], float], *, sampled: bool
) -> tuple[Callable[..., None], ...]:
    """``start``, ``stop``, ``step`` and ``retire`` of what sends; ``clock``: the seconds of turns with it."""
    from msprobe_ms.accuracy.online.driver import SamplingDriver
    from msprobe_ms.accuracy.online.settings import Budget, Judging
    from msprobe_ms.mindspore import PrecisionDebugger

    if sampled:
        debugger = PrecisionDebugger(task="tensor", level="L1", dump_path=folder)
        debugger.steps_are_called = True
        driver = SamplingDriver(debugger, lambda network: "cpu", Budget(), Judging(str(folder)), address, clock=clock)
        return driver.start, driver.stop, driver.step, driver.retire
    where = {"host": address.host, "port": address.port, "tls_path": address.tls}
    config = {"task": "tensor", "dump_path": str(folder), "tensor": {"online_run_ut": True, **where}}
    (folder / "config.json").write_text(json.dumps(config))
    debugger = PrecisionDebugger(config_path=folder / "config.json")
    return debugger.start, debugger.stop, debugger.step, debugger.retire


def _measure(folder: Path, address: Address, options: argparse.Namespace) -> dict[str, object]:
    import mindspore
    from nets import encoder

    if options.blocking:
        mindspore.runtime.launch_blocking()
    net, train = encoder()
    for _ in range(_WARM):
        train()
    away = 0.0
    start, stop, step, retire = _recorder(folder, address, lambda: time.perf_counter() - away, sampled=options.sampled)

    def sent() -> None:
        start(net)
        train()
        stop()
        step()

    times: dict[str, list[float]] = {"with": [], "without": []}
    while sum(times["with"]) < options.seconds:
        for name, action in (("with", sent), ("without", train)):
            turn = time.perf_counter()
            end = time.perf_counter() + _TURN
            while (began := time.perf_counter()) < end:
                action()
                times[name].append(time.perf_counter() - began)
            away += time.perf_counter() - turn if name == "without" else 0.0
    began = time.perf_counter()
    retire()
    means, medians = ({name: f(each) for name, each in times.items()} for f in (statistics.mean, statistics.median))
    return {
        "mean_ratio": means["with"] / means["without"],
        "median_ratio": medians["with"] / medians["without"],
        "step_ms": means["without"] * 1e3,
        "steps": {name: len(each) for name, each in times.items()},
        "wait_at_end_s": time.perf_counter() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="with sending; as many without")
    parser.add_argument("--sampled", action="store_true", help="a sample within 5 %% of the time, not every call")
    parser.add_argument("--blocking", action="store_true", help="with launch_blocking()")
    parser.add_argument("--receive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.receive is not None:
        os.nice(19)
        return asyncio.run(_receive(options.receive))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_certificates(folder / "certificates", ["localhost"])
        receiver = subprocess.Popen([sys.executable, __file__, "--receive", place])
        try:
            while not (folder / "port").exists():
                time.sleep(0.05)
            address = Address("", "localhost", int((folder / "port").read_text()), str(folder / "certificates"))
            figures = _measure(folder, address, options)
            print(json.dumps({**figures, **json.loads((folder / "sum").read_text())}))
        finally:
            receiver.kill()
            receiver.wait()
    return None


if __name__ == "__main__":
    main()
