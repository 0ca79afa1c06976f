"""Tensors of kernels reduced to the framework's table."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from kernel_dumps import compiled_dump, lay_out, raw_files

from msprobe_ms.dump.kernels.index import write_index
from msprobe_ms.dump.kernels.kernel_files import read_kernel_files
from msprobe_ms.dump.kernels.reduce import reduce
from msprobe_ms.support.errors import UsageError

ALL = (
    "max", "min", "mean", "l2norm", "count", "negative zero count", "positive zero count", "zero count", "nan count",
    "negative inf count", "positive inf count", "hash",
)  # fmt: skip


def rows(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_real_dump_is_reduced_and_reads_as_before(tmp_path: Path) -> None:
    root = compiled_dump(tmp_path / "dump", steps=1)
    paths = raw_files(root)
    files = read_kernel_files(paths)
    write_index(tmp_path / "tensors", files, task="statistics")
    assert reduce(files) == [root / "rank_0/Net/0/0/statistic.csv"]
    assert raw_files(root) == [root / "rank_0/Net/0/0/statistic.csv"]
    table = read_kernel_files(raw_files(root))
    assert len(table) == len(paths)
    write_index(tmp_path / "table", table, task="statistics")
    ours, theirs = (json.loads((tmp_path / name / "dump.json").read_text()) for name in ("tensors", "table"))
    assert ours == theirs


def test_columns_and_figures(tmp_path: Path) -> None:
    array = np.array([[1.5, -2, 0, np.inf], [np.nan, 0, 7, -np.inf]], np.float32)
    plain = np.arange(-2, 3, dtype=np.int32)
    lay_out(tmp_path, {"Add.Default_Add-op0.input.0": array, "Add.Default_Add-op0.output.0": plain})
    (table,) = reduce(read_kernel_files(tmp_path.iterdir()), ALL)
    with table.open() as file:
        assert next(csv.reader(file)) == [
            "Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape",
            "Max Value", "Min Value", "Avg Value", "L2Norm Value", "Count", "Negative Zero Count",
            "Positive Zero Count", "Zero Count", "NaN Count", "Negative Inf Count", "Positive Inf Count", "MD5",
        ]  # fmt: skip
    odd, row = rows(table)
    assert [odd[key] for key in ("Count", "Negative Zero Count", "Positive Zero Count", "Zero Count")] == [
        "8",
        "2",
        "3",
        "2",
    ]
    assert [odd[key] for key in ("NaN Count", "Negative Inf Count", "Positive Inf Count", "Max Value")] == [
        "1",
        "1",
        "1",
        "nan",
    ]
    assert [row[key] for key in ("Data Size", "Data Type", "Shape")] == ["20", "Int32", "(5)"]
    assert [float(row[key]) for key in ("Max Value", "Min Value", "Avg Value")] == [2, -2, 0]
    assert float(row["L2Norm Value"]) == pytest.approx(np.linalg.norm(plain))
    assert row["MD5"] == hashlib.md5(plain.tobytes()).hexdigest()


def test_a_table_keeps_the_rows_it_has(tmp_path: Path) -> None:
    one = {"Add.Default_Add-op0.output.0": np.ones(2, np.float32)}
    lay_out(tmp_path, one, 1000)
    (table,) = reduce(read_kernel_files(tmp_path.glob("*.npy")), ["max"])
    lay_out(tmp_path, one, 2000)
    reduce(read_kernel_files(tmp_path.iterdir()), ["max", "count"])
    assert [(row["Timestamp"], row["Max Value"], row["Count"]) for row in rows(table)] == [
        ("1000", "1.0", ""),
        ("2000", "1.0", "2"),
    ]


def test_what_cannot_be_read_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lay_out(tmp_path, {f"Add.Default_Add-op0.{slot}": np.ones(2, np.float32) for slot in ("input.0", "output.0")})
    damaged = next(tmp_path.glob("*.input.*"))
    damaged.write_bytes(b"\x93NUMPY")
    (table,) = reduce(read_kernel_files(tmp_path.iterdir()))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([damaged.name, "statistic.csv"])
    assert [row["IO"] for row in rows(table)] == ["output"]
    assert f"{damaged}: the .npy header is damaged" in caplog.text and "the file stays" in caplog.text


def test_unknown_categories_are_named_before_anything_is_touched(tmp_path: Path) -> None:
    lay_out(tmp_path, {"Add.Default_Add-op0.output.0": np.ones(2, np.float32)})
    with pytest.raises(UsageError, match="statistic category 'median' is not known; accepted are max, min, avg"):
        reduce(read_kernel_files(tmp_path.iterdir()), ["max", "median"])
    assert [path.suffix for path in tmp_path.iterdir()] == [".npy"]
