"""Of a training script, what a reader would call a setting is collected, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.environment.collect import collect
from msprobe_ms.environment.python_settings import settings_of_python
from msprobe_ms.support.errors import UsageError

SCRIPT = """
import mindspore as ms
from mindspore import nn

LEARNING_RATE = 1e-3
BATCH_SIZE, SEQUENCE = 32, 128
WARMUP: int = 100
TOKENS = 4 * 1024
BETAS = (0.9, -0.5)
model = dict(hidden_size=64, layers={"count": 4})
net = Net(hidden=64)
names = [each for each in range(3)]
steps = 0
for batch in dataset:
    loss = 0
    steps += 1
parser.add_argument("-e", "--epochs", type=int, default=3)
parser.add_argument("--name")


@dataclass
class Training:
    accumulate: int = 2


class Net(nn.Cell):
    kernel = 3

    def __init__(self, hidden=64):
        inner = 5
        self.fc = nn.Dense(hidden, 10, has_bias=False)


if __name__ == "__main__":
    ms.set_seed(1234)
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    EPSILON = 1e-6
    optimizer = nn.AdamWeightDecay(net.trainable_params(), LEARNING_RATE, weight_decay=0.01, eps=EPSILON)
    second = nn.SGD(others, learning_rate=schedule(3))
    third = nn.SGD(others, learning_rate=0.5)
    data = load("data").batch(BATCH_SIZE, drop_remainder=True)
    loader = torch.utils.data.DataLoader(data, shuffle=False)
"""


def test_settings_are_read_and_other_assignments_are_not() -> None:
    assert {each.name: each.value for each in settings_of_python(SCRIPT)} == {
        "LEARNING_RATE": 1e-3, "BATCH_SIZE": 32, "SEQUENCE": 128, "WARMUP": 100, "TOKENS": "4 * 1024",
        "BETAS": "(0.9, -0.5)", "model.hidden_size": 64, "model.layers.count": 4, "epochs": 3, "accumulate": 2,
        "seed": 1234, "context.mode": "GRAPH_MODE", "context.device_target": "CPU", "EPSILON": 1e-6,
        "optimizer.learning_rate": 1e-3,
        "optimizer.weight_decay": 0.01, "optimizer.eps": 1e-6, "optimizer2.learning_rate": 0.5, "data.batch_size": 32,
        "data.drop_remainder": True, "data.shuffle": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "script",
    [
        "x = y",
        "x: int",
        "x = 1\nx = 2",
        "def f():\n    x = 1",
        "_x = 1",
        "print('--lr 3')",
        "x = f'{y}'",
        "a.b = 1",
        "",
    ],
)
def test_what_is_no_setting_is_left_out(script: str) -> None:
    assert list(settings_of_python(script)) == []


def test_both_frameworks_name_settings_alike(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("nn.Adam(params, learning_rate=0.1)\nset_seed(3)")
    (tmp_path / "b.py").write_text("torch.optim.Adam(params, lr=0.1)\ntorch.manual_seed(3)")
    from msprobe_ms.environment.compare import Status, compare_collections

    ours, theirs = (collect([tmp_path / name], None, {}) for name in ("a.py", "b.py"))
    rows = [row for row in compare_collections(ours, theirs) if row.section in ("hyperparameters", "random")]
    assert [(row.name, row.status) for row in rows] == [
        ("optimizer.learning_rate", Status.PASS),
        ("seed", Status.PASS),
    ]


def test_a_script_that_is_no_python_is_named(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("print 'x'\n")
    with pytest.raises(UsageError, match=r"old\.py: line 1: it is not valid Python"):
        collect([tmp_path / "old.py"], None, {})


@pytest.mark.parametrize(
    ("name", "kept"), [("API_KEY", False), ("hub_token", False), ("num_key_value_heads", True), ("KEY", False)]
)
def test_a_secret_is_not_kept(name: str, kept: bool, tmp_path: Path) -> None:
    for file, text in (("a.py", f"{name} = 'abc'"), ("a.sh", f"export {name}=abc")):
        (tmp_path / file).write_text(text)
        found: dict[str, Any] = collect([tmp_path / file], None, {})["hyperparameters"]
        assert found[name] == ("abc" if kept else "(not kept)")


def test_calls_that_seed_and_that_set_the_mode_are_told_apart() -> None:
    script = "seed_all(7, True)\nms.set_context(mode=0)\ntorch.use_deterministic_algorithms(True)"
    assert {each.name: each.value for each in settings_of_python(script)} == {
        "seed": 7, "seed_all.mode": True, "context.mode": 0, "deterministic": True,
    }  # fmt: skip
