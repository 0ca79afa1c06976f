"""Tensors that no memory holds are not made: a call that has them is not run, and says so."""

from __future__ import annotations

import json
from pathlib import Path

from msprobe_ms.accuracy.calls import RecordedTensor, read_calls
from msprobe_ms.accuracy.memory import missing_memory
from msprobe_ms.accuracy.proof.operation import Workshop
from msprobe_ms.accuracy.proof.prove import prove
from msprobe_ms.accuracy.proof.question import question_of_dump
from msprobe_ms.accuracy.proof.verdict import Finding

_HUGE = [1 << 20, 1 << 20]


def _dump(folder: Path, shape: list[int]) -> Path:
    leaf = {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": shape,
        "Max": 1.0,
        "Min": -1.0,
        "Mean": 0.0,
        "Norm": 2.0,
    }
    body = {"input_args": [leaf], "input_kwargs": {}, "output": [leaf]}
    data = {"Primitive.silu.SiLU.0.forward": body}
    folder.mkdir()
    content = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(content))
    return folder / "dump.json"


def test_what_memory_holds_is_not_missing(tmp_path: Path) -> None:
    (small,) = read_calls(_dump(tmp_path / "small", [4, 4])).apis.values()
    (huge,) = read_calls(_dump(tmp_path / "huge", _HUGE)).apis.values()
    assert small.outputs is not None and huge.outputs is not None
    assert isinstance(huge.outputs[0], RecordedTensor)
    assert missing_memory(small.outputs) == missing_memory(["no tensor"]) == 0
    assert missing_memory(huge.outputs) == (1 << 40) * 8 * 16


def test_a_proof_does_not_draw_what_no_memory_holds(tmp_path: Path) -> None:
    path = _dump(tmp_path / "huge", _HUGE)
    with Workshop() as workshop:
        proof = prove(question_of_dump(path, "Primitive.silu.SiLU.0.forward"), workshop)
    assert proof.finding is Finding.UNDECIDED
    assert proof.sentence == "Primitive.silu.SiLU.0: its tensors need 131072.0 GiB here"
