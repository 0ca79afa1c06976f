"""The text of a script that makes one call again; what it does when run: tests/process/test_acc_check.py."""

from __future__ import annotations

import ast

import pytest

from msprobe_ms.accuracy.scripts import ScriptedCall, TensorFile, write_script
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument
from msprobe_ms.support.errors import UsageError


def scripted(api: str = "concat", prefix: str = "Functional", framework: str = "mindspore") -> ScriptedCall:
    arguments = Arguments(
        ((TensorFile("a.npy", "float32"), TensorFile("i.npy", "int64")), slice(0, None), float("inf")),
        {"dtype": DtypeArgument("float16"), "mode": "x'\"\n"},
    )
    return ScriptedCall("Functional.concat.0", framework, prefix, api, arguments, ["r.npy"])


def test_arguments_are_written_as_they_were() -> None:
    text = write_script(scripted(), "x.py")
    ast.parse(text)
    assert (
        "mindspore.ops.concat((tensors[0], tensor('i.npy', 'int64')), slice(0, None, None), float('inf'), "
        "dtype=mindspore.float16, mode='x\\'\"\\n')"
    ) in text
    assert "return [tensor('a.npy', 'float32')]" in text


@pytest.mark.parametrize(
    ("api", "prefix", "framework"),
    [("concat(); import os; os.system('x')#", "Functional", "mindspore"), ("concat", "Jit", "mindspore"),
     ("add", "Tensor", "another"), ("os.system", "Torch", "pytorch"), ("load", "Torch", "pytorch"),
     ("mul.__class__", "Aten", "pytorch"), ("from_file", "Aten", "pytorch"), ("__class__", "Tensor", "mindspore")],
)  # fmt: skip
def test_what_is_no_name_of_a_function_becomes_no_code(api: str, prefix: str, framework: str) -> None:
    with pytest.raises(UsageError, match="no script can be written"):
        write_script(scripted(api, prefix, framework), "x.py")


@pytest.mark.parametrize(
    ("api", "prefix"), [("add", "Torch"), ("__add__", "Tensor"), ("mul.Tensor", "Aten"), ("linear", "Functional")]
)
def test_what_is_recorded_becomes_code(api: str, prefix: str) -> None:
    assert f".{api}((" in write_script(scripted(api, prefix, "pytorch"), "x.py")
