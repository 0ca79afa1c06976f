"""Our own judgement: correct results pass, whatever their size and dtype, and faults do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.accuracy.judging.findings import ALLOWED, EXCESS, ULP, Finding
from msprobe_ms.accuracy.judging.model import ApiKey, Status
from msprobe_ms.accuracy.judging.own_rules import Size, judge_own
from msprobe_ms.accuracy.judging.thresholds import Thresholds, load_thresholds
from msprobe_ms.arrays.typed import TypedArray, rounded

DTYPES = ("float16", "bfloat16", "float32")
DRAWN = np.random.default_rng(7)


def judged(
    api: str,
    bench: object,
    device: object,
    dtype: str = "float32",
    *,
    direction: str = "forward",
    elements: int | None = None,
    magnitude: float = 0.0,
    expected: np.ndarray | float | None = None,
    thresholds: Thresholds | None = None,
    framework: str = "pytorch",
) -> Finding:
    """The finding on an output that the reference gives in float64."""
    numbers = np.asarray(device)
    values = numbers if np.iscomplexobj(numbers) else rounded(numbers, dtype).values
    return judge_own(
        ApiKey(framework, "Mint", api, direction),
        TypedArray("float64", np.asarray(bench, np.complex128 if np.iscomplexobj(values) else np.float64)),
        TypedArray(dtype, values),
        thresholds or load_thresholds(),
        size=Size(elements, magnitude),
        expected=expected,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_what_is_correctly_rounded_passes(dtype: str, data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=8)))
    for api in ("exp", "relu", "softmax", "sum", "matmul", "gelu"):
        found = judged(api, values, values, dtype)
        assert found.status is Status.PASS, (api, found)
        assert (found.figures[ULP] or 0.0) <= 1.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pointwise_result_may_be_off_by_few_ulp(dtype: str) -> None:
    epsilon = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}[dtype]
    few = load_thresholds().number("own", "roundings", dtype)
    many = few * load_thresholds().number("own", "error", dtype)
    counts = (1, few, few + 1, many, many + 1)
    steps = {count: judged("exp", 1.0, 1.0 + count * epsilon, dtype) for count in counts}
    statuses = [found.status for found in steps.values()]
    assert statuses == [Status.PASS, Status.PASS, Status.WARNING, Status.WARNING, Status.ERROR]
    assert [found.figures[ULP] for found in steps.values()] == list(steps)
    assert steps[few + 1].figures[ALLOWED] == pytest.approx(few)
    assert steps[few + 1].rule == f"pointwise: {few:g} ULP"
    bounds = f"{few:g} expected, more than {many:g} would be an error"
    assert steps[few + 1].message.endswith(f"{few + 1:.4g} ULP of {dtype}, {bounds}")
    assert steps[many + 1].message.endswith(f"{many + 1:.4g} ULP of {dtype}, {few:g} allowed")


def test_the_worst_element_is_told() -> None:
    bench = np.ones((2, 3))
    device = bench.copy()
    device[1, 2], device[0, 1] = 2.0, 1.5
    found = judged("exp", bench, device)
    assert found.status is Status.ERROR
    assert found.message.startswith(
        "2 of 6 elements are off by more than is allowed; the largest error is at (1, 2): 2 instead of 1"
    )


def sums(length: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Sums of ``length`` positive terms in float64, and one by one in the dtype."""
    terms = rounded(DRAWN.random((length, 16)) + 0.5, dtype).values
    total = np.zeros(16)
    for row in terms:
        total = rounded(total + row.astype(np.float64), dtype).values.astype(np.float64)
    return terms.astype(np.float64).sum(0), total


@pytest.mark.parametrize("length", [10, 300, 4096])
def test_a_sum_may_be_off_by_the_root_of_its_length(length: int) -> None:
    bench, device = sums(length, "float32")
    assert judged("sum", bench, device, elements=16 * length).status is Status.PASS
    wrong = judged("sum", bench, bench * (1 + 1e-4), elements=16 * length)
    assert wrong.status is Status.ERROR


