"""API calls as a dump.json has them: containers, positions, keywords, both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.accuracy.calls import Calls, RecordedTensor, Unknown, argument_leaves, read_calls
from msprobe_ms.frameworks.api_calls import DtypeArgument
from msprobe_ms.support.errors import DumpFormatError


def tensor(shape: list[int], dtype: str = "Float32", **keys: Any) -> dict[str, Any]:
    return {"type": "mindspore.Tensor", "dtype": dtype, "shape": shape, "Max": 1.0, "Min": -1.0, "Mean": 0.0,
            "Norm": 2.0, **keys}  # fmt: skip


def forward(*arguments: Any, output: Any = None, **keywords: Any) -> dict[str, Any]:
    return {"input_args": list(arguments), "input_kwargs": keywords, "output": output or [tensor([2])]}


def dump(folder: Path, data: dict[str, Any], **envelope: Any) -> Calls:
    file = folder / "dump.json"
    file.write_text(json.dumps({"task": "statistics", "level": "L1", "framework": "mindspore", **envelope,
                                "dump_data_dir": None, "data": data}))  # fmt: skip
    return read_calls(file)


def test_arguments_keep_their_places_and_containers(tmp_path: Path) -> None:
    body = forward(
        [tensor([2]), tensor([3])],
        {"type": "int", "value": 1},
        {"type": "slice", "value": [0, None, 2]},
        {"type": "mindspore.dtype", "value": "Float16"},
        None,
        axis={"type": "int", "value": -1},
        mask={"a": tensor([4], "Bool", Max=True, Min=False, Mean=None, Norm=None)},
    )
    call = dump(tmp_path, {"Functional.concat.0.forward": body}).apis["Functional.concat.0"]
    assert call.arguments is not None
    parts, one, cut, dtype, nothing = call.arguments.positional
    assert [part.shape for part in parts] == [(2,), (3,)]
    assert parts[1].place == "forward.input.0.1"
    assert (one, cut, dtype, nothing) == (1, slice(0, None, 2), DtypeArgument("float16"), None)
    assert call.arguments.keywords["axis"] == -1
    assert call.arguments.keywords["mask"]["a"].dtype == "bool"
    assert len(argument_leaves(call.arguments)) == 8


def test_backward_belongs_to_the_call(tmp_path: Path) -> None:
    calls = dump(
        tmp_path,
        {
            "Mint.sub.0.forward": forward(tensor([2]), tensor([2])),
            "Mint.sub.0.backward": {"input": [tensor([2])], "output": [tensor([2]), None]},
            "Mint.sub.1.forward": forward(tensor([2]), tensor([2])),
        },
    )
    first, second = calls.apis.values()
    assert (first.name, first.prefix, first.api) == ("Mint.sub.0", "Mint", "sub")
    assert first.output_gradients is not None and first.input_gradients is not None
    assert first.output_gradients[0].place == "backward.input.0"
    assert first.input_gradients[1] is None
    assert second.output_gradients is None


def test_what_is_no_call_of_an_api_is_told(tmp_path: Path) -> None:
    calls = dump(
        tmp_path,
        {
            "Cell.fc.Dense.forward.0": forward(tensor([2])),
            "Jit.step.0.forward": forward(tensor([2])),
            "loss.0.debug": tensor([]),
            "Primitive.matmul.MatMul.0.forward": forward(tensor([2, 2]), tensor([2, 2])),
        },
    )
    assert list(calls.apis) == ["Primitive.matmul.MatMul.0"]
    assert calls.apis["Primitive.matmul.MatMul.0"].api == "matmul.MatMul"
    assert list(calls.others) == ["Cell.fc.Dense.forward.0", "Jit.step.0.forward", "loss.0.debug"]


def test_what_was_not_recorded_whole_is_unknown(tmp_path: Path) -> None:
    body = forward({"type": "omitted", "value": "2 of 5 members"}, {"type": "function", "value": None}, tensor([-1]))
    call = dump(tmp_path, {"Functional.vmap.0.forward": body}).apis["Functional.vmap.0"]
    assert call.arguments is not None
    assert [type(leaf) for leaf in call.arguments.positional] == [Unknown] * 3


def test_statistics_and_files(tmp_path: Path) -> None:
    leaf = tensor([2], "BFloat16", data_name="x.npy", Max_except_inf_nan=3.0, Min_except_inf_nan=-3.0)
    call = dump(tmp_path, {"Mint.abs.0.forward": forward(leaf)}).apis["Mint.abs.0"]
    assert call.arguments is not None
    assert call.arguments.positional == (
        RecordedTensor("bfloat16", (2,), 1.0, -1.0, 0.0, 2.0, 3.0, -3.0, "x.npy", "forward.input.0"),
    )


@pytest.mark.parametrize(
    ("envelope", "prefix", "framework"),
    [({"framework": "mindtorch"}, "Torch", "mindtorch"), ({"framework": None}, "Torch", "pytorch"),
     ({"framework": None}, "Mint", "mindspore")],
)  # fmt: skip
def test_the_framework_is_named_or_told_by_prefixes(
    tmp_path: Path, envelope: dict[str, Any], prefix: str, framework: str
) -> None:
    assert dump(tmp_path, {f"{prefix}.abs.0.forward": forward(tensor([2]))}, **envelope).framework == framework


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"data": []}', '{"data": {"Mint.abs.0.forward": {'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "dump.json"
    file.write_text(content)
    with pytest.raises(DumpFormatError, match=r"dump\.json"):
        read_calls(file)


def test_what_is_nested_too_deep_is_told_in_a_line(tmp_path: Path) -> None:
    value: Any = tensor([2])
    for _ in range(401):
        value = [value]
    with pytest.raises(DumpFormatError, match=r"dump\.json: nested deeper than 400 levels") as raised:
        dump(tmp_path, {"Mint.abs.0.forward": forward(value)})
    assert len(str(raised.value)) < 300
