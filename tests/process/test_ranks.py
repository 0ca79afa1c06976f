"""Whole dumps, every rank and step: what the command prints, writes and exits with."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import run_forked
from processes import environment, free_port
from rank_dumps import call, write_dump, write_run, write_step

from msprobe_ms.accuracy.proof.question import question_of
from msprobe_ms.cli.main import main
from msprobe_ms.comparison.many.trend import Errors, Trends, growing, write_trend
from msprobe_ms.comparison.run import Options


def compare(*arguments: object) -> int:
    return main(["compare", *map(str, arguments)])


def whole(folder: Path) -> dict[str, Any]:
    """The summary over all pairs."""
    (path,) = (each for each in folder.glob("compare_summary_*.json") if each.stem.count("_") == 2)
    return json.loads(path.read_text())


def stems(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name.rpartition("_")[0] for path in folder.glob(pattern))


def test_every_rank_and_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_run(tmp_path / "good", steps=3, ranks=3)
    bad = write_run(tmp_path / "bad", steps=3, ranks=3, faulty=1, from_step=1)
    out = tmp_path / "out"
    assert compare("-tp", bad, "-gp", good, "-o", out, "--csv", "--exit-code") == 1
    pairs = [f"step{step}_rank{rank}" for step in range(3) for rank in range(3)]
    assert stems(out, "compare_result_*.csv") == [f"compare_result_{pair}" for pair in pairs]
    assert stems(out, "compare_summary_step*.json") == [f"compare_summary_{pair}" for pair in pairs]
    content = whole(out)
    assert (content["verdict"], content["compared"], content["failed"]) == ("divergent", 9, 0)
    assert [(line["step"], line["rank"]) for line in content["ranks"]] == [
        (step, f"rank{rank}") for step in range(3) for rank in range(3)
    ]
    assert [line["verdict"] for line in content["ranks"]] == ["consistent"] * 3 + ["divergent"] * 6
    assert content["first_step"] == 1
    origin, reduced = "Cell.fc.Dense.forward.0.output.0", "MintDistributed.all_reduce.1.forward"
    assert (content["first_rank"]["ranks"], content["first_rank"]["origin"]) == (["rank1"], origin)
    assert [line["handed_by"] for line in content["ranks"][3:6]] == [reduced, None, reduced]
    printed = capsys.readouterr().out
    assert "step 0 agrees: look at step 1, the first that diverges; later steps inherit its error" in printed
    assert f"rank1 differs first, by its own computation, at {origin}; rank0 and rank2 received the error" in printed
    assert "step1 rank1: DIVERGENT: the error begins at" in printed
    assert f"step1 rank0: DIVERGENT: it received its error through {reduced}" in printed


@pytest.mark.usefixtures("one_worker")
def test_the_error_of_each_node_over_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_run(tmp_path / "good", steps=4, ranks=1)
    bad = write_run(tmp_path / "bad", steps=4, ranks=1, faulty=0)
    out = tmp_path / "out"
    assert compare("-tp", bad, "-gp", good, "-o", out) == 0
    (path,) = out.glob("compare_trend_*.csv")
    with path.open(newline="") as file:
        rows = {row["NPU Name"]: row for row in csv.DictReader(file)}
    assert list(rows["Cell.fc.Dense.forward.0"]) == ["NPU Name", "step0", "step1", "step2", "step3"]
    assert set(rows["MintDistributed.all_reduce.0.forward"].values()) == {"MintDistributed.all_reduce.0.forward", "0.0"}
    figures = [float(rows["Cell.fc.Dense.forward.0"][f"step{step}"]) for step in range(4)]
    # In tolerances, as each step's own summary has it; the fault grows by its first size with every step.
    summary = json.loads(next(out.glob("compare_summary_step2_rank0_*.json")).read_text())
    metrics = summary["origins"][0]["metrics"]
    assert figures[2] == pytest.approx(metrics["deviation"] / metrics["tolerance"], rel=1e-5)
    assert figures == pytest.approx([figures[0] * factor for factor in (1, 2, 3, 4)], rel=1e-2)
    growing = {each["node"]: each for each in whole(out)["growing"]}
    assert growing["Cell.fc.Dense.forward.0"]["last"] == pytest.approx(np.mean(figures[2:]), rel=1e-5)
    printed = capsys.readouterr().out
    assert "look at step 0, the first that diverges; later steps inherit its error through the weights" in printed
    assert printed.startswith("DIVERGENT: 4 pairs of dumps: ") and len(printed.splitlines()) <= 24
    assert [line for line in printed.splitlines() if line.startswith("step")][1:] == [
        f"step{step} rank0: DIVERGENT, inherits the error of step 0" for step in (1, 2, 3)
    ]
    assert (
        "the error ratio (deviation / tolerance) grows over the steps at: " in printed
        and "Cell.fc.Dense.forward.0 (rank0: " in printed
    )


def test_a_node_of_some_steps_only_leaves_cells_blank(tmp_path: Path) -> None:
    with Trends() as trends:
        for step, (nodes, strains) in enumerate([(["a", "b"], [0.5, np.inf]), (["a", "c"], [0.25, 7.0])]):
            errors = Errors(nodes)
            errors.ratios.extend(strains)
            trends.add("rank0", step, errors)
        (trend,) = trends.tables()
    write_trend(trend, tmp_path / "trend.csv")
    assert (tmp_path / "trend.csv").read_text().splitlines() == [
        "NPU Name,step0,step1",
        "a,0.5,0.25",
        "b,inf,",
        "c,,7.0",
    ]
    assert growing(trend) == []


def test_a_pair_that_cannot_be_read_costs_itself_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = write_run(tmp_path / "good", ranks=3), write_run(tmp_path / "bad", ranks=3)
    shutil.copytree(bad / "step0" / "rank2", bad / "step0" / "rank3")
    (bad / "step0" / "rank1" / "dump.json").write_text("{")
    out = tmp_path / "out"
    assert compare("-tp", bad, "-gp", good, "-o", out, "--csv") == 2
    assert stems(out, "compare_result_*.csv") == ["compare_result_rank0", "compare_result_rank2"]
    content = whole(out)
    assert (content["verdict"], content["compared"], content["failed"]) == ("incomplete", 2, 1)
    assert content["only_in_target"] == ["step0 rank3"] and content["first_step"] is None
    failed = content["ranks"][1]
    assert failed["verdict"] == "failed" and "rank1/dump.json" in failed["problem"]
    printed = capsys.readouterr()
    assert "step0 rank1: NOT COMPARED: " in printed.out and "Traceback" not in printed.out + printed.err
    assert "only in the target, not compared: step0 rank3" in printed.out
    assert "INCOMPLETE: 3 pairs of dumps: 2 consistent, 1 failed" in printed.out


@pytest.mark.usefixtures("one_worker")
def test_a_collective_that_is_wrong_itself(tmp_path: Path) -> None:
    write_step(tmp_path / "good", 3, {})
    write_step(tmp_path / "bad", 3, {}, shared_fault=0.5)
    assert compare("-tp", tmp_path / "bad", "-gp", tmp_path / "good", "-o", tmp_path / "out", "--csv") == 0
    first = whole(tmp_path / "out")["first_rank"]
    assert (first["ranks"], first["collective"]) == ([], "MintDistributed.all_reduce.1.forward")
    assert (
        "rank0, rank1 and rank2 pass the same input to MintDistributed.all_reduce.1.forward as the golden"
        in first["reason"]
    )


@pytest.mark.usefixtures("one_worker")
def test_a_message_that_is_first_seen_where_it_is_used(tmp_path: Path) -> None:
    """A pipeline: what irecv brings has no entry of its own; the difference on arrival is not this rank's."""
    given = np.arange(8, dtype=np.float32)
    for name, factor in (("good", 1.0), ("bad", 1.5)):
        sent = given * np.float32(2 * factor)
        write_dump(tmp_path / name / "rank0", {
            "Cell.front.Dense.forward.0": call(given, sent),
            "Distributed.isend.0.forward": {"input_args": call(sent, sent)["output"], "output": []},
        })  # fmt: skip
        write_dump(tmp_path / name / "rank1", {
            "Distributed.irecv.0.forward": {"input_args": call(given, given)["output"], "output": []},
            "Cell.back.Dense.forward.0": call(sent, sent + np.float32(1)),
        })  # fmt: skip
    assert compare("-tp", tmp_path / "bad", "-gp", tmp_path / "good", "-o", tmp_path / "out", "--csv") == 0
    content = whole(tmp_path / "out")
    assert content["first_rank"]["ranks"] == ["rank0"]
    assert [line["handed_by"] for line in content["ranks"]] == [None, "Distributed.irecv.0.forward"]


