"""The command acc_check on a dump of a MindSpore training: each API and primitive of a healthy net is right."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked import run_forked
from thorough import thorough

pytestmark = pytest.mark.processes

SCRIPT = """
import sys
import mindspore, numpy as np
from mindspore import Tensor, mint, nn, ops
import msprobe_ms

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.convolution = nn.Conv2d(3, 8, 3, pad_mode="same", has_bias=True)
        self.strided = nn.Conv2d(8, 8, 3, stride=2, pad_mode="pad", padding=1, group=2)
        self.up = nn.Conv2dTranspose(8, 8, 3, stride=2, pad_mode="same", group=2)
        self.over = nn.Conv2dTranspose(8, 8, 2, stride=3, pad_mode="pad", padding=(1, 0, 0, 1))
        self.recurrent = nn.LSTM(4, 3, bidirectional=True), nn.GRU(6, 2, has_bias=False, bidirectional=True)
        self.batch_norm, self.layer_norm = nn.BatchNorm2d(8), nn.LayerNorm((32,), epsilon=1e-5)
        self.pools = nn.SequentialCell(nn.MaxPool2d(2, 2), nn.AvgPool2d(2, 1, pad_mode="same"))
        self.activations = nn.SequentialCell(nn.ReLU(), nn.GELU(), nn.Tanh(), nn.Sigmoid(), nn.ELU())
        self.dense, self.softmax = nn.Dense(32, 10), nn.Softmax()
        self.loss, self.mean = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), ops.ReduceMean(True)

    def construct(self, x, y):
        x = self.strided(self.batch_norm(self.convolution(x)).astype(mindspore.float16).float())
        x = self.pools(self.over(self.up(x))[..., :2, :2])
        h = self.recurrent[1](self.recurrent[0](x.reshape(2, 4, 4))[0])[0]
        x = self.dense(self.layer_norm(self.activations(x.flatten(start_dim=1).tile((1, 4)))))
        x = x - self.mean(x, 1) + self.embedding(y).sum(axis=1, keepdims=True)
        x = mint.matmul(x, x.T) @ x / 2
        first, second = ops.split(x, 5, axis=1)
        x = ops.concat((first, second * 2), axis=1)
        values, places = ops.topk(x, 3)
        x += values[:, :1]
        x = self.loss(x, y) + ops.log_softmax(x).mean() + self.softmax(x).max() + ops.cumsum(values, 0).std()
        return x + h.mean()

mindspore.set_seed(1)
np.random.seed(1)
net = Net().set_train()
x, y = Tensor(np.random.randn(4, 3, 4, 4), mindspore.float32), Tensor([1, 2, 3, 4], mindspore.int32)
for task in sys.argv[1:]:
    with msprobe_ms.record(net, level="mix", task=task, dump_path=task):
        mindspore.value_and_grad(net, None, net.trainable_params())(x, y)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dump of each task."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(SCRIPT)
    done = run_forked("train.py", "statistics", "tensor", framework="mindspore", cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("task", ["statistics", thorough("tensor")])
def test_a_healthy_net_is_judged_whole_and_has_no_error(recorded: Path, tmp_path: Path, task: str) -> None:
    (dump,) = (recorded / task).rglob("dump.json")
    if task == "tensor":  # tensors are found where the dump says that they are
        (tmp_path / "apart").mkdir()
        dump = Path(shutil.copy(dump, tmp_path / "apart"))
    asked = [sys.executable, "-m", "msprobe_ms", "acc_check", "-api_info", dump, "-o", tmp_path]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=240)
    (table,) = tmp_path.glob("accuracy_checking_result_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.DictReader(opened))
    wrong = [row for row in rows if "error" in row.values()]
    assert done.stdout.startswith("PASS"), (done.stdout, wrong)
    apis = [row for row in rows if not row["API Name"].startswith(("Cell.", "loss."))]
    assert len(apis) > 40
    assert [row for row in apis if "SKIP" in row.values()] == []
