"""Several processes, one dump folder: ranks, what they send each other, and that nothing is lost or mixed."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import run_forked, run_forked_ranks
from processes import environment, free_port
from thorough import thorough

from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump

SCRIPT = Path(__file__).with_name("two_ranks.py")
WORLD = {"type": "mindspore.ProcessGroup", "group_ranks": [0, 1], "group_id": "77849d8c"}


def msrun(folder: Path, script: Path) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run a script on two ranks, as a user does: how they ended, and what each printed."""
    logs = folder / "log"
    command = [
        str(Path(sys.executable).with_name("msrun")), "--worker_num=2", "--local_worker_num=2", "--join=True",
        f"--master_port={free_port()}", f"--log_dir={logs}", str(script), str(folder),
    ]  # fmt: skip
    ended = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    return ended, [(logs / f"worker_{number}.log").read_text() for number in range(2)]


@pytest.fixture(scope="module", params=[run_forked_ranks, thorough(msrun)], ids=lambda each: each.__name__)
def two_ranks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Any]]]:
    """The dump, and what each rank printed."""
    folder = tmp_path_factory.mktemp("two_ranks")
    result, logs = request.param(folder, SCRIPT)
    assert result.returncode == 0, "\n".join([result.stdout, result.stderr, *logs])
    printed = [json.loads(re.findall(r'^\{"rank".*\}$', log, re.MULTILINE)[0]) for log in logs]
    assert not [log for log in logs if "could not be recorded" in log]
    return folder / "dump", sorted(printed, key=lambda line: int(line["rank"]))