@pytest.mark.usefixtures("one_worker")
def test_halves_of_a_step_have_one_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, fault in (("good", 0.0), ("bad", 0.1)):
        write_step(tmp_path / name / "graph" / "step0", 1, {0: fault})
        jitted = call(np.ones(8, np.float32), np.zeros(8, np.float32))
        write_dump(tmp_path / name / "pynative" / "step0" / "rank0", {"Jit.Net.0.forward": jitted})
    arguments = ["-tp", tmp_path / "bad", "-gp", tmp_path / "good", "-o", tmp_path / "out", "--csv", "--exit-code"]
    assert compare(*arguments) == 1
    assert "DIVERGENT: the error begins in forward, at" in capsys.readouterr().out
    assert stems(tmp_path / "out", "*.csv") == ["compare_result"]


@pytest.mark.usefixtures("one_worker")
def test_ranks_and_steps_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", steps=3, ranks=3)
    chosen = ["--rank", "1-2", "--step", "0,2"]
    assert compare("-tp", run, "-gp", run, "-o", tmp_path / "out", "--csv", *chosen, "--exit-code") == 0
    assert stems(tmp_path / "out", "compare_result_*") == [
        f"compare_result_step{step}_rank{rank}" for step in (0, 2) for rank in (1, 2)
    ]
    assert compare("-tp", run, "-gp", run, "-o", tmp_path / "out", "--rank", "9") == 2
    assert "run: no rank and step that was asked for: it has step0 rank0," in capsys.readouterr().err


