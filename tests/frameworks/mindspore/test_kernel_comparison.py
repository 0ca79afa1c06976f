"""Two dumps of kernels beside each other, from their raw files: tables, the origin, and what is odd."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from kernel_dumps import CELLS, compiled_dump, lay_out, raw_files

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.kernels.compare import compare_kernels
from msprobe_ms.dump.kernels.index import write_index
from msprobe_ms.dump.kernels.kernel_files import read_kernel_files
from msprobe_ms.dump.kernels.reduce import reduce
from msprobe_ms.support.errors import CompareError, DumpFormatError

BASE = [
    "NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape", "NPU max",
    "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm",
    "Accuracy Reached or Not", "Err_message",
]  # fmt: skip
RATIOS = ["One Thousandth Err Ratio", "Five Thousandths Err Ratio"]
DIFFERENCES = [
    "Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
    "NormRelativeErr",
]  # fmt: skip


def table(path: Path) -> list[dict[str, Any]]:
    head, *rows = openpyxl.load_workbook(path).worksheets[0].iter_rows(values_only=True)
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A training whose second LayerNorm has another epsilon, and the same as it should be."""
    folder = tmp_path_factory.mktemp("compare")
    return compiled_dump(folder / "fault", epsilon=0.5), compiled_dump(folder / "good")


