"""``msprobe run --check``: the calls of real trainings, judged while they go on."""

from __future__ import annotations

import csv
import json
import time
from collections import Counter
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from forked import run_forked
from processes import environment, eventually

pytestmark = pytest.mark.processes

MINDSPORE = """
import mindspore, numpy as np
from mindspore import Tensor, mint, nn, ops
mindspore.set_seed(1)
np.random.seed(1)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.convolution, self.batch_norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.dense, self.layer_norm = nn.Dense(64, 8), nn.LayerNorm((8,))
        self.activations = nn.SequentialCell(nn.ReLU(), nn.GELU(), nn.Tanh(), nn.Sigmoid())
        self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def construct(self, x, y):
        x = self.dense(self.activations(self.batch_norm(self.convolution(x))).flatten(start_dim=1))
        x = ops.selu(self.layer_norm(x)) + mint.matmul(x, x.T) @ x / 2
        return self.loss(x, y) + (x * x).mean() + ops.rand(1).mean()

net = Net().set_train()
optimizer = nn.Adam(net.trainable_params(), 0.01)
x, y = Tensor(np.random.randn(4, 3, 4, 4), mindspore.float32), Tensor([1, 2, 3, 4], mindspore.int32)
gradient = mindspore.value_and_grad(net, None, optimizer.parameters)
losses = []
for _ in range(4):
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    losses.append(float(loss))
weights = {each.name: each.asnumpy() for each in net.get_parameters()}
np.savez("end.npz", losses=losses, drawn=np.random.rand(3), on=ops.rand(3).asnumpy(), **weights)
"""

PYTORCH = """
import os, signal, sys, time
import numpy as np, torch
from pathlib import Path
from torch import nn
from torch.nn import functional

right = functional.softplus
def softplus(input, beta=1.0, threshold=20.0):
    return right(input, beta, threshold) * 1.001
functional.softplus = softplus

def checker():
    while True:
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                parent = status.read_text().split("PPid:")[1].split()[0]
                if int(parent) == os.getpid() and b"online.checker" in (status.parent / "cmdline").read_bytes():
                    return int(status.parent.name)
            except OSError:
                continue
        time.sleep(0.05)

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x, losses = torch.randn(3, 4), []
for step in range(5):
    optimizer.zero_grad()
    loss = functional.mse_loss(net(x), torch.zeros(3, 2))
    if "killed" in sys.argv and step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    loss.backward()
    optimizer.step()
    losses.append(float(loss))
    if "checkers" in sys.argv and step in (1, 3):
        os.kill(checker(), signal.SIGKILL if step == 1 else signal.SIGSTOP)
        time.sleep(0.3)
weights = {name.replace(".", "_"): each.detach().numpy() for name, each in net.named_parameters()}
np.savez("end.npz", losses=losses, drawn=torch.rand(3).numpy(), **weights)
"""


def train(folder: Path, script: str, *arguments: str, check: tuple[str, ...] = ()) -> CompletedProcess[str]:
    """Train with the check, where options of it are given, or without."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(script)
    command = ("-m", "msprobe_ms", "run", "--check", "-o", "out", *check) if check else ()
    framework = "mindspore" if script is MINDSPORE else "torch"
    return run_forked(*command, "train.py", *arguments, framework=framework, cwd=folder, env=environment())


def table(folder: Path, kind: str = "result") -> list[dict[str, str]]:
    (found,) = (folder / "out").glob(f"accuracy_checking_{kind}_*.csv")
    with found.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def errors(folder: Path) -> list[str]:
    rows = ("Forward Test Success", "Backward Test Success")
    name = "API Name" if "API Name" in table(folder)[0] else "API name"
    return [f"{row[name]} {column.split()[0]}" for row in table(folder) for column in rows if row[column] == "error"]


def left_behind(folder: Path) -> list[str]:
    return [file.name for file in (folder / "out").iterdir() if file.suffix not in (".csv", ".html")]


def assert_same_end(one: Path, other: Path) -> None:
    ends = [np.load(folder / "end.npz") for folder in (one, other)]
    assert ends[0].files == ends[1].files
    for name in ends[0].files:
        np.testing.assert_array_equal(ends[0][name], ends[1][name], name)


def test_a_gradient_that_mindspore_computes_wrongly_is_found_and_nothing_else(tmp_path: Path) -> None:
    plain, checked = tmp_path / "plain", tmp_path / "checked"
    assert train(plain, MINDSPORE).returncode == 0
    done = train(checked, MINDSPORE, check=("--share", "100"))
    assert done.returncode == 0, done.stderr
    assert_same_end(plain, checked)
    assert errors(checked) == [f"step{step}.Functional.selu.0 Backward" for step in range(4)], done.stderr
    rows = table(checked)
    assert "known of MindSpore on the CPU" in next(row["Message"] for row in rows if "error" in row.values())
    calls = [row for row in rows if row["API Name"].startswith("step")]
    assert len(calls) > 60 and not [row for row in calls if "SKIP" in row.values()]
    (rest,) = (row for row in rows if "rand" in row["API Name"])
    assert rest["Message"].startswith("random output: 4 of its 4 calls in 4 of 4 steps")
    assert "step0.Functional.selu.0.backward.output.0 is wrong" in done.stderr
    assert eventually(lambda: left_behind(checked)) == []


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the end of the PyTorch training without the check."""
    folder = tmp_path_factory.mktemp("plain")
    assert train(folder, PYTORCH).returncode == 0
    return folder


