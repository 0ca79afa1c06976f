"""Tensor files beside each other, in the columns of msit."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.cli.main import main
from msprobe_ms.support.errors import UsageError
from msprobe_ms.tensor_pairs import TITLES, compare_pairs, find_pairs, pair_lines, write_pairs

GOLDEN = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, array in {
        "golden": GOLDEN,
        "equal": GOLDEN,
        "rounded": GOLDEN * np.float32(1 + 2e-7),
        "wrong": GOLDEN + 1,
        "flat": GOLDEN.ravel(),
    }.items():
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path


def test_two_files(files: Path) -> None:
    pairs = find_pairs(files / "wrong.npy", files / "golden.npy")
    assert pairs is not None
    (row,) = compare_pairs(pairs)
    cells = dict(zip(TITLES, row.cells, strict=True))
    assert (cells["golden_shape"], cells["my_dtype"], cells["my_max_value"]) == ("[3, 4]", "float32", 2.0)
    assert cells["mean_absolute_error"] == pytest.approx(1) and cells["cmp_fail_reason"] == "" and row.differs
    verdict, told = pair_lines([row])
    assert verdict == "DIVERGENT: 0 of 1 pairs of files agree" and told.startswith("  wrong.npy: cosine_similarity ")


def test_what_rounding_does_agrees(files: Path) -> None:
    rows = [next(compare_pairs(find_pairs(files / f"{name}.npy", files / "golden.npy") or [])) for name in
            ("equal", "rounded")]  # fmt: skip
    assert not any(row.differs for row in rows)
    assert next(pair_lines(rows)) == "CONSISTENT: 2 of 2 pairs of files agree"


def test_pairs_that_a_metadata_names(files: Path) -> None:
    content = {
        "attention": {"0": ["golden.npy", "equal.npy"], "1": ["golden.npy", str(files / "wrong.npy")]},
        "mlp": {"0": ["golden.npy", "flat.npy"], "1": ["golden.npy", "missing.npy"]},
    }
    (files / "golden_tensor").mkdir()
    for place in (files, files / "golden_tensor"):
        (place / "metadata.json").write_text(json.dumps(content))
    assert find_pairs(files, files / "metadata.json") == find_pairs(files, files)
    rows = list(compare_pairs(find_pairs(files, files) or []))
    assert [(row.pair.data_id, row.pair.token_id, row.differs) for row in rows] == [
        ("attention", "0", False), ("attention", "1", True), ("mlp", "0", True), ("mlp", "1", False),
    ]  # fmt: skip
    assert [row.is_unread for row in rows] == [False, False, False, True]
    assert next(pair_lines(rows)) == "DIVERGENT: 1 of 4 pairs of files agree"
    assert [bool(row.failure) for row in rows] == [False, False, True, True]
    report = write_pairs(rows, files / "out")
    assert report.name.startswith("msit_cmp_report_")
    with open(report, newline="", encoding="utf-8") as file:
        titles, *lines = csv.reader(file)
    assert titles == list(TITLES) and len(lines) == 4 and lines[1][:2] == ["1", "attention"]
    assert lines[2][-1] == "shape differs" and "missing.npy" in lines[3][-1]


def test_a_file_that_cannot_be_read_does_not_differ(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "damaged.npy").write_bytes((files / "golden.npy").read_bytes()[:150])
    command = ["compare", "-gp", f"{files}/golden.npy", "-tp", f"{files}/damaged.npy", "-o", f"{files}/out"]
    assert main([*command, "--exit-code"]) == 2
    assert capsys.readouterr().out.startswith("INCOMPLETE: 0 of 1 pairs of files agree\n  damaged.npy: ")


def test_what_is_neither_is_left_to_others(files: Path) -> None:
    assert find_pairs(files / "dump", files / "dump") is None
    with pytest.raises(UsageError, match=r"golden\.npy is a tensor file, and .* is none"):
        find_pairs(files, files / "golden.npy")
    for content, told in (("[]", "holds a list"), ('{"a": 3}', '"a": 3 is not'), ('{"a": {"0": ["x"]}}', '"a"."0"')):
        (files / "metadata.json").write_text(content)
        with pytest.raises(UsageError, match=told):
            find_pairs(files, files / "metadata.json")
