"""``msprobe run --exec``: every Python below a command is recorded, and none is harmed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from repository import ROOT

TRAIN = """
import sys, torch
import torch.distributed as distributed
distributed.init_process_group("gloo")
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(3, 4)).sum().backward()
    optimizer.step()
distributed.destroy_process_group()
print(sys.argv[1:], torch.initial_seed(), "sitecustomize" in sys.modules)
"""

LOOK = """
import os, sys
ours = sorted(name for name in sys.modules if name.startswith("msprobe_ms.") and "entry_points" not in name)
print("look", ours, "numpy" in sys.modules, "sitecustomize" in sys.modules, [p for p in sys.path if "startup" in p])
"""

SCRIPT = """
set -e
python look.py
PYTHONPATH=$PYTHONPATH:own python look.py
{bare} -c "print('a Python without the package')"
echo redirected > file.txt
torchrun --nproc_per_node 1 --standalone train.py a "b c"
exit 7
"""


def execute(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    return subprocess.run(
        [sys.executable, "-m", "msprobe_ms", "run", *arguments], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_shell_script_and_torchrun(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('mine')")
    (tmp_path / "look.py").write_text(LOOK)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text(SCRIPT.format(bare=f"env -u PYTHONHOME {sys._base_executable}"))  # type: ignore[attr-defined]
    files = sorted(tmp_path.rglob("*"))
    done = execute(tmp_path, "--level", "L0", "--dump_path", "dump", "-stp", "1", "-seed", "7", "--exec", "bash run.sh")
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == [
        "look ['msprobe_ms.recording'] False False []",
        "mine",
        "look ['msprobe_ms.recording'] False True []",
        "a Python without the package",
        "['a', 'b c'] 7 False",
    ]
    for step in (0, 1):
        content = json.loads((tmp_path / "dump" / f"step{step}" / "rank0" / "dump.json").read_bytes())
        assert list(content["data"]["Module.Linear.forward.0"]) == ["output"]
    left = {path.relative_to(tmp_path).parts[0] for path in set(tmp_path.rglob("*")) - set(files)}
    assert left - {"own"} == {"dump", "file.txt"}  # own holds what Python compiled
    assert "nothing is recorded" not in done.stderr  # by torchrun itself, which calls no network


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    idle = execute(tmp_path, "--exec", "exit 3")
    assert idle.returncode == 3 and "nothing was recorded: no Python that 'exit 3' ran called" in idle.stderr
    for arguments, told in (
        (["--exec", "true", "train.py"], "give either a script with its arguments, or --exec"),
        (["-m", "--exec", "true"], "all of the command stands in its quotes"),
        (["--check", "--exec", "true"], "--check judges the calls of one script"),
    ):
        done = execute(tmp_path, *arguments)
        assert done.returncode == 2 and told in done.stderr


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("trap 'exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.1; done", 5),
        ("trap 'exit 6' USR1; kill -USR1 $PPID; while :; do sleep 0.1; done", 6),
        ("kill -HUP $PPID; exec sleep 9", 129),
    ],
)
def test_a_signal_to_it_alone_reaches_the_command(command: str, status: int) -> None:
    run = f"run_command({command!r}, {{}}, seed=None, frameworks=[])"
    code = f"import sys\nfrom msprobe_ms.recording.entry_points.every_python import run_command\nsys.exit({run})"
    # Whoever runs the tests may have had hang-ups ignored.
    default = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)
    ended = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, preexec_fn=default)
    assert (ended.returncode, ended.stderr) == (status, b"")
