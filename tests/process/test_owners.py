"""Processes that want one folder at the same time, die in it, or read what is written just now."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from forked import run_forked
from processes import environment

import msprobe_ms
from msprobe_ms.arrays.torch_file import load_tensor
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.journal import JOURNAL_NAME

#: What all scripts begin with. `passes` trains; `wait` and `tell` are between processes.
NET = """
import os, signal, sys, time, torch
from msprobe_ms.pytorch import PrecisionDebugger
dump_path, flags = sys.argv[1], sys.argv[2]
torch.set_num_threads(1)
def tell(name):
    open(os.path.join(flags, name), "w").close()
def wait(name):
    end = time.time() + 60
    while not os.path.exists(os.path.join(flags, name)):
        assert time.time() < end, name
        time.sleep(0.01)
def passes(count):
    for _ in range(count):
        net(x).sum().backward()
def made(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)), torch.randn(3, 4)
net, x = made()
"""

SAME_RANK = """
child = os.fork()
net, x = made(bool(child))
debugger = PrecisionDebugger(dump_path=dump_path, level="mix", task="tensor")
if child:
    debugger.start(net, rank_id=0); passes(1); tell("first"); wait("second")
    passes(2); debugger.stop(); debugger.step(); tell("over")
    sys.exit(os.waitpid(child, 0)[1])
wait("first"); debugger.start(net, rank_id=0); passes(3); tell("second"); wait("over")
debugger.stop(); debugger.step()
"""

KILLED = """
debugger = PrecisionDebugger(dump_path=dump_path, level="L0")
debugger.start(net, rank_id=0); passes(1); debugger.stop()
debugger.start(net, rank_id=0); passes(1)
os.kill(os.getpid(), signal.SIGKILL)
"""

WHOLE = """
debugger = PrecisionDebugger(dump_path=dump_path, level="L0")
debugger.start(net, rank_id=0); passes(1); debugger.stop(); debugger.step()
"""

#: A worker that lives on, forked in the midst of a step.
LEFT_BEHIND = """
debugger = PrecisionDebugger(dump_path=dump_path, level="L0")
debugger.start(net, rank_id=0); passes(1)
worker = os.fork()
if not worker:
    for number in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    os.setsid()
    tell(f"worker {os.getpid()}")
    time.sleep(60)
    os._exit(0)
wait(f"worker {worker}")
os.kill(os.getpid(), signal.SIGKILL)
"""

READ_MEANWHILE = """
import subprocess
MSPROBE = "import sys; from msprobe_ms.cli import main; sys.exit(main())"
debugger = PrecisionDebugger(dump_path=dump_path, level="L0")
def ask(*command):
    done = subprocess.run([sys.executable, "-c", MSPROBE, *command], capture_output=True, text=True)
    print(done.stdout + done.stderr, flush=True)
    return done.returncode
def look(name):
    print(name, ask("compare", "-tp", dump_path, "-gp", dump_path, "-o", os.path.join(flags, name)),
          ask("recover", dump_path), flush=True)
