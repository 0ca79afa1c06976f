"""What only msprobe is told is no setting of the training; whatever reaches anything else is one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from msprobe_ms.environment.collect import collect
from msprobe_ms.environment.told_to_msprobe import told_to_msprobe

SCRIPT = """
from msprobe_ms import PrecisionDebugger, seed_all
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--seed", default=3)
parser.add_argument("--level", default="mix")
parser.add_argument("--dump-steps", default="0,1")
parser.add_argument("--only", dest="list")
parser.add_argument("--of", type=int, default=0)
parser.add_argument("--width", default=64)
parser.add_argument("--unused", default=1)
args = parser.parse_args()
RATIO = 2
seed_all(seed=args.seed)
opt = SGD(params, learning_rate=args.lr)
settings = {}
if args.list:
    settings["list"] = [args.list]
if args.of: settings["overflow_nums"] = args.of
debugger = PrecisionDebugger(level=args.level, step=[int(each) for each in args.dump_steps.split(",")], **settings)
for x in data:
    debugger.start(Net(args.width), RATIO)
    opt(grad(x))
"""


def test_options_for_msprobe_are_not_collected_and_others_are(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "train.sh").write_text("python train.py --lr 0.2 --level L1 --only a --of 3 --width 32 --new 1")
    alone = collect([tmp_path / "train.py"], None, {})
    assert alone["hyperparameters"] == {"lr": 0.1, "unused": 1} and alone["random"] == {"seed": 3}
    both = collect([tmp_path / "train.sh", tmp_path / "train.py"], None, {})
    assert both["hyperparameters"] == {"lr": 0.2, "unused": 1, "new": 1}
    (tmp_path / "other.py").write_text('parser.add_argument("--width", default=8)\nNet(args.width)')
    every = collect([tmp_path / name for name in ("train.sh", "train.py", "other.py")], None, {})
    assert every["hyperparameters"]["width"] == 32


@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("m.PrecisionDebugger(level=a.x)", True),
        ("d = None\nd = m.PrecisionDebugger() if on else None\nd.start(a.x)", True),
        ("x = a.x\nm.PrecisionDebugger(x)", True),
        ("m.seed_all(a.x)", False),
        ("Net(a.x)", False),
        ("m.PrecisionDebugger(a.x)\nNet(a.x)", False),
        ("y = a.x\nm.PrecisionDebugger(y)\nNet(y)", False),
        ("opt = SGD(a.x)\nopt(grad)", False),
        ("if a.x: Net()", False),
        ("if a.x:\n    m.PrecisionDebugger()\nelse:\n    Net()", False),
        ("for each in a.x: m.PrecisionDebugger()", False),
        ("y = a.x", False),
        ("return_[a.x] = m.PrecisionDebugger()", False),
    ],
)
def test_every_use_must_be_told_to_msprobe(use: str, told: bool) -> None:
    tree = ast.parse(f"import msprobe_ms as m\n{use}")
    assert (".x" in told_to_msprobe(tree, lambda function: function == "seed_all")) == told