def test_a_sum_in_float16_that_is_rounded_at_each_step_is_found() -> None:
    bench, device = sums(4096, "float16")
    found = judged("sum", bench, device, "float16", elements=16 * 4096)
    assert found.status is Status.ERROR
    assert judged("sum", bench, bench, "float16", elements=16 * 4096).status is Status.PASS


def test_figures_in_ulp_are_of_the_size_that_is_allowed_for() -> None:
    bench = np.linspace(-1.0, 1.0, 101)
    bench[0] = 0.0  # whose own ULP is 1e-45
    found = judged("relu", bench, bench, direction="backward", elements=100, expected=np.full(101, 1e-7))
    assert 1 < (found.figures[ALLOWED] or 0.0) < 100, found
    found = judged("relu", bench, bench + (bench == 0) * 1e-3, direction="backward", elements=100)
    assert found.status is Status.ERROR and (found.figures[ULP] or 0.0) < 1e5, found


def test_sums_that_cancel_are_held_against_what_rounding_of_their_inputs_does() -> None:
    """A sum of terms near ±1000 that comes to 1e-3: its ULP says nothing."""
    expected = 1000 * 2.0**-24 * math.sqrt(100)
    assert judged("sum", 1e-3, 1e-3 + 5e-4, elements=100).status is Status.ERROR
    found = judged("sum", 1e-3, 1e-3 + 5e-4, elements=100, expected=expected)
    assert found.status is Status.PASS and found.rule == "reduction: 14 ULP for sums of 100 terms"
    assert judged("sum", 1e-3, 1e-3 + 0.1, elements=100, expected=expected).status is Status.ERROR


def test_sums_that_all_cancel_are_held_against_what_rounding_does_to_most_of_them() -> None:
    """Gradients of the bias before a softmax: what one draw of roundings does to a sum is next to nothing in some."""
    terms = DRAWN.normal(size=(256, 256)) * 1e-5
    terms = (terms - terms.mean(axis=0)).astype(np.float32)
    bench, device = terms.astype(np.float64).sum(axis=0), np.zeros(256, np.float32)
    for row in terms:
        device += row
    expected = np.abs((terms * 2.0**-24 * DRAWN.uniform(-1, 1, terms.shape)).sum(axis=0))
    assert expected.min() < 0.02 * np.median(expected)

    def finding(device: np.ndarray) -> Finding:
        return judged("bias_add", bench, device, direction="backward", elements=terms.size, expected=expected)

    assert finding(device).status is Status.PASS
    device[7] += 256 * float(np.abs(terms[:, 7]).max()) * 2.0**-10
    assert finding(device).status is Status.ERROR


def test_matrix_products_in_float32_pass_and_faults_in_them_do_not() -> None:
    a, b = (DRAWN.standard_normal(shape).astype(np.float32) for shape in ((32, 512), (512, 24)))
    bench = a.astype(np.float64) @ b.astype(np.float64)
    assert judged("matmul", bench, a @ b, elements=a.size).status is Status.PASS
    scaled = (a * np.float32(1.001)) @ b
    assert judged("matmul", bench, scaled, elements=a.size).status is Status.ERROR
    narrow = rounded(bench, "bfloat16").values.astype(np.float64)
    assert judged("matmul", bench, narrow, elements=a.size).status is Status.ERROR
    assert judged("matmul", bench, narrow, "bfloat16", elements=a.size).status is Status.PASS


@pytest.mark.parametrize("api", ["add", "matmul", "layer_norm", "softmax", "mean"])
def test_a_gradient_with_another_sign_or_scale_is_found(api: str) -> None:
    bench = DRAWN.standard_normal((64, 64))
    for device in (-bench, bench * 1.001):
        found = judged(api, bench, device, direction="backward", elements=64 * 64, magnitude=4.0)
        assert found.status is Status.ERROR
        assert found.figures[EXCESS] == pytest.approx(found.figures[ULP] / found.figures[ALLOWED])  # type: ignore[operator]


