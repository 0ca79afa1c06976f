"""Mapping of operations: kinds of one dump beside kinds of the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msprobe_ms.comparison.pairing.rules.operations import by_operation, read_operations
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import parse_entry
from msprobe_ms.support.errors import MappingError


def dump(*names: str) -> Dump:
    entries = {name: Entry(name, parse_entry(name), []) for name in names}
    return Dump(Path("dump.json"), "tensor", "mix", "pytorch", "tensor", "latest", entries, None)  # type: ignore[arg-type]


TARGET = dump(
    "Module.a.LinearOperation.forward.0", "Module.s.SelfAttentionOperation.forward.0",
    "Module.b.LinearOperation.forward.0", "Module.s.SelfAttentionOperation.backward.0", "Functional.gelu.0.forward",
)  # fmt: skip
GOLDEN = dump(
    "Module.x.Linear.forward.0", "Module.y.CoreAttention.forward.0", "Module.z.Linear.forward.0",
    "Module.y.CoreAttention.backward.0", "Module.g.GELU.forward.0", "Module.w.NonDynamicLinearBase.forward.0",
)  # fmt: skip


def test_calls_pair_in_their_order_forward_and_backward() -> None:
    found = by_operation({"LinearOperation": ("Linear",), "SelfAttention": ("CoreAttention",)}, TARGET, GOLDEN)
    assert found == {
        "Module.a.LinearOperation.forward.0": "Module.x.Linear.forward.0",
        "Module.b.LinearOperation.forward.0": "Module.z.Linear.forward.0",
        "Module.s.SelfAttentionOperation.forward.0": "Module.y.CoreAttention.forward.0",
        "Module.s.SelfAttentionOperation.backward.0": "Module.y.CoreAttention.backward.0",
    }


def test_one_result_of_several() -> None:
    found = by_operation({"gelu_outtensor1": ("GELU_output_0",)}, TARGET, GOLDEN)
    assert found == {"Functional.gelu.0.forward.output.1": "Module.g.GELU.forward.0.output.0"}


def test_kinds_that_are_not_called_equally_often_are_told(warnings: list[str]) -> None:
    assert by_operation({"LinearOperation": ("GELU",)}, TARGET, GOLDEN) == {}
    assert "the target calls LinearOperation 2 times, the golden GELU 1 times: not paired" in warnings[0]


def test_the_file_and_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "op_mapping_file.json"
    file.write_text(json.dumps({"LinearOperation": "Linear", "Rms": ["RMSNorm", "Norm"]}))
    expected = {"LinearOperation": ("Linear",), "Rms": ("RMSNorm", "Norm")}
    assert read_operations(file) == read_operations(tmp_path) == expected


@pytest.mark.parametrize("content", ["[]", '{"a": 3}', '{"a": ["b.c"]}', '{"a b": "c"}', "{"])
def test_files_that_are_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "rules.json").write_text(content)
    with pytest.raises(MappingError, match=r'rules\.json: .*expected \{"kind in the target"'):
        read_operations(tmp_path / "rules.json")
