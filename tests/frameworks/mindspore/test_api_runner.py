"""Single MindSpore APIs, run alone: results, gradients, and what fails."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, ops

from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.frameworks import runner
from msprobe_ms.frameworks.api_calls import ApiOutcome, Arguments, DtypeArgument, NoGradientError, NoKernelError
from msprobe_ms.frameworks.mindspore.api_runner import MindSporeRunner

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 7 - 0.3
SEED = np.linspace(1, 2, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def run_api() -> Any:
    of_mindspore = runner("mindspore")

    def run(name: str, *positional: Any, gradients: Any = None, **keywords: Any) -> ApiOutcome:
        function = of_mindspore.find(*name.split(".", 1))
        assert function is not None, name
        return of_mindspore.run(function, Arguments(positional, keywords), gradients)

    return run


def typed(values: Any, dtype: str = "float32") -> TypedArray:
    return rounded(np.asarray(values), dtype)


def test_gradients_are_those_of_value_and_grad(run_api: Any) -> None:
    weight, bias = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), np.ones(4, np.float32)
    seed = np.linspace(1, 3, 8, dtype=np.float32).reshape(2, 4)
    outcome = run_api("Functional.dense", typed(X), typed(weight), bias=typed(bias), gradients=[typed(seed)])

    def loss(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return (ops.dense(x, w, b) * Tensor(seed)).sum()

    expected = mindspore.grad(loss, (0, 1, 2))(Tensor(X), Tensor(weight), Tensor(bias))
    assert len(outcome.gradients) == 3
    for gradient, other in zip(outcome.gradients, expected, strict=True):
        np.testing.assert_allclose(gradient.values, other.asnumpy(), rtol=1e-6)


def test_several_outputs_of_which_one_is_not_differentiable(run_api: Any) -> None:
    outcome = run_api("Functional.topk", typed(X), 2, gradients=[typed([[1, 2], [3, 4]]), None])
    assert [output.dtype for output in outcome.outputs] == ["float32", "int32"]
    assert outcome.gradients[0].values.tolist() == [[0, 2, 1], [0, 4, 3]]


def test_tensors_in_containers_and_gradients_that_reach_nothing(run_api: Any) -> None:
    outcome = run_api("Mint.concat", [typed(X), typed(X)], 1, gradients=[typed(np.hstack([SEED, SEED * 2]))])
    assert [gradient.values.tolist() for gradient in outcome.gradients] == [SEED.tolist(), (SEED * 2).tolist()]
    outcome = run_api("Functional.full_like", typed(X), 3.0, gradients=[typed(SEED)])
    assert outcome.gradients[0] is None or not outcome.gradients[0].values.any()
    assert run_api("Functional.relu", typed(X), gradients=[None]).gradients == (None,)


@pytest.mark.parametrize("with_gradients", [False, True])
def test_what_works_in_place_gives_the_argument_it_changed(with_gradients: bool, run_api: Any) -> None:
    changed = X.copy()
    changed[0] = 3
    kept = SEED.copy()
    kept[0] = 0
    gradients = [typed(SEED)] if with_gradients else None
    outcome = run_api("Tensor.__setitem__", typed(X), slice(0, 1), 3.0, gradients=gradients)
    assert outcome.outputs[0].values.tolist() == changed.tolist()
    if with_gradients:
        assert outcome.gradients[0].values.tolist() == kept.tolist()
        outcome = run_api("Tensor.copy_", typed(X), typed(X * 2), gradients=gradients)
        assert not outcome.gradients[0].values.any() and outcome.gradients[1].values.tolist() == SEED.tolist()


def test_narrow_floats_and_dtypes_as_arguments(run_api: Any) -> None:
    outcome = run_api("Mint.add", typed(X, "bfloat16"), typed(X, "bfloat16"), gradients=[typed(SEED, "bfloat16")])
    assert outcome.outputs[0].dtype == outcome.gradients[0].dtype == "bfloat16"
    assert outcome.outputs[0].values.tolist() == (typed(X, "bfloat16").values * 2).tolist()
    outcome = run_api("Functional.cast", typed(X), DtypeArgument("float16"), gradients=[typed(SEED, "float16")])
    assert (outcome.outputs[0].dtype, outcome.gradients[0].dtype) == ("float16", "float32")


def test_a_missing_kernel_is_told_in_its_own_call(run_api: Any) -> None:
    for _ in range(3):
        with pytest.raises(NoKernelError, match="Swiglu"):
            run_api("Functional.swiglu", typed(np.ones((2, 4))))
        with pytest.raises(NoKernelError, match="NonZero"):
            run_api("Functional.nonzero", typed(X, "bfloat16"))
        for _ in range(3):
            assert run_api("Functional.relu", typed(X)).outputs[0].values.tolist() == np.maximum(X, 0).tolist()


def test_a_missing_derivative_and_wrong_gradients_are_told(run_api: Any) -> None:
    with pytest.raises(NoGradientError, match="FillDiagonal"):
        run_api("Tensor.fill_diagonal", typed(X), 3.0, gradients=[typed(SEED)])
    with pytest.raises(ValueError, match="another shape"):
        run_api("Functional.relu", typed(X), gradients=[typed(SEED[:1])])
    with pytest.raises(TypeError):
        run_api("Functional.relu", "text")
    with pytest.raises(TypeError, match="unsupported operand"):  # a mistake; no kernel is missing
        runner("mindspore").run(lambda x: None + x.ndim, Arguments((typed(X),)))


def test_what_recording_names_is_found() -> None:
    of_mindspore = runner("mindspore")
    assert isinstance(of_mindspore, MindSporeRunner)
    assert of_mindspore.version == f"mindspore {mindspore.__version__} on CPU"
    for prefix, api, found in [
        ("Functional", "relu", ops.relu),
        ("Functional", "tensor_add", ops.functional.tensor_add),
        ("Tensor", "__add__", Tensor.__add__),
        ("Mint", "add", mindspore.mint.add),
        ("MintFunctional", "relu", mindspore.mint.nn.functional.relu),
    ]:
        assert of_mindspore.find(prefix, api) is found
    assert isinstance(of_mindspore.find("Primitive", "act.ReLU"), ops.ReLU)
    for prefix, api in [
        ("Primitive", "matmul.MatMul"),  # made with arguments that no dump holds
        ("Primitive", "x.NoSuchClass"),
        ("MintDistributed", "all_reduce"),
        ("Functional", "no_such_api"),
        ("Jit", "step"),
    ]:
        assert of_mindspore.find(prefix, api) is None


def test_only_operators_are_found() -> None:
    """What modules hold besides operators: names that a stranger's dump may give."""
    of_mindspore = runner("mindspore")
    for prefix, api in [
        ("Functional", "os.system"), ("Functional", "functional.os.system"), ("Functional", "Custom"),
        ("Functional", "operations.Custom"), ("Functional", "_primitive_cache._get_cache_prim"),
        ("Tensor", "__class__"), ("Tensor", "__reduce_ex__"), ("Tensor", "asnumpy"), ("Mint", "np.load"),
        ("MintFunctional", "__builtins__"), ("Primitive", "x.PyExecute"), ("Primitive", "x.Print"),
    ]:  # fmt: skip
        assert of_mindspore.find(prefix, api) is None, api
    code = {"func": "./stranger.so:run", "out_shape": [1], "out_dtype": mindspore.float32, "func_type": "aot"}
    assert of_mindspore.find("Primitive", "x.Custom", code) is None
    assert of_mindspore.find("Primitive", "x.TensorDump", {"input_output": "out"}) is None