def test_functions_that_cancel_are_held_against_what_goes_in() -> None:
    """The gradient of tanh at 10, 1 - tanh², is 8e-9, and 0 in float32."""
    bench = 1 - np.tanh(10.0) ** 2
    assert judged("tanh", [bench], [0.0], direction="backward", magnitude=1.0).status is Status.PASS
    assert judged("tanh", [bench], [0.0], direction="backward").status is Status.ERROR
    assert judged("tanh", [bench], [1e-3], direction="backward", magnitude=1.0).status is Status.ERROR


@pytest.mark.parametrize(
    ("bench", "device"),
    [
        ([1.0, math.nan], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, math.nan]),
        ([1.0, math.inf], [1.0, -math.inf]),
        ([1.0, math.inf], [1.0, math.nan]),
        ([1.0, 10000.0], [1.0, math.inf]),
        ([1.0, 65504.0], [1.0, -math.inf]),
        ([1.0, 65504.0], [1.0, math.nan]),
        ([1.0, math.inf], [1.0, 65504.0]),
    ],
)
def test_nan_and_infinity_are_compared_by_position(bench: list[float], device: list[float]) -> None:
    for api in ("exp", "softmax"):
        found = judged(api, bench, device, "float16")
        assert (found.status, found.rule, found.figures[EXCESS]) == (Status.ERROR, "NaN and infinity", math.inf)
        assert "1 of 2 elements is with another NaN or infinity; first at (1): " in found.message
    assert judged("relu", bench, device, "float16").status is Status.ERROR


def test_a_step_that_overflows_near_the_largest_number_is_a_warning() -> None:
    found = judged("exp", [1.0, 60000.0], [1.0, math.inf], "float16")
    assert (found.status, found.rule) == (Status.WARNING, "NaN and infinity")
    assert found.message.startswith(
        "1 of 2 elements is infinite, as a step before overflows; first at (1): inf instead"
    )
    assert judged("exp", [1.0, 60000.0], [1.5, math.inf], "float16").status is Status.ERROR
    assert judged("relu", [1.0, 60000.0], [1.0, math.inf], "float16").status is Status.ERROR


def test_known_errors_are_warnings_with_their_reason() -> None:
    bench = np.tanh([-9.0, 0.5])
    off, far = (bench + np.array([error, 0.0]) for error in (1e-4, 1e-3))
    found = judged("tanh", bench, off, framework="mindspore")
    assert found.status is Status.WARNING
    assert found.message.startswith("known: the hyperbolic tangent of MindSpore on CPUs is an approximation, off by up")
    assert judged("tanh", bench, far, framework="mindspore").status is Status.ERROR
    assert judged("tanh", bench, off, direction="backward", framework="mindspore").status is Status.WARNING
    assert judged("tanh", bench, off).status is Status.ERROR  # nothing is known of PyTorch
    assert judged("tan", bench, off, framework="mindspore").status is Status.ERROR


def test_what_a_dtype_cannot_hold_is_infinite() -> None:
    assert judged("exp", [1e6, -1e6, 1.0], [math.inf, -math.inf, 1.0], "float16").status is Status.PASS
    assert judged("exp", [1e6, 1.0], [65504.0, 1.0], "float16").status is Status.ERROR


def test_dtypes_without_infinity_hold_their_largest_number_instead() -> None:
    assert judged("exp", [1e6, 1.0], [448.0, 1.0], "float8_e4m3fn").status is Status.PASS
    assert judged("exp", [1e6, 1.0], [256.0, 1.0], "float8_e4m3fn").status is Status.ERROR


def test_the_largest_number_of_the_reference_stands_for_that_of_the_dtype() -> None:
    lowest = float(np.finfo(np.float64).min)
    for api in ("relu", "segment_max"):
        assert judged(api, [lowest, 1.0], [-65504.0, 1.0], "float16").status is Status.PASS
        assert judged(api, [lowest, 1.0], [-65472.0, 1.0], "float16").status is Status.ERROR
        assert judged(api, [lowest, 1.0], [-math.inf, 1.0], "float16").status is Status.PASS
        assert judged(api, [lowest, 1.0], [65504.0, 1.0], "float16").status is Status.ERROR


