"""The interface of MetaX's tool: the code of its page, the scripts of its manual, and what its options select."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import torch
from torch import distributed, nn

from msprobe_ms import maca
from msprobe_ms.dump.official_names import entry_of, official_name
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import ConfigError, UsageError

PAGE = Path(__file__).parents[3] / "docs" / "coming_from_metax.md"
TITLES = ["operator", "tensor", "dtype0", "dtype1", "shape0", "shape1", "max0", "max1", "min0", "min1"]

#: As the manual has them, to the letter.
FIRST = """\
import torch
import torch.nn as nn
import copy
from maca_tools import accuracy

dtype = torch.float16
shape, out_c, k, s, p, d, g = (256, 1, 3600), 4, 5, 1, 2, 1, 1
input = torch.randn(shape, dtype = dtype, device="cpu")
input_d = input.clone().cuda()
m = nn.Conv1d(shape[1], out_c, k, stride = s, padding = p, dilation = d, groups = g, dtype = dtype)
m_d = copy.deepcopy(m)
m_d = m_d.to("cuda")
accuracy.start_record(record_level=2)
output = m_d(input_d)
accuracy.record_switch(False)
"""
SECOND = FIRST.replace("record_level=2", 'record_level=2, skip=10, op_range=[None, "torch.nn.Conv1d.6.fwd"]')


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    if (recording := maca_recording()) is not None:
        recording.retire()


def maca_recording() -> Any:
    from msprobe_ms.compat.maca import _Recording

    return _Recording.current()


def entries(folder: str | Path) -> list[str]:
    (place,) = find_places(Path(folder)).values()
    return [name for name in read_dump(place).entries if not name.startswith("loss")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all code of the page has run."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
        exec(compile(code, str(PAGE), "exec"), {})
        maca_recording().retire()
    return folder


def test_the_report_of_the_page(page: Path) -> None:
    (report,) = page.glob("report/accuracy_report_*.xlsx")
    titles, *rows = openpyxl.load_workbook(report).active.iter_rows(values_only=True)
    assert list(titles) == [*TITLES, "diff1", "diff2", "stack"]
    first = dict(zip(titles, rows[0], strict=True))
    assert (first["operator"], first["tensor"], first["shape1"]) == ("torch.nn.Conv1d.1.fwd", "input.0", "[2, 1, 8]")
    assert (first["dtype0"], first["diff1"], first["diff2"]) == ("torch.float32", 0, 0) and PAGE.name in first["stack"]
    assert {row[0] for row in rows} >= {"torch.relu.5.fwd", "torch.relu.5.bwd", "torch.nn.Linear.4.bwd"}


def test_the_options_of_the_page_select_what_they_say(page: Path) -> None:
    conv, relu, flatten, linear = (f"Layer.{name}" for name in ("Conv1d.1", "ReLU.2", "Flatten.3", "Linear.4"))
    forward = [f"{each}.forward" for each in (conv, relu, flatten, linear, "Torch.relu.5", "Tensor.sum.6")]
    backward = [each.replace("forward", "backward") for each in reversed(forward)]
    for whole in ("device0", "device1", "level1", "level0", "lean", "ranks"):
        # Without values there is no gradient to record either.
        assert entries(page / whole)[:6] == forward, whole
    assert entries(page / "range") == forward[1:3]
    assert entries(page / "until") == [*forward, *backward[:2]]
    assert entries(page / "from") == [*forward[4:], *backward]
    assert entries(page / "relu") == [forward[1], forward[4], backward[1], backward[4]]
    assert entries(page / "one") == [forward[0], forward[3], backward[2]]
    assert entries(page / "coarse") == [forward[2], forward[5], backward[0], backward[3]]
    assert entries(page / "off")[:6] == forward  # nothing before it was switched on


def test_levels_keep_what_they_say(page: Path) -> None:
    def leaf(folder: str) -> dict[str, Any]:
        (place,) = find_places(page / folder).values()
        return json.loads(place.read_bytes())["data"]["Layer.Conv1d.1.forward"]

    assert leaf("device0")["input_args"][0]["data_name"] == "Layer.Conv1d.1.forward.input.0.pt"
    summary = leaf("level1")["input_args"][0]
    assert (summary["dtype"], summary["shape"], summary["stride"]) == ("torch.float32", [2, 1, 8], [8, 8, 1])
    assert {"Max", "Min"} < set(summary) and "data_name" not in summary
    assert leaf("level0") == {}
    assert list(leaf("lean")) == ["output"]
    (place,) = find_places(page / "lean").values()
    assert read_dump(place).entries["Layer.Conv1d.1.forward"].stack == ()


@pytest.mark.parametrize("script", [FIRST, SECOND])
def test_the_scripts_of_the_manual(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    """Where there is no CUDA, its device is the host."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor: tensor)
        monkeypatch.setattr(nn.Module, "to", lambda module, device: module)
    exec(script, {})
    maca_recording().retire()
    if script is FIRST:
        assert entries(tmp_path / "record_dir") == ["Layer.Conv1d.1.forward"]
    else:  # one operator, and ten are passed over first
        assert any("skip 11 passes over all of the 1 calls in this step" in text for text in warnings)
        assert any(text.endswith("did you mean another call of Layer.Conv1d?") for text in warnings)


