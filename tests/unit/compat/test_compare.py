"""The functions by which scripts of msprobe 1.1.0 compare."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import openpyxl
import pytest
from compare_parts import scale_against_good
from rank_dumps import write_run

from msprobe_ms.compat.compare import compare, compare_distributed
from msprobe_ms.support.errors import UsageError


def test_two_dumps_as_msprobe_writes_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scale_against_good(tmp_path / "dumps")
    dumps = [str(next((tmp_path / "dumps" / name).rglob("dump.json"))) for name in ("scale", "good")]
    given = {"npu_json_path": dumps[0], "bench_json_path": dumps[1], "is_print_compare_log": True}
    compare(given, tmp_path / "out", stack_mode=True)
    assert caplog.messages[0].startswith("DIVERGENT")
    (table,) = (tmp_path / "out").glob("compare_result_*.xlsx")
    titles = [cell.value for cell in next(openpyxl.load_workbook(table).active.rows)]
    assert titles[:2] == ["NPU Name", "Bench Name"] and "NPU_Stack_Info" in titles
    assert list((tmp_path / "out").glob("advisor_*.txt"))
    compare(given, tmp_path / "bare", auto_analyze=False)
    assert not list((tmp_path / "bare").glob("advisor_*.txt"))


@pytest.mark.processes
def test_all_ranks_of_a_step(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name, ranks=2)
    compare_distributed(tmp_path / "a" / "step0", tmp_path / "b" / "step0", tmp_path / "out", auto_analyze=False)
    tables = sorted(path.name for path in (tmp_path / "out").glob("*.xlsx"))
    assert [re.sub(r"_\d{14,}.*", "", name) for name in tables] == [
        "compare_result_rank0-rank0", "compare_result_rank1-rank1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "keywords", "message"),
    [
        ("a.json", {}, "compare: input_param is a str; expected {"),
        ({"npu_json_path": "a"}, {}, "compare: input_param: bench_json_path: None is not accepted; expected {"),
        ({"npu_jsn_path": "a"}, {}, "compare: input_param: npu_jsn_path: unknown key; expected {"),
        ({"npu_json_path": "a", "bench_json_path": "b"}, {"stack": True},
         "compare: stack: unknown argument; accepted are stack_mode, auto_analyze, fuzzy_match"),
        ({"npu_json_path": "a", "bench_json_path": "b"}, {"fuzzy_match": 1},
         "compare: fuzzy_match: 1 is not accepted; use True or False"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, given: object, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        compare(given, tmp_path, **keywords)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