def test_one_node_of_a_chosen_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = write_run(tmp_path / "good", steps=2), write_run(tmp_path / "bad", steps=2, faulty=1)
    arguments = ["-tp", bad, "-gp", good, "--node", "Cell.fc.Dense.forward.0", "--step", "1", "--exit-code"]
    assert compare(*arguments, "--rank", "1") == 1
    assert compare(*arguments, "--rank", "2") == 0
    assert capsys.readouterr().out.startswith("Cell.fc.Dense.forward.0\n  golden: Cell.fc.Dense.forward.0 (pairing: ")
    assert compare(*arguments) == 2
    assert "--node looks at one rank and step, here are 4; choose one" in capsys.readouterr().err
    compare("-tp", bad, "-gp", good, "-o", tmp_path / "out", "--csv", "-f")
    (command,) = re.findall("details of this call: msprobe (.*)", capsys.readouterr().out)
    assert main([*shlex.split(command), "--exit-code"]) == 1
    assert capsys.readouterr().out.startswith(f"{shlex.split(command)[-1]}\n")


def test_metrics_and_thresholds_travel_to_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for side in ("good", "bad"):
        for rank in range(2):
            folder = tmp_path / side / f"rank{rank}"
            ones = np.full(3, 1.0 + (side == "bad") * 0.25, np.float32)
            write_dump(folder, {"Cell.a.A.forward.0": call(ones, ones)}, task="tensor")
            (folder / "dump_tensor_data").mkdir()
            for place in ("input", "output"):
                np.save(folder / "dump_tensor_data" / f"Cell.a.A.forward.0.{place}.0.npy", ones)
    (tmp_path / "own.py").write_text("def ratio(golden, target):\n    return (target / golden).mean(), ''\n")
    assert compare("-tp", "bad", "-gp", "good", "-o", "out", "--csv", "-alg", "own.py:ratio") == 0
    for rank in range(2):
        (path,) = (tmp_path / "out").glob(f"compare_result_rank{rank}_*.csv")
        with path.open(newline="") as file:
            assert [float(row["ratio"]) for row in csv.DictReader(file)] == [1.25, 1.25]


