"""Single PyTorch APIs, run alone: results, gradients, and what fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.frameworks import runner
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments, DtypeArgument, NoGradientError, NoKernelError
from msprobe_ms.support.errors import UsageError

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 7 - 0.3
SEED = np.linspace(1, 2, 6, dtype=np.float32).reshape(2, 3)


def run_api(name: str, *positional: Any, gradients: Any = None, **keywords: Any) -> ApiOutcome:
    of_pytorch = runner("pytorch")
    function = of_pytorch.find(*name.split(".", 1))
    assert function is not None, name
    return of_pytorch.run(function, Arguments(positional, keywords), gradients)


def typed(values: Any, dtype: str = "float32") -> TypedArray:
    return rounded(np.asarray(values), dtype)


def test_gradients_are_those_of_autograd() -> None:
    weight, seed = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), np.linspace(1, 3, 8).reshape(2, 4)
    outcome = run_api("Functional.linear", typed(X), weight=typed(weight), gradients=[typed(seed)])
    x, w = torch.tensor(X, requires_grad=True), torch.tensor(weight, requires_grad=True)
    torch.nn.functional.linear(x, w).backward(torch.tensor(seed, dtype=torch.float32))
    assert [each.values.tolist() for each in outcome.gradients] == [x.grad.tolist(), w.grad.tolist()]


def test_several_outputs_of_which_one_is_not_differentiable() -> None:
    outcome = run_api("Torch.topk", typed(X), 2, gradients=[typed([[1, 2], [3, 4]]), None])
    assert [output.dtype for output in outcome.outputs] == ["float32", "int64"]
    assert outcome.gradients[0].values.tolist() == [[0, 2, 1], [0, 4, 3]]
    outcome = run_api("Torch.where", TypedArray("bool", X > 0), typed(X), typed(X), gradients=[typed(SEED)])
    assert [each.values.tolist() for each in outcome.gradients] == [
        np.where(X > 0, SEED, 0).tolist(),
        np.where(X > 0, 0, SEED).tolist(),
    ]


def test_gradients_that_reach_nothing_are_none() -> None:
    assert run_api("Torch.full_like", typed(X), 3.0, gradients=[typed(SEED)]).gradients == (None,)
    assert run_api("Torch.gt", typed(X), typed(X), gradients=[None]).gradients == (None, None)


def test_what_works_in_place_gives_the_argument_it_changed() -> None:
    outcome = run_api("Tensor.__setitem__", typed(X), 0, 3.0, gradients=[typed(SEED)])
    assert outcome.outputs[0].values[0].tolist() == [3, 3, 3]
    assert outcome.gradients[0].values.tolist() == [[0, 0, 0], SEED[1].tolist()]
    outcome = run_api("Tensor.mul_", typed(X, "bfloat16"), 2, gradients=[typed(SEED, "bfloat16")])
    assert outcome.outputs[0].dtype == outcome.gradients[0].dtype == "bfloat16"
    assert outcome.gradients[0].values.tolist() == (2 * typed(SEED, "bfloat16").values).tolist()


def test_the_given_arrays_stay_as_they_are() -> None:
    mine = X.copy()
    run_api("Tensor.zero_", TypedArray("float32", mine))
    assert mine.tolist() == X.tolist()


def test_narrow_floats_and_dtypes_as_arguments() -> None:
    narrow = typed(X, "float8_e4m3fn")
    outcome = run_api("Tensor.to", narrow, DtypeArgument("float16"))
    assert outcome.outputs[0].dtype == "float16" and outcome.outputs[0].values.tolist() == narrow.values.tolist()


def test_what_fails_is_told() -> None:
    with pytest.raises(NoKernelError, match="not implemented for"):
        run_api("Torch.add", typed(X, "float8_e4m3fn"), typed(X, "float8_e4m3fn"))
    with pytest.raises(NoGradientError, match="automatic differentiation"):
        run_api("Torch.add", typed(X), typed(X), out=typed(X), gradients=[typed(SEED)])
    with pytest.raises(TypeError):
        run_api("Torch.add", "text")


def test_what_recording_names_is_found() -> None:
    of_pytorch = runner("pytorch")
    for prefix, api, found in [
        ("Torch", "relu", torch.relu),
        ("Functional", "relu", torch.nn.functional.relu),
        ("Tensor", "__add__", torch.Tensor.__add__),
        ("VF", "lstm", torch._VF.lstm),
        ("Aten", "mul", torch.ops.aten.mul),
        ("Aten", "mul.Tensor", torch.ops.aten.mul.Tensor),
    ]:
        assert of_pytorch.find(prefix, api) == found
    for prefix, api in [("NPU", "npu_swiglu"), ("Distributed", "all_reduce"), ("Aten", "no_such_api"), ("Torch", "no")]:
        assert of_pytorch.find(prefix, api) is None


#: What modules hold besides operators: names that a stranger's dump may give.
NO_OPERATORS = """Torch.os.system Torch.builtins.exec Torch.load Torch.save Torch.hub.load Torch.from_file
    Torch.set_num_threads Torch.utils.cpp_extension.load Torch.sys.exit Torch.__class__ Torch.compile
    Functional.importlib.import_module Functional.torch.load Tensor.__class__.__base__ Tensor.__reduce_ex__
    Tensor.share_memory_ Tensor.register_hook VF.sys VF.__getattr__ Aten.from_file Aten.save Aten.__class__
    Aten.mul.__class__ Aten.__init__"""


@pytest.mark.parametrize("name", NO_OPERATORS.split())
def test_only_operators_are_found(name: str) -> None:
    assert runner("pytorch").find(*name.split(".", 1)) is None


def test_operators_that_only_other_tools_record_are_found() -> None:
    of_pytorch = runner("pytorch")
    for prefix, api in [("Tensor", "isnan"), ("Torch", "_softmax"), ("Tensor", "new_tensor"), ("Aten", "_to_copy")]:
        assert (of_pytorch.find(prefix, api) is None) == (api == "new_tensor"), api


def test_a_seed_repeats_random_results() -> None:
    of_pytorch = runner("pytorch")
    drawn = []
    for seed in (3, 3, 4):
        of_pytorch.seed(seed)
        drawn.append(of_pytorch.run(of_pytorch.find("Torch", "randn"), Arguments((8,))).outputs[0].values.tolist())
    assert drawn[0] == drawn[1] != drawn[2]


def test_only_known_frameworks_have_a_runner() -> None:
    with pytest.raises(UsageError, match="jax"):
        runner("jax")
    with pytest.raises(UsageError, match="MSAdapter"):
        runner("mindtorch")  # torch is PyTorch's own here