#: Rank 1 crashes, in the script or as it ends, until it has done so twice.
CRASHES = """
import atexit, os, signal, sys
if os.environ["MS_ROLE"] == "MS_WORKER" and os.environ["RANK_ID"] == "1":
    with open(sys.argv[2], "a+") as file:
        file.write("run ")
        file.seek(0)
        if len(file.read().split()) < 3:
            if sys.argv[3] == "script":
                os.kill(os.getpid(), signal.SIGSEGV)
            atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.parametrize(("where", "runs", "status"), [("end", 3, 0), ("script", 1, 1)])
def test_two_ranks_run_again_where_one_crashes_after_its_script(
    where: str, runs: int, status: int, tmp_path: Path
) -> None:
    script, told = tmp_path / "crashes.py", tmp_path / "runs"
    script.write_text(CRASHES)
    result, _ = run_forked_ranks(tmp_path / "folder", script, str(told), where)
    assert (result.returncode, told.read_text().split()) == (status, ["run"] * runs)


def values(dump: Dump, entry: str, state: str) -> list[list[float]]:
    """The tensors of one state of an entry."""
    items = [item for item in dump.entries[entry].in_state(state) if item.kind == "tensor"]
    return [dump.tensors.load(item).ravel().tolist() for item in items]


def test_each_rank_has_a_folder_and_both_are_whole(two_ranks: tuple[Path, list[dict[str, Any]]]) -> None:
    dump_path, _ = two_ranks
    assert {path.name for path in (dump_path / "step0").iterdir()} == {"rank0", "rank1"}
    first, second = (read_dump(dump_path / "step0" / f"rank{rank}") for rank in (0, 1))
    assert list(first.entries) == list(second.entries)
    for name in ("Cell.0.0.Dense.forward.0", "Cell.0.0.Dense.backward.0", "Cell.1.fc.Dense.parameters_grad.0"):
        assert name in first.entries
    assert not any(file.name == "dump_error_info.log" for file in dump_path.rglob("*"))


def test_communication_is_recorded_before_and_after(two_ranks: tuple[Path, list[dict[str, Any]]]) -> None:
    dump_path, printed = two_ranks
    for rank in (0, 1):
        dump = read_dump(dump_path / "step0" / f"rank{rank}")
        # 4 rows of rank + 1, in each of 2 x 3 places; both ranks together 4 + 8.
        assert values(dump, "MintDistributed.all_reduce.0.forward", "input") == [[4.0 * (rank + 1)] * 6]
        assert values(dump, "MintDistributed.all_reduce.0.forward", "output") == [[12.0] * 6]
        assert np.ravel(printed[rank]["sum"]).tolist() == [12.0] * 6
        assert values(dump, "MintDistributed.all_reduce.1.forward", "output") == [[1.0, 1.0]]
        assert values(dump, "MintDistributed.all_gather.0.forward", "output") == [[5.0, 5.0], [6.0, 6.0]]
        assert values(dump, "MintDistributed.all_gather.0.forward", "input") == [[0, 0], [0, 0], [rank + 5] * 2]
        assert values(dump, "MintDistributed.broadcast.0.forward", "input") == [[rank, rank]]
        assert values(dump, "MintDistributed.broadcast.0.forward", "output") == [[1.0, 1.0]]
        data = json.loads((dump_path / "step0" / f"rank{rank}" / "dump.json").read_text())["data"]
        for name in ("all_reduce.0", "all_reduce.1", "all_gather.0", "broadcast.0", "barrier.0"):
            assert data[f"MintDistributed.{name}.forward"]["input_kwargs"]["group"] == WORLD
        assert data["MintDistributed.barrier.0.forward"]["output"] == []


def test_primitives_are_too_in_cells_and_under_grad(two_ranks: tuple[Path, list[dict[str, Any]]]) -> None:
    dump_path, _ = two_ranks
    for rank in (0, 1):
        folder = dump_path / "step0" / f"rank{rank}"
        dump, data = read_dump(folder), json.loads((folder / "dump.json").read_text())["data"]
        given = [values(read_dump(dump_path / "step0" / f"rank{each}"), REDUCE, "input")[0] for each in (0, 1)]
        summed = np.add(*np.array(given, np.float32))
        assert values(dump, REDUCE, "output") == [summed.tolist()]
        assert values(dump, "Primitive.gather.AllGather.0.forward", "input") == [summed.tolist()]
        assert values(dump, "Primitive.gather.AllGather.0.forward", "output") == [[*summed, *summed]]
        # Both ranks' losses ask for the sum.
        assert values(dump, REDUCE.replace("forward", "backward"), "input") == [[1.0] * 8]
        assert values(dump, REDUCE.replace("forward", "backward"), "output") == [[2.0] * 8]
        assert values(dump, "Primitive.Broadcast.Broadcast.0.forward", "input") == [[rank, rank]]
        assert values(dump, "Primitive.Broadcast.Broadcast.0.forward", "output") == [[1.0, 1.0]]
        for name in ("reduce.AllReduce", "gather.AllGather", "Broadcast.Broadcast"):
            assert data[f"Primitive.{name}.0.forward"]["input_kwargs"]["group"] == WORLD


def test_what_the_gradient_reducer_did_is_one_entry(two_ranks: tuple[Path, list[dict[str, Any]]]) -> None:
    dump_path, _ = two_ranks
    name = "Jit.DistributedGradReducer.0.forward"
    given = [values(read_dump(dump_path / "step0" / f"rank{rank}"), name, "input") for rank in (0, 1)]
    for rank in (0, 1):
        folder = dump_path / "step0" / f"rank{rank}"
        reduced = values(read_dump(folder), name, "output")
        assert [len(each) for each in reduced] == [6, 2]
        assert reduced[0] == np.mean([given[0][0], given[1][0]], axis=0).tolist() and given[0][0] != given[1][0]
        assert json.loads((folder / "dump.json").read_text())["data"][name]["input_kwargs"]["group"] == WORLD


REDUCE = "Primitive.reduce.AllReduce.0.forward"


def test_compare_of_the_ranks_says_that_what_they_reduced_agrees(
    two_ranks: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    """Every rank's input of an AllReduce is its own, its output everybody's: the report says so and blames it not."""
    dump_path, _ = two_ranks
    command = [sys.executable, "-m", "msprobe_ms", "compare", "--csv", "-o", str(tmp_path)]
    command += ["-tp", str(dump_path / "step0" / "rank0"), "-gp", str(dump_path / "step0" / "rank1")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    (table,) = tmp_path.glob("compare_result_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = {row["NPU Name"]: row for row in csv.DictReader(file)}
    reduced = (REDUCE, "MintDistributed.all_reduce.0.forward", "MintDistributed.all_reduce.1.forward")
    for name in reduced:
        assert float(rows[f"{name}.input.0"]["MaxAbsErr"]) > 0.5, name
        assert (float(rows[f"{name}.output.0"]["MaxAbsErr"]), rows[f"{name}.output.0"]["Result"]) == (0, "agrees"), name
    (summary,) = tmp_path.glob("compare_summary_*.json")
    origins = json.dumps(json.loads(summary.read_text())["origins"])
    assert "Dense" in origins or "matmul" in origins or "MatMul" in origins
    assert "educe" not in origins and "educe" not in done.stdout


def test_a_rank_that_dies_in_the_step_leaves_what_it_had(tmp_path: Path) -> None:
    result, logs = run_forked_ranks(tmp_path, SCRIPT, "1")
    assert result.returncode != 0
    folder = tmp_path / "dump" / "step0" / "rank1"
    assert (folder / "dump.journal").exists(), logs
    command = [sys.executable, "-m", "msprobe_ms", "recover", str(folder)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = read_dump(folder).entries
    assert {"Cell.0.0.Dense.forward.0", "Cell.0.0.Dense.backward.0", "Cell.0.0.Dense.parameters_grad.0"} <= set(entries)
    assert values(read_dump(folder), "Cell.0.0.Dense.forward.0", "input") == [[2.0] * 12]


def test_only_the_selected_rank_is_recorded(two_ranks: tuple[Path, list[dict[str, Any]]]) -> None:
    dump_path, _ = two_ranks
    assert [path.name for path in (dump_path.with_name("selected") / "step0").iterdir()] == ["rank1"]


#: Eight processes that begin at the same time, each a rank; the framework is imported once for all.
SHARED = """
import os, sys, torch
from msprobe_ms.pytorch import PrecisionDebugger
torch.set_num_threads(1)
dump_path = sys.argv[1]
children = []
for rank in range(8):
    if (child := os.fork()) == 0:
        break
    children.append(child)