def test_recordings_of_one_process_are_steps_of_their_folder(tmp_path: Path) -> None:
    for _ in range(2):
        maca.start_record(output_dir="a", record_level=1)
        torch.relu(torch.ones(2))
    with maca.record(output_dir="b", record_level=1):
        torch.relu(torch.ones(2))
    maca.start_record(False, output_dir="c")
    assert sorted(place.step or 0 for place in find_places(tmp_path / "a")) == [0, 1]
    assert entries("b") == ["Torch.relu.1.forward"]
    maca.gen_report("a", "a", "report")
    tables = sorted(path.name for path in (tmp_path / "report").rglob("compare_result_*.xlsx"))
    assert len(tables) == 2


def test_ranks_are_those_of_the_group() -> None:
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        group = distributed.new_group([0])
        maca.start_record(output_dir="group", record_level=1, process_group=group, ranks=[0])
        assert maca_recording().config.rank == {0}
        with pytest.raises(UsageError, match=r"ranks \[3\] are not accepted; the group has 1 processes"):
            maca.start_record(process_group=group, ranks=[3])
        maca.start_record(process_group=group)
        assert maca_recording().config.rank == {0}
    finally:
        distributed.destroy_process_group()
    with pytest.raises(UsageError, match="process_group is known after"):
        maca.start_record(process_group=group)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"record_level": [2]}, "record_level [2] is not accepted; use 2 (tensors)"),
        ({"record_level": 3}, "record_level 3 is not accepted; use 2 (tensors)"),
        ({"op_range": ["torch.nn.ReLU.2.fwd"]}, "op_range ['torch.nn.ReLU.2.fwd'] is not accepted; give two ends"),
        ({"op_range": ["ReLU", None]}, "op_range: 'ReLU' is no operator; give its name, such as \"torch.nn.Conv1d."),
        ({"op_list": "relu"}, "op_list 'relu' is not accepted; give a list of texts"),
        ({"enabled": 1}, "enabled 1 is not accepted; give True or False"),
        ({"ranks": ["0"]}, "ranks ['0'] is not accepted; give a list of numbers"),
        ({"skip": -1}, "skip: -1 is not accepted"),
        ({"op_list": ["name-regex((]"]}, "list[0]:"),
    ],
)
def test_mistakes_are_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises((UsageError, ConfigError)) as refused:
        maca.start_record(**options)
    assert told in str(refused.value)


@pytest.mark.parametrize("row", re.findall(r"^\| `(torch\S+)` \| `(\S+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE))
def test_names_of_the_page(row: tuple[str, str]) -> None:
    assert (entry_of(row[0]), official_name(row[1])) == (row[1], row[0])
