"""A script of one call: where there can be none, nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msprobe_ms.cli import main


@pytest.mark.processes
def test_a_primitive_is_refused_and_nothing_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaf = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [4, 4], "Max": 1.0, "Min": -1.0, "Mean": 0.0}
    body = {"input_args": [{**leaf, "Norm": 2.0}], "input_kwargs": {}, "output": [{**leaf, "Norm": 2.0}]}
    data = {"Primitive.silu.SiLU.0.forward": body}
    content = {"task": "statistics", "level": "L1", "framework": "mindspore", "dump_data_dir": None, "data": data}
    (tmp_path / "dump.json").write_text(json.dumps(content))
    arguments = ["-api_info", str(tmp_path / "dump.json"), "--api_name", "Primitive.silu.SiLU.0"]
    assert main(["op_generate", *arguments, "-o", str(tmp_path / "scripts")]) == 2
    assert capsys.readouterr().err == (
        "msprobe: Primitive.silu.SiLU.0: no script can be written for it: a script calls public functions by their "
        "names, and calls recorded as Primitive are none\n"
    )
    assert not (tmp_path / "scripts").exists()