def test_expected_errors_that_are_infinite_explain_anything() -> None:
    expected = np.array([math.inf, 0.0])
    assert judged("exp", [1.0, 2.0], [math.nan, 2.0], expected=expected).status is Status.PASS
    assert judged("exp", [1.0, 2.0], [9.0, 2.0], expected=expected).status is Status.PASS
    assert judged("exp", [1.0, 2.0], [1.0, math.nan], expected=expected).status is Status.ERROR
    assert judged("exp", [1.0], [9.0], expected=math.nan).status is Status.ERROR


def test_what_is_exact_may_be_off_by_nothing() -> None:
    bench = np.array([0.1, 1.0, 2.0])
    assert judged("relu", bench, bench).status is Status.PASS  # 0.1 of float64 is rounded first
    found = judged("relu", bench, np.nextafter(bench.astype(np.float32), np.float32(9)))
    assert (found.status, found.rule) == (Status.ERROR, "exact")
    assert found.message.startswith("3 of 3 elements are unequal; first at (0): 0.1000000")
    assert judged("gather", [1.0, 2.0], [2.0, 1.0], expected=math.inf).status is Status.ERROR


def test_numbers_of_integers_are_exact_unless_rounding_explains_them() -> None:
    key, thresholds = ApiKey("mindspore", "Mint", "floor_divide"), load_thresholds()
    one, other = (TypedArray("int64", np.array(values)) for values in ([3, 2**62 + 1], [2, 2**62 + 1]))
    assert judge_own(key, one, other, thresholds).status is Status.ERROR
    assert judge_own(key, one, other, thresholds, expected=np.array([1.0, 0.0])).status is Status.PASS
    large = TypedArray("int64", np.array([3, 2**62]))
    assert judge_own(key, one, large, thresholds).status is Status.ERROR


def test_complex_numbers_are_judged_by_their_distance() -> None:
    bench = np.array([1 + 1e-9j, 2j])
    assert judged("fft", bench, bench.astype(np.complex64), "complex64").status is Status.PASS
    assert judged("fft", bench, (bench * 1j).astype(np.complex64), "complex64").status is Status.ERROR
    assert judged("fft", bench, np.array([np.nan, 2j], np.complex64), "complex64").status is Status.ERROR


def test_devices_may_take_the_smallest_numbers_for_zero() -> None:
    assert judged("exp", [1e-40], [0.0]).status is Status.PASS
    assert judged("exp", [1e-37], [0.0]).status is Status.ERROR
    assert judged("exp", [1e-6], [0.0], "float16").status is Status.ERROR


def test_a_reference_of_the_same_dtype_has_errors_of_its_own() -> None:
    key, thresholds = ApiKey("pytorch", "Torch", "exp"), load_thresholds()
    device = TypedArray("float32", np.array([1 + 6 * 2.0**-23], np.float32))
    references = (TypedArray(dtype, np.ones(1, dtype)) for dtype in ("float64", "float32"))
    assert [judge_own(key, bench, device, thresholds).status for bench in references] == [Status.WARNING, Status.PASS]


def test_nothing_is_off_where_there_is_nothing() -> None:
    found = judged("exp", np.zeros((0, 3)), np.zeros((0, 3)))
    assert (found.status, found.rule) == (Status.PASS, "no elements")


def test_the_user_allows_an_api_more() -> None:
    tables = dict(load_thresholds().tables)
    tables["own"] = {**tables["own"], "apis": {"exp": 10.0}}
    found = judged("exp", [1.0], [1 + 30 * 2.0**-23], thresholds=Thresholds(tables))
    assert (found.status, found.rule) == (Status.PASS, "pointwise: 4 ULP, 10 times for exp")
    found = judged("exp_.Exp", [1.0], [1 + 30 * 2.0**-23], thresholds=Thresholds(tables))
    assert (found.status, found.rule) == (Status.PASS, "pointwise: 4 ULP, 10 times for Exp")