def test_metrics_that_do_not_load_in_a_worker_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_run(tmp_path / "good", ranks=2)
    file = tmp_path / "mine.py"
    file.write_text(
        "import multiprocessing\n"
        "assert multiprocessing.parent_process() is None, 'only at home'\n"
        "def mine(golden, target):\n    return 1.0, ''\n"
    )
    assert compare("-tp", good, "-gp", good, "-o", tmp_path / "out", "-alg", f"{file}:mine") == 2
    printed = capsys.readouterr().out
    assert printed.count("NOT COMPARED: -alg") == 2
    assert "line 2: AssertionError: only at home" in printed


@pytest.mark.usefixtures("one_worker")
def test_the_old_form_takes_ranks_too(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ranks=2)
    (tmp_path / "compare.json").write_text(json.dumps({"npu_path": str(run), "bench_path": str(run / "step0")}))
    assert compare("-i", tmp_path / "compare.json", "-o", tmp_path / "out") == 0
    assert stems(tmp_path / "out", "*.xlsx") == ["compare_result_rank0-rank0", "compare_result_rank1-rank1"]
    assert stems(tmp_path / "out", "*.txt") == ["advisor_rank0-rank0", "advisor_rank1-rank1"]


def test_many_consistent_pairs_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", ranks=9)
    assert compare("-tp", run, "-gp", run, "-o", tmp_path / "out", "--csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "CONSISTENT: 9 pairs of dumps: 9 consistent"
    assert [line.rpartition("/")[2].rpartition("_")[0] for line in lines[1:]] == ["compare_summary", "compare_report"]


def test_of_many_that_diverge_few_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = write_run(tmp_path / "good", ranks=50), write_run(tmp_path / "bad", ranks=50, faulty=7)
    assert compare("-tp", bad, "-gp", good, "-o", tmp_path / "out", "--csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 40 + 6 and lines[40] == "and 10 more that are not consistent, see the summary"
    assert (
        "rank7 differs first" in lines[42]
        and "rank0, rank1, rank2, rank3, rank4, rank5, rank6, rank8 and 41 more" in lines[42]
    )
    told, _, summary = lines[-1].rpartition(" ")
    assert told == "next, to see which side is wrong and why: msprobe prove"
    question = question_of(Path(summary), None, Options())
    assert question.target.parent.name == "rank7" and question.entry.startswith("Cell.fc.")


#: Two ranks of a tensor-parallel net, once as it should be and once with a wrong weight on rank 1.
GLOO = """
import os, sys, torch, torch.distributed as dist
from msprobe_ms.pytorch import PrecisionDebugger
root, port = sys.argv[1:]
torch.set_num_threads(1)
child = os.fork()
rank = 1 if child else 0
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)

class Parallel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(rank)
        self.norm, self.fc, self.head = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)
        self.scale = 1.0
    def forward(self, x):
        partial = self.fc(self.norm(x)) * self.scale
        dist.all_reduce(partial)
        return self.head(partial)

net = Parallel()
x = torch.linspace(-1, 1, 32).reshape(4, 8)
for name in ("good", "bad"):
    if (name, rank) == ("bad", 1):
        net.scale = 1.25
    debugger = PrecisionDebugger(dump_path=f"{root}/{name}", task="statistics", level="mix")
    debugger.start(net)
    with torch.no_grad():
        net(x)
    debugger.stop()
    debugger.step()
    PrecisionDebugger._instance = None
dist.destroy_process_group()
sys.exit(bool(child and os.waitpid(child, 0)[1]))
"""


@pytest.mark.usefixtures("one_worker")
def test_ranks_that_really_talked_to_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run_forked("-c", GLOO, tmp_path, str(free_port()), framework="torch", env=environment())
    assert done.returncode == 0, done.stderr
    assert compare("-tp", tmp_path / "bad", "-gp", tmp_path / "good", "-o", tmp_path / "out", "--csv") == 0
    content = whole(tmp_path / "out")
    assert content["first_rank"]["ranks"] == ["rank1"], content
    assert [line["handed_by"] for line in content["ranks"]] == ["Distributed.all_reduce.0.forward", None]
    assert "rank0 received the error through Distributed.all_reduce.0.forward" in capsys.readouterr().out
