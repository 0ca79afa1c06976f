"""Raw kernel files from anywhere become dumps: `msprobe index`, and `msprobe recover` of a run that was killed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kernel_dumps import compiled_dump, lay_out, raw_files

from msprobe_ms.cli.main import main
from msprobe_ms.dump.kernels.index import write_index
from msprobe_ms.dump.kernels.kernel_files import read_kernel_files
from msprobe_ms.dump.kernels.reduce import reduce
from msprobe_ms.dump.reading.reader import read_dump

ADD = {f"Add.Default_a-A_Add-op0.{place}": np.ones(2, np.float32) for place in ("input.0", "output.0")}


def iterations(root: Path, *numbers: int, graph: int = 0) -> Path:
    for number in numbers:
        lay_out(root / f"rank_0/Net/{graph}/{number}", ADD, 1000 * (number + 1) + 100 * graph)
    return root


def files(root: Path, *numbers: int) -> list[Path]:
    return [path for number in numbers for path in raw_files(root, f"rank_0/Net/*/{number}/*")]


def names(folder: Path) -> list[str]:
    data = json.loads((folder / "dump.json").read_text())["data"]
    return [leaf["data_name"] for body in data.values() for leaf in (*body["input_args"], *body["output"])]


def test_a_real_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = compiled_dump(tmp_path / "dump")
    assert main(["index", str(root), "-o", str(tmp_path / "index")]) == 0
    told = capsys.readouterr().out
    for step in (0, 1):
        folder = tmp_path / "index" / f"step{step}" / "rank0"
        dump = read_dump(folder)
        assert f"{folder}: {len(dump.entries)} entries" in told
        tensors = [item for entry in dump.entries.values() for item in entry.items if item.kind == "tensor"]
        assert len(tensors) == len(files(root, step)) and dump.tensors.load(tensors[0]).size
    # The dump itself is as it was.
    assert not list(root.glob("step*"))


def test_ranks_and_graphs(tmp_path: Path) -> None:
    for rank in (0, 11):
        lay_out(tmp_path / f"rank_{rank}/Net/0/3", ADD)
    lay_out(tmp_path / "rank_11/Net/2/3", ADD, 500)
    assert main(["index", str(tmp_path)]) == 0
    assert names(tmp_path / "step3/rank0") == [f"0/3/{path.name}" for path in raw_files(tmp_path, "rank_0/Net/0/3/*")]
    assert [name[:3] for name in names(tmp_path / "step3/rank11")] == ["2/3"] * 2 + ["0/3"] * 2


def test_an_index_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = iterations(tmp_path, 0, 1)
    (root / "step0" / "rank0").mkdir(parents=True)
    (root / "step0" / "rank0" / "dump.json").write_text("mine")
    assert main(["index", str(root)]) == 2
    assert "step0/rank0: holds a dump already; give another folder with -o" in capsys.readouterr().out
    assert (root / "step0/rank0/dump.json").read_text() == "mine" and names(root / "step1/rank0")


def test_a_process_that_is_alone_has_its_own_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = iterations(tmp_path, 0, 1)
    write_index(root / "step0/proc77", read_kernel_files(files(root, 0)), task="tensor")
    assert main(["recover", str(root)]) == 0
    assert [path.name for path in root.glob("step*/*")] == ["proc77"] * 2 and names(root / "step1/proc77")
    assert main(["index", str(root)]) == 2
    said = capsys.readouterr().out
    assert all(f"step{step}/proc77: holds a dump already" in said for step in (0, 1))


def test_nothing_to_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", str(tmp_path)]) == 2
    assert "no kernel files in it; accepted is a folder with kernel files" in capsys.readouterr().err


def test_a_killed_run_whose_steps_are_iterations(tmp_path: Path) -> None:
    root = iterations(tmp_path, 0, 1, 2)
    write_index(root / "step0/rank0", read_kernel_files(files(root, 0)), task="tensor")
    assert main(["recover", str(root)]) == 0
    assert sorted(path.name for path in root.glob("step*")) == ["step0", "step1", "step2"]
    assert names(root / "step2/rank0") == [path.relative_to(root / "rank_0/Net").as_posix() for path in files(root, 2)]
    # Everything is told of: there is nothing more to recover.
    assert main(["recover", str(root)]) == 2


def test_a_killed_run_of_several_graphs_a_step(tmp_path: Path) -> None:
    root = iterations(iterations(tmp_path, 0, 2, 4), 1, 3, graph=1)
    for step, numbers in enumerate([(0, 1), (2, 3)]):
        write_index(root / f"step{step}/rank0", read_kernel_files(files(root, *numbers)), task="tensor")
    assert main(["recover", str(root)]) == 0
    assert sorted(path.name for path in root.glob("step*")) == ["step0", "step1", "step2"]
    assert {name[:3] for name in names(root / "step2/rank0")} == {"0/4"}


def test_a_killed_run_of_statistics(tmp_path: Path) -> None:
    root = iterations(tmp_path, 0)
    first = read_kernel_files(files(root, 0))
    write_index(root / "step0/rank0", first, task="statistics")
    reduce(first)
    assert main(["recover", str(root)]) == 2
    iterations(root, 1)
    assert main(["recover", str(root)]) == 0
    assert len(json.loads((root / "step1/rank0/dump.json").read_text())["data"]) == 1
    assert sorted(path.name for path in root.glob("step*")) == ["step0", "step1"]


def test_killed_between_the_index_and_the_table(tmp_path: Path) -> None:
    """The tensors are still there, but the index tells of them."""
    root = iterations(tmp_path, 0)
    write_index(root / "step0/rank0", read_kernel_files(files(root, 0)), task="statistics")
    assert main(["recover", str(root)]) == 2
    assert [path.name for path in root.glob("step*")] == ["step0"]


def test_files_that_were_cut_off_are_recovered_with_the_rest(tmp_path: Path) -> None:
    root = iterations(tmp_path, 0)
    last = files(root, 0)[-1]
    last.write_bytes(last.read_bytes()[:40])
    assert main(["recover", str(root)]) == 0
    (entry,) = json.loads((root / "step0/rank0/dump.json").read_text())["data"].values()
    assert entry["input_args"][0]["Max"] == 1.0 and entry["output"][0]["Max"] is None