else:
    sys.exit(any(os.waitpid(child, 0)[1] for child in children))
net = torch.nn.Sequential(torch.nn.Linear(2, 2))
debugger = PrecisionDebugger(dump_path=dump_path, task="tensor", level="mix")
for step in range(3):
    debugger.start(net, rank_id=rank)
    for _ in range(5):
        net(torch.full((1, 2), 100.0 * step + rank)).sum().backward()
    debugger.stop()
    debugger.step()
"""


def test_eight_processes_share_a_dump_folder(tmp_path: Path) -> None:
    result = run_forked("-c", SHARED, tmp_path / "dump", framework="torch", env=environment())
    assert result.returncode == 0, result.stderr
    assert "moved" not in result.stderr and "WARNING" not in result.stderr
    # One process speaks for all: a line at the start, one a step.
    assert result.stderr.count("recording every step") == 1 and result.stderr.count(" entries, ") == 3
    for step in range(3):
        dumps = find_dumps(tmp_path / "dump" / f"step{step}")
        assert list(dumps) == [f"rank{rank}" for rank in range(8)]
        for rank, path in enumerate(dumps.values()):
            dump = read_dump(path)
            forward = [name for name in dump.entries if re.fullmatch(r"Module\.0\.Linear\.forward\.\d", name)]
            assert len(forward) == 5
            assert all(values(dump, name, "input") == [[100.0 * step + rank] * 2] for name in forward)
            assert not (path.parent / "dump.journal").exists()


#: Both ranks; the exit status is that of either that fails.
GLOO = """
import os, sys, torch, torch.distributed as dist
from msprobe_ms.pytorch import PrecisionDebugger
dump_path, port = sys.argv[1:]
torch.set_num_threads(1)
child = os.fork()
rank = 1 if child else 0
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
debugger = PrecisionDebugger(dump_path=dump_path, task="tensor", level="L1")
debugger.start()
value = torch.full((2,), float(rank + 1))
dist.all_reduce(value, async_op=True).wait()
received = torch.zeros(1)
handle = dist.irecv(received, src=1 - rank)
dist.isend(torch.tensor([rank + 3.0]), dst=1 - rank).wait()
handle.wait()
debugger.stop()
debugger.step()
assert received.item() == (1 - rank) + 3
dist.destroy_process_group()
sys.exit(bool(child and os.waitpid(child, 0)[1]))
"""


def test_pytorch_communication_is_recorded_too(tmp_path: Path) -> None:
    result = run_forked("-c", GLOO, tmp_path / "dump", str(free_port()), framework="torch", env=environment())
    assert result.returncode == 0, result.stderr
    for rank in (0, 1):
        dump = read_dump(tmp_path / "dump" / "step0" / f"rank{rank}")
        assert values(dump, "Distributed.all_reduce.0.forward", "input") == [[rank + 1.0] * 2]
        assert values(dump, "Distributed.all_reduce.0.forward", "output") == [[3.0, 3.0]]
        assert dump.entries["Distributed.irecv.0.forward"].in_state("output") == []
