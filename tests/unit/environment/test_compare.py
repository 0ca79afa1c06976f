"""Two environments: what differs and changes numbers is an error, what may is a warning, and secrets are not kept."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from rank_dumps import call, leaf, write_dump

from msprobe_ms.cli import main
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.environment.collect import GAPS, SECTIONS, Collection, collect, read_collection, write_collection
from msprobe_ms.environment.compare import ConfigRow, Status, compare_collections
from msprobe_ms.environment.report import environment_lines, write_environments
from msprobe_ms.support.errors import DumpFormatError, UsageError

SCRIPT = """
export HCCL_DETERMINISTIC=True  # a comment
LR=1e-4
torchrun --nproc_per_node 8 pretrain.py \\
    --lr ${LR} --micro-batch-size 2 --seed=1234 \\
    --bf16 --log-interval 10 --save "/data/out dir"
"""


def collected(tmp_path: Path, text: str = SCRIPT, variables: dict[str, str] | None = None, **files: str) -> Collection:
    (tmp_path / "train.sh").write_text(text)
    for name, content in files.items():
        (tmp_path / f"{name}.yaml").write_text(content)
    given = [tmp_path / "train.sh", *(tmp_path / f"{name}.yaml" for name in files)]
    return collect(given, None, variables or {})


def found(rows: list[ConfigRow], status: Status) -> dict[str, tuple[Any, Any]]:
    return {f"{row.section} {row.name}": (row.target, row.golden) for row in rows if row.status is status}


def test_settings_of_scripts_and_files_are_collected(tmp_path: Path) -> None:
    yaml = "model: {hidden_size: 64, layers: [1, 2]}\noptimizer:\n  lr: 1.0e-4\nshuffle: true\n"
    collection = collected(tmp_path, model=yaml)
    assert collection["hyperparameters"] == {
        "LR": 1e-4, "nproc_per_node": 8, "lr": 1e-4, "micro-batch-size": 2, "bf16": True, "log-interval": 10,
        "save": "/data/out dir", "model.hidden_size": 64, "model.layers.0": 1, "model.layers.1": 2,
        "optimizer.lr": 1e-4,
    }  # fmt: skip
    assert collection["random"] == {"HCCL_DETERMINISTIC": "True", "seed": 1234, "shuffle": "true"}
    assert collection["packages"]["numpy"] == np.__version__


def test_weights_without_counterparts_are_not_compared_rather_than_different() -> None:
    def side(*names: str) -> Collection:
        return {section: {} for section in SECTIONS} | {"weights": {name: {"norm": 1.0} for name in names}}

    (said, names_differ) = environment_lines(compare_collections(side("a", "b"), side("c")))
    assert said == (
        "MOSTLY EQUAL: settings compared: 0; errors (they differ and change results): 0; warnings (they differ and may "
        "change results): 0; errors by section: packages none found, environment none found, hyperparameters none "
        "found, random none found, dataset not collected, 3 weights not compared"
    )
    assert names_differ.startswith("  names that differ between")
    said, warning = environment_lines(compare_collections(side("a", "b"), side("a")))
    assert "; warnings (they differ and may change results): 1; " in said
    assert warning == "  warning: weights b: only in the target"


def test_equal_environments_are_equal_however_they_are_spelled(tmp_path: Path) -> None:
    one = collected(tmp_path, "run --lr 0.0001 --micro-batch-size 2 --bf16 --seed 1 --output_dir a")
    other = collected(tmp_path, "run --learning-rate=1e-4 --batch_size 2 --bf16 True --seed 1 --output_dir b")
    assert {row.status for row in compare_collections(one, other)} == {Status.PASS}


def test_what_changes_numbers_is_an_error_and_what_may_a_warning(tmp_path: Path) -> None:
    target = collected(
        tmp_path, "run --lr 1e-3 --seed 1 --warmup 5", {"HCCL_DETERMINISTIC": "true", "OMP_NUM_THREADS": "1"}
    )
    golden = collected(tmp_path, "run --lr 1e-4 --seed 2", {"OMP_NUM_THREADS": "8"})
    golden["packages"] |= {"numpy": "0.1", "pytest": "0.1"}
    rows = compare_collections(target, golden)
    assert found(rows, Status.ERROR) == {
        "packages numpy": (np.__version__, "0.1"),
        "environment HCCL_DETERMINISTIC": ("true", None),
        "hyperparameters learning_rate": (1e-3, 1e-4),
        "random seed": (1, 2),
    }
    assert set(found(rows, Status.WARNING)) == {
        "packages pytest", "environment OMP_NUM_THREADS", "hyperparameters warmup",
    }  # fmt: skip


@pytest.mark.parametrize("value", ["inf", "nan", str(1 << 60)])
def test_numbers_that_no_cell_holds_are_written_as_texts(tmp_path: Path, value: str) -> None:
    (tmp_path / "train.sh").write_text(f"run --clip {value} --lr 0.1")
    collection = collect([tmp_path / "train.sh"], None, {})
    rows = compare_collections(collection, collection)
    _, table = write_environments(rows, tmp_path / "out", (tmp_path / "a.zip", tmp_path / "b.zip"))
    sheet = openpyxl.load_workbook(table).worksheets[0]
    written = {row[1].value: row[2].value for row in sheet.iter_rows(min_row=2)}
    assert (written["clip_grad"], written["learning_rate"]) == (value, 0.1)


def test_versions_are_no_numbers() -> None:
    sides = [{section: {} for section in SECTIONS} | {"packages": {"numpy": version}} for version in ("2.10", "2.1")]
    assert found(compare_collections(*sides), Status.ERROR) == {"packages numpy": ("2.10", "2.1")}


def test_values_that_may_be_secret_and_variables_of_others_are_not_kept(tmp_path: Path) -> None:
    variables = {"MS_API_KEY": "abc", "HOME": "/root", "AWS_SECRET": "x", "ASCEND_LAUNCH_BLOCKING": "1"}
    assert collected(tmp_path, "", variables)["environment"] == {
        "ASCEND_LAUNCH_BLOCKING": "1",
        "MS_API_KEY": "(not kept)",
    }


def dump(folder: Path, batch: np.ndarray, weight: np.ndarray, name: str = "weight") -> Path:
    for step in range(2):
        data = {"Cell.fc.Dense.forward.0": {**call(batch + step, batch), "parameters": {name: leaf(weight)}}}
        write_dump(folder / f"step{step}" / "rank0", data)
    return folder


def test_data_and_weights_are_those_of_dumps(tmp_path: Path) -> None:
    batch, weight = np.arange(8, dtype=np.float32), np.linspace(-1, 1, 6, dtype=np.float32)
    one = collect([], dump(tmp_path / "a", batch, weight), {})
    assert set(one["dataset"]) == {"step 0: input 0", "step 1: input 0"} and set(one["weights"]) == {"fc.weight"}
    same = collect([], dump(tmp_path / "b", batch, weight * np.float32(1 + 1e-7), "weight"), {})
    assert not found(compare_collections(one, same), Status.ERROR)
    renamed = one | {"weights": {"linear.weight": one["weights"]["fc.weight"]}}
    assert list(environment_lines(compare_collections(one, renamed)))[-1].startswith("  names that differ between")
    mappings = Mappings(data={"fc.weight": "linear.weight"})
    assert not found(compare_collections(one, renamed, mappings), Status.WARNING)
    other = collect([], dump(tmp_path / "c", batch[::-1] * 2, weight * np.float32(1.01)), {})
    assert set(found(compare_collections(one, other), Status.ERROR)) == {
        "dataset step 0: input 0", "dataset step 1: input 0", "weights fc.weight",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "note"),
    [
        ({"norm": 1.0}, {"norm": float("inf")}, "norm 1 and inf"),
        ({"norm": float("nan")}, {"norm": float("nan")}, ""),
        ({"md5": "1"}, {"md5": "2"}, "checksums differ"),
        ({"md5": "1", "norm": 1.0}, {"md5": "2", "norm": 1.0}, ""),
        ({"shape": [4, 1, 2], "norm": 1.0}, {"shape": [4, 2], "norm": 1.0}, ""),
        ({"shape": [4, 2], "norm": 1.0}, {"shape": [2, 4], "norm": 1.0}, "shapes [4, 2] and [2, 4]"),
    ],
)
def test_figures_that_differ_are_told(one: dict[str, Any], other: dict[str, Any], note: str) -> None:
    sides = [{section: {} for section in SECTIONS} | {"weights": {"a.weight": side}} for side in (one, other)]
    (row,) = compare_collections(*sides)
    assert row.note == note


@pytest.mark.parametrize("name", ["a.zip", "a.json"])
def test_a_collection_is_read_back(tmp_path: Path, name: str) -> None:
    collection = collected(tmp_path, variables={"OMP_NUM_THREADS": "1"})
    write_collection(collection, tmp_path / name)
    assert read_collection(tmp_path / name) == json.loads(json.dumps(collection))
    assert set(collection) == {*SECTIONS, GAPS} and collection[GAPS]["scripts"] == ["pretrain.py"]
    older = {section: collection[section] for section in SECTIONS}
    write_collection(older, tmp_path / name)
    assert read_collection(tmp_path / name) == json.loads(json.dumps(older)) | {GAPS: {}}


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"[]", b"[" * 100_000, b"{}", b'{"packages": []}', b"\xff\xfe"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(DumpFormatError, match=r"a\.zip: is no collection of config_check"):
        read_collection(tmp_path / "a.zip")


def test_launch_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: [")
    for name in ("a.yaml", "absent.sh"):
        with pytest.raises(UsageError, match=name):
            collect([tmp_path / name], None, {})


def test_the_command_collects_compares_and_tells_by_its_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, lr in (("target", "1e-3"), ("golden", "1e-4")):
        (tmp_path / "train.sh").write_text(f"run --lr {lr}")
        assert main(["config_check", "-d", str(tmp_path / "train.sh"), "-o", str(tmp_path / f"{side}.zip")]) == 0
    capsys.readouterr()
    sides = [str(tmp_path / f"{side}.zip") for side in ("target", "golden")]
    assert main(["config_check", "-c", *sides, "-o", str(tmp_path / "out"), "--csv", "--exit-code"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert (
        shown[0].startswith("DIFFERENT: settings compared: ")
        and "; errors (they differ and change results): 1; " in shown[0]
        and "dataset not collected" in shown[0]
    )
    assert shown[1] == "  error: hyperparameters learning_rate: 0.001, golden 0.0001"
    (page,), (table,) = ((tmp_path / "out").glob(f"config_check_*.{kind}") for kind in ("html", "csv"))
    assert shown[-2:] == [f"report: {page}", f"table: {table}"]
    assert f"<h1>{shown[0]}</h1>" in page.read_text("utf-8")
    with table.open(newline="", encoding="utf-8-sig") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["name"] for row in rows if row["result"] == "error"] == ["learning_rate"]
    assert main(["config_check", "-c", sides[0], sides[0], "-o", str(tmp_path / "out"), "--exit-code"]) == 0


def test_a_comparison_repeats_what_was_not_collected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, shell = tmp_path / "train.py", tmp_path / "train.sh"
    script.write_text('parser.add_argument("--lr", default=0.1)')
    shell.write_text("python train.py --lr 0.1")
    for side, given in (("target", script), ("golden", shell)):
        assert main(["config_check", "-d", str(given), "-o", str(tmp_path / f"{side}.zip")]) == 0
    capsys.readouterr()
    sides = [str(tmp_path / f"{side}.zip") for side in ("target", "golden")]
    assert main(["config_check", "-c", *sides, "-o", str(tmp_path / "out"), "--csv"]) == 0
    verdict, first, second, *_ = capsys.readouterr().out.splitlines()
    assert verdict.startswith("EQUAL as far as known: settings compared: ")
    assert first == (
        f"  not compared: options that were given when {script} (target) started; only their defaults are known"
    )
    assert second == (
        "  not compared: defaults and settings in train.py (golden); only the shell script that starts it is known"
    )
    (page,) = (tmp_path / "out").glob("config_check_*.html")
    assert "<h1>EQUAL as far as known" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "others", "status"),
    [
        ("--dump a --dump_path b --keep ./x", "--dump c --dump_path d --keep /y", Status.PASS),
        ("--run_name a", "--run_name b", Status.PASS),
        ("--model_name a/b", "--model_name a/c", Status.ERROR),
    ],
)
def test_places_of_files_change_no_result(tmp_path: Path, options: str, others: str, status: Status) -> None:
    one, other = (collected(tmp_path, f"run {each}") for each in (options, others))
    rows = [row for row in compare_collections(one, other) if row.section == "hyperparameters"]
    assert {row.status for row in rows} == {status}


@pytest.mark.parametrize(
    ("one", "other", "found_errors"),
    [
        ("learning_rate=args.lr", "lr=0.5", {"optimizer.learning_rate": (0.1, 0.5)}),
        ("learning_rate=args.lr", "lr=0.1", {}),
        ("learning_rate=args.lr", "lr=0.5), Adam(y, lr=0.5", {}),
    ],
)
def test_an_option_meets_what_a_call_is_given_where_each_side_has_one_of_them(
    tmp_path: Path, one: str, other: str, found_errors: dict[str, tuple[float, float]]
) -> None:
    (tmp_path / "train.sh").write_text("python one.py --lr 0.1")
    (tmp_path / "one.py").write_text(f'parser.add_argument("--lr", default=1.0)\nnn.SGD(x, {one})')
    (tmp_path / "other.py").write_text(f"SGD(x, {other})")
    target = collect([tmp_path / "train.sh", tmp_path / "one.py"], None, {})
    golden = collect([tmp_path / "other.py"], None, {})
    for sides in ((target, golden), (golden, target)):
        rows = [row for row in compare_collections(*sides) if row.section == "hyperparameters"]
        values = {name: each if sides[0] is target else each[::-1] for name, each in found_errors.items()}
        assert {row.name: (row.target, row.golden) for row in rows if row.status is Status.ERROR} == values
        assert len(rows) == (1 if "Adam" not in other else 3)


def test_a_framework_is_told_another_mode_than_a_script() -> None:
    sides = [
        {section: {} for section in SECTIONS} | {"hyperparameters": {name: value}}
        for name, value in (("context.mode", "GRAPH_MODE"), ("mode", "train"))
    ]
    assert {row.status for row in compare_collections(*sides)} == {Status.WARNING}