def test_a_planted_fault_is_found_in_a_pytorch_training(plain: Path, tmp_path: Path) -> None:
    checked = tmp_path / "checked"
    done = train(checked, PYTORCH, check=("--share", "100", "--calls", "4", "--save_error_data"))
    assert done.returncode == 0, done.stderr
    assert_same_end(plain, checked)
    wrong = [f"step{step}.Functional.softplus.0 {way}" for step in range(4) for way in ("Forward", "Backward")]
    assert errors(checked) == wrong
    rows = {row["API name"]: row["Message"] for row in table(checked)}
    assert rows["Functional.linear"] == "not sampled: 11 of its 15 calls in 5 of 5 steps"
    assert rows["Functional.softplus"] == "not sampled: 1 of its 5 calls in 5 of 5 steps"
    assert rows["step0.Functional.dropout.0"] == "random output"
    assert {row["API Name"].split(".")[0] for row in table(checked, "details")} == {"step0", "step1", "step2", "step3"}
    (saved,) = left_behind(checked)
    assert (checked / "out" / saved / "step0.Functional.softplus.0.reproduce.py").exists()


def test_a_training_that_is_killed_leaves_whole_tables(tmp_path: Path) -> None:
    assert train(tmp_path, PYTORCH, "killed", check=("--share", "100")).returncode == -9
    deadline = time.monotonic() + 200
    while left_behind(tmp_path):  # the process that judges ends by itself
        assert time.monotonic() < deadline
        time.sleep(0.1)
    steps = Counter(row["API name"].split(".")[0] for row in table(tmp_path))
    assert [steps[f"step{step}"] for step in range(5)] == [5, 5, 5, 5, 0], steps
    assert [name for name in errors(tmp_path) if name.startswith("step3")] == ["step3.Functional.softplus.0 Forward"]


def test_judging_that_dies_and_hangs_costs_rows(plain: Path, tmp_path: Path) -> None:
    checked = tmp_path / "checked"
    done = train(checked, PYTORCH, "checkers", check=("--share", "100", "--patience", "12"))
    assert done.returncode == 0, done.stderr
    assert "the process that judges ended with -9; another goes on" in done.stderr
    assert_same_end(plain, checked)
    rows = table(checked)
    steps = Counter(row["API name"].split(".")[0] for row in rows)
    assert [steps[f"step{step}"] for step in range(5)] == [5] * 5, steps
    message = "timed out: the process that judges did not come to it"
    late = [row for row in rows if row["Message"] == message]
    assert late and all(row["Forward Test Success"] == "SKIP" for row in late)
    assert eventually(lambda: left_behind(checked)) == []


def test_a_sample_is_left_in_a_shared_folder_for_another_machine(plain: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    checked = tmp_path / "checked"
    done = train(checked, PYTORCH, check=("--share", "100", "--calls", "4", "--to", str(shared)))
    assert done.returncode == 0, done.stderr
    assert_same_end(plain, checked)
    (training,) = shared.iterdir()
    items = [path for path in training.iterdir() if path.suffix == ".item"]
    assert f"{len(items)} calls are in {shared}" in done.stderr and len(items) > 15
    assert {path.name for path in training.iterdir()} - {path.name for path in items} == {"hello", "end"}
    assert b'"Functional.linear":[15,4]' in (training / "end").read_bytes(), "of what the calls are a sample"
    assert list((checked / "out").iterdir()) == []


SENT = """
import os, signal
import mindspore, numpy as np
from mindspore import Tensor, nn, ops
from msprobe_ms.mindspore import PrecisionDebugger

net = nn.Dense(4, 3)
debugger = PrecisionDebugger(config_path="config.json")
gradient = mindspore.value_and_grad(lambda x: ops.selu(net(x)).sum(), None, net.trainable_params())
for step in range(3):
    debugger.start(net, rank_id=1)
    gradient(Tensor(np.ones((2, 4)), mindspore.float32))
    if step == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    debugger.stop()
    debugger.step()
"""


def test_all_that_a_mindspore_training_recorded_is_sent_after_it_was_killed(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    section = {"online_run_ut": True, "nfs_path": str(tmp_path / "shared"), "host": "", "port": -1, "tls_path": ""}
    config = {"task": "tensor", "level": "L1", "dump_path": "kept", "rank": [1], "tensor": section}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "train.py").write_text(SENT)
    done = run_forked("train.py", framework="mindspore", cwd=tmp_path, env=environment())
    assert done.returncode == -9, done.stderr
    deadline = time.monotonic() + 100
    while not (ends := [*tmp_path.glob("shared/rank1-*/end")]) or [*(tmp_path / "kept").iterdir()]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert b'"killed":true' in ends[0].read_bytes()
    items = [path.read_bytes() for path in sorted(ends[0].parent.glob("*.item"))]
    names = [item.split(b'"name":"')[1].split(b'"')[0].decode() for item in items]
    assert [name for name in names if "selu" in name] == [f"step{step}.Functional.selu.0" for step in range(3)]
    selu = next(item for item in items if b"step0.Functional.selu" in item)
    assert b'"Functional.selu.0.backward"' in selu and b'{"dtype":"float32","shape":[2,3]}' in selu
