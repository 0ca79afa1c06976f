"""What is known offline of each framework, and who reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from repository import ROOT

from msprobe_ms.config.scope import scope_range
from msprobe_ms.config.values import Rejected
from msprobe_ms.dump.dialects import DIALECTS, apis_by_prefixes, outside_frameworks, same_apis
from msprobe_ms.dump.names import api_entry, module_entry, parse_entry
from msprobe_ms.dump.reading.reader import read_dump

NAMES = [dialect.name for dialect in DIALECTS]


@pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES)
def test_names_of_its_entries_are_understood(dialect) -> None:
    module = parse_entry(module_entry(dialect.module_prefix, "net.fc", "Layer", "forward", 0))
    assert module is not None and module.is_module
    with pytest.raises(Rejected, match="is a module"):
        scope_range([f"{dialect.module_prefix}.net*"], "L1")
    for prefix in dialect.api_prefixes:
        called = parse_entry(api_entry(prefix, "relu", 0, "forward"))
        assert called is not None and not called.is_module
        with pytest.raises(Rejected, match="is an API"):
            scope_range([f"{prefix}.re*"], "L0")


@pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES)
def test_a_dump_that_names_no_framework_is_known_by_its_names_and_tensors(dialect, tmp_path: Path) -> None:
    leaf = {"type": dialect.tensor_type, "dtype": "float32", "shape": [1], "Max": 1.0, "Min": 1.0, "Mean": 1.0}
    entry = module_entry(dialect.module_prefix, "fc", "Layer", "forward", 0)
    dump = {"task": "statistics", "level": "L0", "data": {entry: {"output": [{**leaf, "Norm": 1.0}]}}}
    (tmp_path / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
    assert read_dump(tmp_path).framework == dialect.name


@pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES)
def test_names_alone_tell_whose_apis_they_are(dialect) -> None:
    assert apis_by_prefixes([dialect.module_prefix]) == dialect.apis
    assert same_apis(dialect.name, dialect.apis)


def test_the_format_tells_every_prefix() -> None:
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    for dialect in DIALECTS:
        for prefix in (dialect.module_prefix, *dialect.api_prefixes):
            assert f"`{prefix}`" in page or f"`{prefix}." in page or f"{{{prefix}" in page, prefix


def test_frames_of_models_are_those_outside_the_frameworks() -> None:
    lib = "File /v/lib/python3.11/site-packages"
    frames = [
        f"{lib}/mindspore/nn/cell.py, line 9, in call, \n y = f(x)",
        f"{lib}/mindone/models/bert.py, line 17, in construct, \n return self.fc(x)",
        "File C:\\v\\Lib\\site-packages\\torch\\nn\\a.py, line 3",
        "File /home/me/torch/train.py, line 5, in step, \n net(x)",
    ]
    assert outside_frameworks(frames) == [frames[1], frames[3]]
    assert outside_frameworks(frames[:1]) == frames[:1]
    assert outside_frameworks([]) == []