def test_a_seed_repeats_random_results() -> None:
    of_mindspore = runner("mindspore")
    drawn = []
    for seed in (3, 3, 4):
        of_mindspore.seed(seed)
        outcome = of_mindspore.run(of_mindspore.find("Functional", "standard_normal"), Arguments(((8,),)))
        drawn.append(outcome.outputs[0].values.tolist())
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_fails_before_does_not_reach_the_next_gradient(run_api: Any) -> None:
    expected = run_api("Functional.square", typed(X), gradients=[typed(SEED)]).gradients[0].values
    np.testing.assert_allclose(expected, 2 * X * SEED, rtol=1e-6)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            run_api("Functional.matmul", typed(X), typed(X), gradients=[typed(SEED)])
        with pytest.raises(NoGradientError):
            run_api("Tensor.fill_diagonal", typed(X), 3.0, gradients=[typed(SEED)])
        again = run_api("Functional.square", typed(X), gradients=[typed(SEED)])
        assert again.gradients[0].values.tolist() == expected.tolist()


def test_an_operator_leaves_the_arithmetic_of_the_process_as_it_is(ms: Any) -> None:
    # Its kernel has the processor take such numbers for zero.
    x = TypedArray("float32", np.ones((2, 3), np.float32))
    mindspore = runner("mindspore")
    function = mindspore.find("Functional", "cosine_similarity")
    assert function is not None
    mindspore.run(function, Arguments((x, x)))
    assert np.float32(1e-42) * np.float32(1) != 0
