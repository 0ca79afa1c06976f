"""A host that judges what two trainings send over TLS; a training, a sender and the host are killed meanwhile."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from forked import run_forked
from processes import environment, eventually, free_port

from msprobe_ms.remote.certificates import make_certificates

pytestmark = pytest.mark.processes

_KILLED = """
def sender():
    while True:
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                parent = status.read_text().split("PPid:")[1].split()[0]
                if int(parent) == os.getpid() and b"remote.sender" in (status.parent / "cmdline").read_bytes():
                    return int(status.parent.name)
            except OSError:
                continue
        time.sleep(0.05)
"""

PYTORCH = (
    """
import os, signal, sys, time
import numpy as np, torch
from pathlib import Path
from torch import nn
from torch.nn import functional
from msprobe_ms.pytorch import PrecisionDebugger
"""
    + _KILLED
    + """
right = functional.softplus
def softplus(input, beta=1.0, threshold=20.0):
    return right(input, beta, threshold) * 1.001
functional.softplus = softplus

debugger = PrecisionDebugger(config_path=sys.argv[1]) if len(sys.argv) > 1 else None
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x, losses = torch.randn(3, 4), []
for step in range(6):
    if debugger:
        debugger.start(net, rank_id=int(sys.argv[2]))
    optimizer.zero_grad()
    loss = functional.mse_loss(net(x).to(torch.bfloat16).float(), torch.zeros(3, 2))
    loss.backward()
    if "training" in sys.argv and step == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if debugger:
        debugger.stop()
    optimizer.step()
    losses.append(float(loss.detach()))
    if debugger:
        debugger.step()
    if "sender" in sys.argv and step == 3:
        os.kill(sender(), signal.SIGKILL)
weights = {name.replace(".", "_"): each.detach().numpy() for name, each in net.named_parameters()}
np.savez("end.npz", losses=losses, drawn=torch.rand(3).numpy(), **weights)
"""
)


class Host:
    """A host for both trainings, in a process of its own, that is begun again with the same command."""

    def __init__(self, folder: Path, section: dict[str, object]) -> None:
        self._folder = folder
        content = {"task": "run_ut", "dump_path": "./tables", "run_ut": {"is_online": True, **section}}
        (folder / "host.json").write_text(json.dumps(content))
        self._begin()

    def _begin(self) -> None:
        command = [sys.executable, "-m", "msprobe_ms", "-f", "pytorch", "run_ut", "-config", "host.json", "--exit-code"]
        with open(self._folder / "host.log", "a") as log:
            self.process = subprocess.Popen(command, cwd=self._folder, env=environment(), stdout=log, stderr=log)

    def kill_when_it_has_judged(self, calls: int) -> None:
        """End it in the midst of its work, and begin another."""
        deadline = time.monotonic() + 100
        while sum(file.read_bytes().count(b"\n") for file in self._folder.glob("tables/*.journal")) <= calls:
            assert time.monotonic() < deadline and self.process.poll() is None, self.log
            time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        self._begin()

    @property
    def log(self) -> str:
        return (self._folder / "host.log").read_text()


def train(folder: Path, *arguments: str) -> CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(PYTORCH)
    return run_forked("train.py", *arguments, framework="torch", cwd=folder, env=environment())


def table(folder: Path, ending: str, kind: str = "result") -> list[dict[str, str]]:
    (found,) = folder.glob(f"accuracy_checking_{kind}_*{ending}.csv")
    with found.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def senders() -> list[str]:
    """Processes that send, of any training."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = command.read_bytes()
        except OSError:
            continue
        if b"msprobe_ms.remote.sender" in text:
            found.append(text.decode())
    return found


def test_tables_of_a_host_are_those_of_the_dump_whoever_is_killed(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certificates", ["localhost"])
    where = {"nfs_path": "", "host": "localhost", "port": free_port(), "tls_path": str(tmp_path / "certificates")}
    sent = {"task": "tensor", "level": "L1", "dump_path": "sent", "tensor": {"online_run_ut": True, **where}}
    kept = {"task": "tensor", "level": "L1", "dump_path": "kept", "step": [4]}
    for name, config in {"sent": sent, "kept": kept}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(config))
    host = Host(tmp_path, {**where, "rank_list": [0, 1]})
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(host.kill_when_it_has_judged, 8)
        done = train(tmp_path / "whole", str(tmp_path / "sent.json"), "0", "sender")
        dead = train(tmp_path / "dead", str(tmp_path / "sent.json"), "1", "training")
        plain = train(tmp_path / "plain")
        dumped = train(tmp_path / "dumped", str(tmp_path / "kept.json"), "0")
        killing.result()
    assert [each.returncode for each in (done, plain, dumped)] == [0, 0, 0], done.stderr
    assert dead.returncode == -signal.SIGKILL
    assert "the process that sends ended with -9; another goes on" in done.stderr
    assert host.process.wait(200) == 1, host.log  # --exit-code

    ends = [np.load(tmp_path / folder / "end.npz") for folder in ("plain", "whole")]
    for name in ends[0].files:
        np.testing.assert_array_equal(ends[0][name], ends[1][name], name)
    assert eventually(lambda: os.listdir(tmp_path / "whole" / "sent") + os.listdir(tmp_path / "dead" / "sent")) == []
    assert eventually(lambda: [line for line in senders() if str(tmp_path) in line]) == []

    tables = tmp_path / "tables"
    assert sorted({file.suffix for file in tables.iterdir()}) == [".csv", ".html"]
    rows = table(tables, "_rank0")
    assert len({row["API name"] for row in rows}) == len(rows) == 6 * 9, host.log
    wrong = [row["API name"] for row in rows if row["Forward Test Success"] == "error"]
    assert wrong == [f"step{step}.Functional.softplus.0" for step in range(6)]
    command = [sys.executable, "-m", "msprobe_ms", "acc_check", "-api_info", "dumped/kept/step4", "-o", "offline"]
    (offline,) = (tmp_path / "dumped" / "kept" / "step4").iterdir()
    command[5] = str(offline)
    subprocess.run(command, cwd=tmp_path, env=environment(), check=True, capture_output=True)
    for kind in ("result", "details"):
        expected = table(tmp_path / "offline", "", kind)
        found = [row for row in table(tables, "_rank0", kind) if next(iter(row.values())).startswith("step4.")]
        assert [{key: value.removeprefix("step4.") for key, value in row.items()} for row in found] == expected

    rows = table(tables, "_rank1")
    names = [row["API name"] for row in rows if "softplus" in row["API name"]]
    assert names == [f"step{step}.Functional.softplus.0" for step in range(3)], "the step it was killed in as well"
    assert not [row for row in rows if "not received" in row["Message"]]