def test_the_old_form(dumps: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = tmp_path / "compare.json"
    paths = {"npu_path": str(dumps[0]), "bench_path": str(dumps[1])}
    configuration.write_text(json.dumps({**paths, "rank_id": [0], "step_id": []}))
    assert main(["-f", "mindspore", "compare", "-i", str(configuration), "-o", str(tmp_path / "out")]) == 0
    first, second = sorted((tmp_path / "out").glob("compare_result_0_*.xlsx"))
    assert first.name.startswith("compare_result_0_0_2") and second.name.startswith("compare_result_0_1_2")
    rows = table(first)
    assert list(rows[0]) == [*BASE, "Cosine", "MaxAbsErr", "MaxRelativeErr", *RATIOS]
    assert len(rows) == len(raw_files(dumps[0], "rank_0/Net/*/0/*"))
    name = "Default_network-WithLossCell__backbone-Net_blocks-SequentialCell_1-Block_norm-LayerNorm_LayerNorm-op0"
    (epsilon,) = [row for row in rows if row["NPU Name"] == f"{name}.0.0.input.5"]
    assert (epsilon["NPU max"], epsilon["Bench max"]) == (0.5, pytest.approx(1e-5))
    (output,) = [row for row in rows if row["NPU Name"] == f"{name}.0.0.output.0"]
    assert output["MaxAbsErr"] > 0 and output["One Thousandth Err Ratio"] < 1
    told = capsys.readouterr().out
    assert "rank 0 step 0:" in told and "rank 0 step 1:" in told
    origin = told[told.index("the error begins at") :].splitlines()
    assert origin[1].strip() == "Kernel.LayerNorm.1.forward.input.5"
    assert "called in Cell.network._backbone.blocks.1.norm.LayerNorm.forward.0" in origin[3]
    assert origin[4].strip().endswith("blocks-SequentialCell/1-Block/norm-LayerNorm/LayerNorm-op0")
    assert "kernel_training.py" in origin[5]


def test_an_index_of_the_same_files_names_cells_as_the_model_does(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    ours = shutil.copytree(dumps[0], tmp_path / "copy")
    write_index(
        ours / "step0" / "rank0", read_kernel_files(raw_files(ours, "rank_0/Net/*/0/*")), task="tensor", cells=CELLS
    )
    (outcome,) = compare_kernels(ours, dumps[1], tmp_path / "out", steps=[0])
    assert outcome.comparison.origins[0].details[0].endswith("called in Cell.blocks.1.norm.LayerNorm.forward.0")
    (ours / "step0" / "rank0" / "dump.json").write_text("{")
    (outcome,) = compare_kernels(ours, dumps[1], tmp_path / "out", steps=[0])
    assert outcome.comparison.origins[0].target == "Kernel.LayerNorm.1.forward.input.5"


def test_the_new_form(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    arguments = ["compare", "-tp", str(dumps[1]), "-gp", str(dumps[1]), "--rank", "0,3", "--step", "1-9"]
    assert main([*arguments, "-o", str(tmp_path), "--exit-code"]) == 0
    (report,) = tmp_path.glob("*.xlsx")
    assert report.name.startswith("compare_result_0_1_")
    rows = table(report)
    assert list(rows[0]) == [*BASE, "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", *RATIOS]
    assert {row["Accuracy Reached or Not"] for row in rows} == {"Yes"} and {row["Err_message"] for row in rows} == {
        None
    }
    assert rows[0]["NPU Name"].count(".") == 3


def test_ranks_and_steps_choose_raw_files_where_there_are_some(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    """Also beside their index; without them the index, which says more, is compared."""
    roots = [shutil.copytree(dump, tmp_path / str(number)) for number, dump in enumerate(dumps)]
    for root in roots:
        write_index(root / "step0" / "rank0", read_kernel_files(raw_files(root, "rank_0/Net/*/0/*")), task="tensor")
    sides = ["compare", "-tp", str(roots[0]), "-gp", str(roots[1]), "--csv", "-o"]
    assert main([*sides, str(tmp_path / "raw"), "--step", "0"]) == 0
    assert [path.name[:19] for path in (tmp_path / "raw").glob("*.csv")] == ["compare_result_0_0_"]
    assert main([*sides, str(tmp_path / "index")]) == 0
    assert [path.name[:16] for path in (tmp_path / "index").glob("*.csv")] == ["compare_result_2"]


def test_roots_of_kernels_alone_need_no_flag(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    sides = ["compare", "-tp", str(dumps[0]), "-gp", str(dumps[1])]
    assert main([*sides, "-o", str(tmp_path), "--csv", "--exit-code"]) == 1
    assert sorted(path.name[:20] for path in tmp_path.glob("*.csv")) == ["compare_result_0_0_2", "compare_result_0_1_2"]


def test_statistics(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    reduced = [shutil.copytree(dump, tmp_path / dump.name) for dump in dumps]
    for root in reduced:
        reduce(read_kernel_files(raw_files(root)))
    outcomes = list(compare_kernels(*reduced, tmp_path, steps=[0]))
    (outcome,) = outcomes
    assert outcome.comparison.mode == "statistics"
    assert outcome.comparison.origins[0].target == "Kernel.LayerNorm.1.forward.input.5"
    rows = table(outcome.files[0])
    assert list(rows[0]) == [*BASE, *DIFFERENCES, "NPU CSV File", "Bench CSV File"]
    assert rows[0]["NPU CSV File"] == str(reduced[0] / "rank_0/Net/0/0/statistic.csv")
    assert len(rows) == len(raw_files(dumps[0], "rank_0/Net/*/0/*"))
    with pytest.raises(CompareError, match=r"rank 0 step 0: .*holds tensors and .* holds statistics; dump both in one"):
        list(compare_kernels(dumps[0], reduced[1], tmp_path, steps=[0]))


def two(tmp_path: Path, ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> tuple[Path, Path]:
    for name, tensors in (("ours", ours), ("theirs", theirs)):
        lay_out(tmp_path / name / "rank_0/Net/0/0", tensors)
    return tmp_path / "ours", tmp_path / "theirs"


def run(sides: tuple[Path, Path], tmp_path: Path) -> list[dict[str, Any]]:
    (outcome,) = compare_kernels(*sides, tmp_path / "out")
    return table(outcome.files[0])


def test_every_row_of_both_sides_is_told(tmp_path: Path) -> None:
    ones, twos = np.ones(4, np.float32), np.full(4, 2, np.float32)
    name = "Add.Default_Add-op{}.{}".format
    ours = {name(0, "input.0"): ones, name(0, "input.1"): ones, name(0, "output.0"): ones, name(1, "output.0"): ones}
    theirs = {
        name(0, "input.0"): twos, name(0, "input.1"): ones.astype(np.float16), name(0, "output.0"): ones[:2],
        name(2, "output.0"): ones,
    }  # fmt: skip
    rows = {row["NPU Name"] or row["Bench Name"]: row for row in run(two(tmp_path, ours, theirs), tmp_path)}
    found = {
        key.removeprefix("Default_Add-"): (row["Accuracy Reached or Not"], row["Err_message"])
        for key, row in rows.items()
    }
    assert found == {
        "op0.0.input.0": ("Yes", None),
        "op0.0.input.1": (None, "dtype differs: Float32 against Float16"),
        "op0.0.output.0": (None, "shape differs: [4] against [2]"),
        "op1.0.output.0": (None, "No bench data matched."),
        "op2.0.output.0": (None, "No NPU data matched."),
    }
    assert rows["Default_Add-op0.0.input.0"]["MaxAbsErr"] == 1.0


@pytest.mark.parametrize(
    ("ours", "theirs", "result"),
    [
        ([1, 2, 3], [1, 2, 3.0005], "Yes"),
        ([1, -2, 3], [1, 2, 3], "No"),
        ([1, 2, 3], [1, 2, 5], "No"),
        ([1, np.nan, 3], [1, 2, 3], "No"),
        ([1, np.nan, 3], [1, np.nan, 3], "Yes"),
    ],
)
def test_the_accuracy(ours: list[float], theirs: list[float], result: str, tmp_path: Path) -> None:
    name = "Add.Default_Add-op0.output.0"
    sides = two(tmp_path, {name: np.array(ours, np.float32)}, {name: np.array(theirs, np.float32)})
    assert [row["Accuracy Reached or Not"] for row in run(sides, tmp_path)] == [result]


def test_kernels_that_run_again_pair_by_time(tmp_path: Path) -> None:
    name = "Add.Default_Add-op0.output.0"
    for side in ("ours", "theirs"):
        for start, value in ((2000, 2.0), (1000, 1.0), (3000, 3.0)):
            lay_out(tmp_path / side / "rank_0/Net/0/0", {name: np.full(3, value, np.float32)}, start + (side == "ours"))
    rows = run((tmp_path / "ours", tmp_path / "theirs"), tmp_path)
    assert [(row["NPU max"], row["Bench max"]) for row in rows] == [(1, 1), (2, 2), (3, 3)]


def test_a_damaged_file_costs_its_own_row(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    ours = shutil.copytree(dumps[1], tmp_path / "copy")
    cut, broken = raw_files(ours, "rank_0/Net/0/0/MatMul.Default*fc1*")[:2]
    cut.write_bytes(cut.read_bytes()[:-1])
    broken.write_bytes(b"PK")
    (outcome,) = compare_kernels(ours, dumps[1], tmp_path / "out", steps=[0])
    rows = table(outcome.files[0])
    assert len(rows) == len(raw_files(dumps[1], "rank_0/Net/0/0/*"))
    messages = [row["Err_message"] for row in rows if row["Err_message"]]
    assert (
        len(messages) == 2
        and str(cut) in "".join(messages)
        and f"{broken}: the .npy header is damaged" in "".join(messages)
    )
    assert outcome.comparison.verdict == "incomplete"


def test_ge_layouts_and_long_names(tmp_path: Path) -> None:
    for side in ("ours", "theirs"):
        folder = tmp_path / side / "20260101" / "3" / "Net" / "1" / "7"
        folder.mkdir(parents=True)
        np.save(folder / "1.npy", np.ones((2, 2), np.float16))
        np.save(folder / "MatMul.Default_fc-Dense_MatMul-op1.12.4.99.output.0.ND.npy", np.ones(3, np.uint16).view("V2"))
        (folder / "mapping.csv").write_text("1,MatMul.Default_fc-Dense_MatMul-op1.12.4.99.input.0.ND\n")
    (outcome,) = compare_kernels(tmp_path / "ours", tmp_path / "theirs", tmp_path / "out", ranks=[3], steps=[7])
    rows = table(outcome.files[0])
    assert outcome.files[0].name.startswith("compare_result_3_7_")
    assert [row["NPU Name"] for row in rows] == [
        f"Default_fc-Dense_MatMul-op1.12.{place}" for place in ("input.0", "output.0")
    ]
    assert [row["NPU Dtype"] for row in rows] == ["Float16", "BFloat16"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-tp {ours} -gp {ours} --rank 9", "no rank and step asked for is in both: {ours} has rank 0 step 0"),
        ("-tp nowhere -gp {ours} --step 0", "nowhere: no such folder; accepted is a folder with kernel files"),
        ("-tp {empty} -gp {ours} --step 0", "{empty}: no kernel files in it; accepted is a folder with"),
        ("-tp {ours} -gp {ours} --step 0 -lm a.yaml", "compare: -lm: does not apply to raw kernel"),
        ("-i {json} --step 0", "compare: with -i ranks and steps stand in the file, as rank_id and step_id"),
        ("-i {json}", 'rank_id: "0" is not accepted; expected a list of numbers, [] for all'),
    ],
)
def test_mistakes_are_one_line(
    arguments: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(tmp_path / "ours" / "rank_0/Net/0/0", {"Add.Default_Add-op0.output.0": np.ones(2, np.float32)})
    (tmp_path / "empty").mkdir()
    (tmp_path / "c.json").write_text('{"npu_path": "a", "bench_path": "b", "rank_id": "0"}')
    places = {"ours": tmp_path / "ours", "empty": tmp_path / "empty", "json": tmp_path / "c.json"}
    assert main(["compare", *arguments.format(**places).split(), "-o", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert message.format(**places) in told and told.count("\n") == 1


def test_ranks_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "-tp", "a", "-gp", "b", "--rank", "0,x"])
    assert "'x' is no number; accepted are 0,3 or 0-3" in capsys.readouterr().err


def test_a_dump_of_calls_is_no_dump_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "step0" / "rank0" / "dump_tensor_data").mkdir(parents=True)
    (tmp_path / "step0" / "rank0" / "dump_tensor_data" / "Cell.fc.Dense.forward.0.output.0.npy").touch()
    with pytest.raises(DumpFormatError, match="no kernel files in it"):
        list(compare_kernels(tmp_path, tmp_path, tmp_path / "out"))
