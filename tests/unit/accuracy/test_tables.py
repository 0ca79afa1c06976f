"""The tables of both generations, to the letter, and reading them back."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.accuracy.judging.judge import judge_outputs, skipped
from msprobe_ms.accuracy.judging.model import PROFILES, ApiKey, ApiResult, Judged, Profile, Status, api_status
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.accuracy.tables import detail_columns, read_table, status_text, write_tables
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.support.errors import DumpFormatError, UsageError

PYTORCH = [
    "API Name", "Bench Dtype", "DEVICE Dtype", "Shape", "余弦相似度", "最大绝对误差", "双百指标", "双千指标",
    "双万指标", "二进制一致错误率", "误差均衡性", "均方根误差", "小值域错误占比", "相对误差最大值", "相对误差平均值",
    "inf/nan错误率", "相对误差错误率", "绝对误差错误率", "ULP误差最大值", "ULP误差平均值", "ULP误差大于阈值占比",
    "Status", "Message",
]  # fmt: skip
MINDSPORE = [
    "API Name", "Bench Dtype", "Tested Dtype", "Shape", "Cosine", "MaxAbsErr", "MaxRelativeErr", "Status", "Message",
]  # fmt: skip
OURS = ["Standard", "Rule", "Reference", "Error in ULP", "Allowed ULP", "Error over Allowed", "msprobe Status"]
STAMP = "20260102030405"


def result(framework: str, profile: Profile) -> ApiResult:
    name = "Mint.sub.0" if framework == "mindspore" else "Torch.sub.0"
    bench = [TypedArray("float64", np.linspace(1.0, 2.0, 6).reshape(2, 3)), 3]
    device = [TypedArray("bfloat16", np.linspace(1.0, 2.0, 6).reshape(2, 3).astype(np.float32)), 3]
    key = ApiKey(framework, name.partition(".")[0], "sub")
    rows = judge_outputs(key, f"{name}.forward", bench, device, load_thresholds(), profile=profile, reference="numpy")
    return ApiResult(name, api_status(rows), None, "", rows)


def written(folder: Path, profile: Profile, framework: str, results: Sequence[ApiResult]) -> list[list[list[str]]]:
    tables = []
    for path in write_tables(folder, STAMP, results, profile, framework):
        content = path.read_bytes()
        assert content.startswith(b"\xef\xbb\xbf") and path.stat().st_mode & 0o777 == 0o640
        with path.open(encoding="utf-8-sig", newline="") as file:
            tables.append(list(csv.reader(file)))
    return tables


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("framework", ["mindspore", "mindtorch", "pytorch"])
def test_columns(framework: str, profile: Profile, tmp_path: Path) -> None:
    results, details = written(tmp_path, profile, framework, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"accuracy_checking_details_{STAMP}.csv",
        f"accuracy_checking_result_{STAMP}.csv",
    ]
    first = "API name" if framework == "pytorch" else "API Name"
    assert results == [[first, "Forward Test Success", "Backward Test Success", "Message"]]
    peer = PYTORCH if framework == "pytorch" else MINDSPORE
    assert details[0][: len(peer)] == peer
    if profile == "own":
        assert details[0][-len(OURS) :] == OURS
        assert set(PYTORCH) - {"DEVICE Dtype", "余弦相似度", "最大绝对误差"} <= set(details[0])
    else:
        assert details[0] == peer
    assert len(set(details[0])) == len(details[0])


def test_rows_of_pytorch(tmp_path: Path) -> None:
    results, details = written(tmp_path, "v110", "pytorch", [result("pytorch", "v110")])
    assert results[1] == ["Torch.sub.0", "pass", "", ""]
    tensor, value = (dict(zip(PYTORCH, row, strict=True)) for row in details[1:])
    assert tensor["API Name"] == "Torch.sub.0.forward.output.0"
    assert (tensor["Bench Dtype"], tensor["DEVICE Dtype"], tensor["Shape"]) == (
        "torch.float64", "torch.bfloat16", "(2, 3)",
    )  # fmt: skip
    assert tensor["余弦相似度"] == f"{1:.14f}"
    assert (tensor["绝对误差错误率"], tensor["均方根误差"], tensor["二进制一致错误率"]) == (f"{0:.14f}", " ", " ")
    assert (value["DEVICE Dtype"], value["Shape"], value["余弦相似度"], value["Status"]) == ("int", " ", " ", "pass")


def test_rows_of_mindspore(tmp_path: Path) -> None:
    results, details = written(tmp_path, "v110", "mindspore", [result("mindspore", "v110")])
    assert results[1] == ["Mint.sub.0", "error", "", ""]  # a plain value is no tensor
    tensor, value = (dict(zip(MINDSPORE, row, strict=True)) for row in details[1:])
    assert (tensor["Bench Dtype"], tensor["Tested Dtype"]) == ("torch.float64", "BFloat16")
    assert float(tensor["Cosine"]) == pytest.approx(1.0) and tensor["Status"] == "pass"
    assert (value["Cosine"], value["MaxAbsErr"], value["Status"]) == ("", "", "error")


def test_rows_of_ours(tmp_path: Path) -> None:
    _, details = written(tmp_path, "own", "mindspore", [result("mindspore", "own")])
    tensor = dict(zip(*details[:2], strict=True))
    assert (tensor["Tested Dtype"], tensor["Standard"], tensor["Rule"]) == ("bfloat16", "absolute", "pointwise: 2 ULP")
    assert (tensor["Reference"], tensor["Status"], tensor["msprobe Status"]) == ("numpy", "pass", "pass")
    assert float(tensor["Error over Allowed"]) == pytest.approx(float(tensor["Error in ULP"]) / 2, rel=1e-3)
    assert tensor["绝对误差错误率"] == "0.0" and tensor["均方根误差"] == " "


def test_digits_can_be_chosen() -> None:
    row = Judged("a", "", "", None, {"cosine": 1 / 3, "max_absolute": math.nan}, Status.PASS)
    cells = {column.title: column.cell(row) for column in detail_columns("latest", "pytorch", 3)}
    assert (cells["余弦相似度"], cells["最大绝对误差"]) == ("0.333", "nan")


@pytest.mark.parametrize(
    ("profile", "framework", "word"),
    [
        ("v110", "pytorch", "Warning"),
        ("latest", "pytorch", "warning"),
        ("own", "pytorch", "warning"),
        ("v110", "mindspore", "warning"),
    ],
)
def test_the_word_for_a_warning(profile: Profile, framework: str, word: str) -> None:
    assert status_text(Status.WARNING, profile, framework) == word
    others = [status_text(each, profile, framework) for each in (Status.PASS, Status.ERROR, Status.SKIP, None)]
    assert others == ["pass", "error", "SKIP", ""]


def test_hostile_texts_compute_nothing_and_come_back(tmp_path: Path) -> None:
    name = '=HYPERLINK("http://x")'
    row = skipped(f"{name}.forward.output.0", "+1+1\nsecond, line")
    results, details = written(tmp_path, "own", "mindspore", [ApiResult(name, Status.SKIP, None, "@x", (row,))])
    assert results[1][0] == "'" + name and results[1][3] == "'@x"
    assert details[1][0].startswith("'=")
    table = read_table(tmp_path / f"accuracy_checking_details_{STAMP}.csv")
    assert table.rows[0]["API Name"] == row.name and table.rows[0]["Message"] == row.message


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_tables(tmp_path / "file", STAMP, [], "own", "pytorch")


def test_short_and_long_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("A,B,C\n1,2\n\n1,2,3,4\n", encoding="utf-8")
    assert read_table(path).rows == [{"A": "1", "B": "2"}, {"A": "1", "B": "2", "C": "3"}]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"A,A\n1,2\n", "has several columns A"),
        (b"A\n\xff\n", "is no UTF-8 text"),
        (b"A\n" + b"x" * 200_000 + b"\n", "line 2: this is no csv table"),
    ],
)
def test_what_is_no_table_is_one_error(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DumpFormatError, match=told):
        read_table(path)
    with pytest.raises(DumpFormatError, match="cannot be read"):
        read_table(tmp_path / "none.csv")
