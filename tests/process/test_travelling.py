"""A network sent to worker processes while it is recorded: what workers get and give is what it is without the tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from processes import environment
from recording import read_step
from thorough import thorough

#: A worker trains the network it is sent and sends it back; the parent records its own call alone.
SCRIPT = """
import sys
import torch
import torch.multiprocessing as mp
from torch import nn

def work(given, taken):
    net, x = given.get()
    loss = net(x).sum()
    loss.backward()
    taken.put((net, loss.item(), [parameter.grad.sum().item() for parameter in net.parameters()]))
    given.get()  # the other side takes its tensors from here

def hooks(net):
    return [hook for module in net.modules() for hook in (*module._forward_hooks, *module._forward_pre_hooks)]

def travel(method, level, folder):
    torch.manual_seed(1)
    context = mp.get_context(method)
    given, taken = context.SimpleQueue(), context.SimpleQueue()
    net = nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), nn.Linear(4, 2))
    x = torch.arange(24.0).reshape(3, 2, 4) / 24
    with record(net, level=level, dump_path=folder):
        worker = context.Process(target=work, args=(given, taken))
        worker.start()
        given.put((net, x))
        back, loss, gradients = taken.get()
        given.put(None)
        worker.join()
        assert worker.exitcode == 0
        own = net(x).sum()
        own.backward()
    assert loss == own.item() and gradients == [parameter.grad.sum().item() for parameter in net.parameters()]
    assert hooks(back) == hooks(net) == [] and back[0].activation is torch.nn.functional.relu

if __name__ == "__main__":
    from msprobe_ms.pytorch import record
    for level in ("L0", "mix"):
        travel(sys.argv[1], level, sys.argv[2] + "/" + level)
"""


@pytest.mark.parametrize("method", ["spawn", thorough("fork")])
def test_a_network_goes_to_a_worker_and_comes_back_at_every_level(tmp_path: Path, method: str) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "dump"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), method, str(folder)]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert "could not be recorded" not in run.stderr and "Warning" not in run.stderr
    for level in ("L0", "mix"):
        data = read_step(folder / level).data
        assert "Module.1.Linear.forward.0" in data and "Module.1.Linear.forward.1" not in data