debugger.start(net, rank_id=0); passes(1)
look("begun")
debugger.stop()
look("stopped")
debugger.start(net, rank_id=0); passes(1)
look("goes on")
debugger.stop(); debugger.step()
look("over")
"""


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    flags = folder / "flags"
    flags.mkdir(parents=True, exist_ok=True)
    return run_forked("-c", NET + script, folder / "dump", flags, framework="torch", env=environment())


def assert_whole(folder: Path, entries: int) -> None:
    """Its tensors are those that its entries tell of, and there are no others."""
    dump = read_dump(folder)
    assert (dump.damage, len(dump.entries)) == ("", entries)
    told = {}
    for body in json.loads(dump.path.read_text())["data"].values():
        for leaf in _leaves(body):
            told[leaf["data_name"]] = leaf["Max"]
    files = {path.name: path for path in (folder / "dump_tensor_data").iterdir()}
    assert files.keys() == told.keys()
    assert all(float(load_tensor(files[name]).max()) == pytest.approx(told[name], rel=1e-6) for name in told)


def _leaves(value: object) -> list[dict]:
    if isinstance(value, dict) and "data_name" in value:
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [leaf for member in members for leaf in _leaves(member)]


def test_two_jobs_with_one_rank(tmp_path: Path) -> None:
    done = run(SAME_RANK, tmp_path)
    assert done.returncode == 0, done.stderr
    step = tmp_path / "dump" / "step0"
    assert done.stderr.count("WARNING") == 1
    assert (
        f"{step}/rank0: another process is writing its dump there; that of this one goes to {step}/beside1_rank0"
        in (done.stderr)
    )
    counts = {len(read_dump(step / name).entries) for name in ("rank0", "beside1_rank0")}
    assert len(counts) == 1 and sorted(os.listdir(step)) == ["beside1_rank0", "rank0"]
    for name in ("rank0", "beside1_rank0"):
        assert_whole(step / name, *counts)
    assert list(find_dumps(tmp_path / "dump")) == ["rank0"]
    result = msprobe_ms.compare(step / "beside1_rank0", step / "rank0")
    assert result.verdict == "divergent"


def test_a_copy_of_a_killed_dump_is_as_incomplete(tmp_path: Path) -> None:
    assert run(KILLED, tmp_path).returncode == -signal.SIGKILL
    assert run(WHOLE, tmp_path / "golden").returncode == 0
    dump, golden = tmp_path / "dump", tmp_path / "golden" / "dump"
    subprocess.run(["cp", "-r", dump, tmp_path / "copied"], check=True)
    shutil.make_archive(str(tmp_path / "packed"), "zip", dump)
    shutil.unpack_archive(tmp_path / "packed.zip", tmp_path / "unpacked")
    for path in (dump, tmp_path / "copied", tmp_path / "unpacked"):
        result = msprobe_ms.compare(path, golden)
        assert result.verdict == "incomplete"
        assert f"its process was killed or could not write them: run msprobe recover {path}" in str(result)


def test_a_worker_that_is_left_behind_does_not_keep_the_folder(tmp_path: Path) -> None:
    assert run(LEFT_BEHIND, tmp_path).returncode == -signal.SIGKILL
    ((_, worker),) = (name.split() for name in os.listdir(tmp_path / "flags"))
    try:
        done = run(WHOLE, tmp_path)
    finally:
        os.kill(int(worker), signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "dump" / "step0")) == ["earlier1_rank0", "rank0"]
    assert (tmp_path / "dump" / "step0" / "earlier1_rank0" / JOURNAL_NAME).exists()


def test_compare_and_recover_while_a_training_writes(tmp_path: Path) -> None:
    """They read what is there, say that it is not all, and change nothing."""
    done = run(READ_MEANWHILE, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    begun, stopped, goes_on, over = _parts(done.stdout, "begun 2 2", "stopped 0 2", "goes on 0 2", "over 0 2")
    assert "a journal but no dump.json: its process is still writing it: wait until that step is over" in begun
    assert "its process is still writing it; what was recorded until now is read" in stopped
    assert "CONSISTENT: " in stopped
    assert "INCOMPLETE: what was compared agrees, but a dump is not whole" in goes_on
    assert "calls are missing: its process is still writing it" in goes_on
    for part in (begun, stopped, goes_on):
        assert "rank0: its process is still writing it, and completes it when the step is over" in part
    assert "still" not in over and "CONSISTENT: " in over
    folder = tmp_path / "dump" / "step0" / "rank0"
    assert read_dump(folder).damage == ""
    assert {"Module.0.Linear.forward.1", "Module.0.Linear.backward.1"} <= read_dump(folder).entries.keys()
    assert sorted(os.listdir(folder)) == ["construct.json", "dump.json", "stack.json"]


def _parts(text: str, *ends: str) -> list[str]:
    found = []
    for end in ends:
        part, there, text = text.partition(f"{end}\n")
        assert there, f"{end!r} in: {part}"
        found.append(part)
    return found
