"""One row for each output: whose verdict it bears, what stands in it, and what is never called a pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging import findings as own
from msprobe_ms.accuracy.judging.judge import equal_values, judge_output, judge_outputs, skipped
from msprobe_ms.accuracy.judging.model import PROFILES, ApiKey, Judged, Profile, Status, api_status
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.arrays.typed import TypedArray, rounded

THRESHOLDS = load_thresholds()
FRAMEWORKS = ("mindspore", "mindtorch", "pytorch")
X = np.linspace(1.0, 2.0, 10)


def f64(values: object) -> TypedArray:
    return TypedArray("float64", np.asarray(values, np.float64))


def f32(values: object) -> TypedArray:
    return TypedArray("float32", np.asarray(values, np.float32))


def i64(values: object) -> TypedArray:
    return TypedArray("int64", np.asarray(values, np.int64))


def judged(
    bench: Any, device: Any, profile: Profile = "own", framework: str = "pytorch", api: str = "softmax", **more: Any
) -> Judged:
    key = ApiKey(framework, "Torch", api, more.pop("direction", "forward"))
    return judge_output(key, "Torch.softmax.0.forward.output.0", bench, device, THRESHOLDS, profile=profile, **more)


def test_a_row_says_all_of_an_output() -> None:
    row = judged(f64(X), f32(X), reference="torch 2.13 float64")
    assert (row.bench_dtype, row.device_dtype, row.shape) == ("float64", "float32", (10,))
    assert (row.status, row.peer_status, row.standard) == (Status.PASS, Status.PASS, "benchmark")
    assert (row.rule, row.message, row.reference) == ("other: 16 ULP", "", "torch 2.13 float64")
    assert row.figures[fig.COSINE] == pytest.approx(1.0) and 0 < (row.figures[own.ULP] or 0) <= 0.5
    assert row.figures[own.EXCESS] == pytest.approx((row.figures[own.ULP] or 0) / 16, rel=0.01)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_ours_decides_in_our_profile_and_theirs_in_theirs(framework: str) -> None:
    """An error of 0.0005 is thousands of ULP, and below msprobe's absolute limit."""
    rows = [judged(f64(X), f32(X + 5e-4), profile, framework) for profile in PROFILES]
    assert [row.status for row in rows] == [Status.ERROR, Status.PASS, Status.PASS]
    assert {row.peer_status for row in rows} == {Status.PASS}
    assert [row.rule for row in rows[1:]] == ["msprobe 1.1.0", "msprobe 26.x"]
    assert " instead of " in rows[0].message and rows[1].message == ""
    large = 1e6 * X
    rows = [judged(f64(large), f32(large), profile, framework) for profile in PROFILES]
    theirs = Status.PASS if framework == "pytorch" else Status.ERROR  # 0.03 is beyond their limit, whatever the size
    assert [row.status for row in rows] == [Status.PASS, theirs, theirs]


def test_figures_are_those_of_the_framework() -> None:
    mindspore, pytorch = (judged(f64(X), f32(X), framework=each) for each in ("mindspore", "pytorch"))
    assert fig.MAX_RELATIVE in mindspore.figures and fig.MAX_RELATIVE not in pytorch.figures
    assert set(pytorch.figures) < set(mindspore.figures)
    assert fig.ROOT_MEAN_SQUARE in mindspore.figures  # so that two devices can be set against each other


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("bench", "device"),
    [
        (f64(X), f32(X[:9])),
        (f64(X), f32(X.reshape(2, 5))),
        (f64(X), None),
        (None, f32(X)),
        (f64(X), 1.0),
        (1, None),
        ("a", 1),
        (f64(X), f32(-X)),
        (f64(X), f32(np.full(10, math.nan))),
    ],
)
def test_what_cannot_agree_is_an_error(bench: Any, device: Any, framework: str, profile: Profile) -> None:
    row = judged(bench, device, profile, framework)
    assert row.status is Status.ERROR and row.message and row.rule


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_beside_nothing_was_not_compared(framework: str, profile: Profile) -> None:
    assert judged(None, None, profile, framework).status is Status.SKIP


@pytest.mark.parametrize(
    ("bench", "device", "status"),
    [
        (3, 3, "pass"),
        (3, 4, "error"),
        (True, True, "pass"),
        (True, 1, "error"),
        ("a", "a", "pass"),
        (math.nan, math.nan, "pass"),
        (0.1, float(np.float32(0.1)), "pass"),
        (0.1, 0.2, "error"),
        (1.0, math.inf, "error"),
        ((1, 2), (1, 2), "pass"),
    ],
)
def test_plain_values(bench: Any, device: Any, status: str) -> None:
    assert judged(bench, device).status == status


def test_plain_values_by_msprobe() -> None:
    assert judged(0.1, 0.1, "v110").status is Status.PASS
    assert judged(0.1, float(np.float32(0.1)), "v110").status is Status.ERROR
    row = judged(3, 3, "v110", "mindspore")
    assert row.status is Status.ERROR and row.message.startswith("two inputs are not valid for computing cosine")
    assert (row.device_dtype, row.shape) == ("int", None)


@pytest.mark.parametrize("profile", PROFILES)
def test_integers_are_exact(profile: Profile) -> None:
    row = judged(i64([1, 2, 3, 4]), i64([1, 2, 3, 5]), profile)
    assert (row.status, row.figures[fig.UNEQUAL], row.standard) == (Status.ERROR, 0.25, "binary")
    row = judged(i64([2**62]), i64([2**62]), profile)
    assert (row.status, row.figures[fig.UNEQUAL]) == (Status.PASS, 0.0)
    assert judged(i64([2**62]), i64([2**62 + 1]), profile).status is Status.ERROR


def test_no_gradient_is_a_gradient_of_zeros() -> None:
    assert judged(None, f32([0.0, 0.0]), direction="backward").status is Status.PASS
    assert judged(f64([0.0]), None, direction="backward").status is Status.PASS
    assert judged(f64([1e-9]), None, direction="backward").status is Status.ERROR
    assert judged(f64([0.0]), None).status is Status.ERROR


def test_gradients_of_what_the_reference_cannot_differentiate_are_not_compared() -> None:
    key = ApiKey("mindspore", "Functional", "bessel_j0", "backward")
    for device in ([f32(X)], [f32(X), None]):
        rows = judge_outputs(key, "Functional.bessel_j0.0.backward", [None] * len(device), device, THRESHOLDS)
        assert {row.status for row in rows} == {Status.SKIP} and rows[0].message == "no gradient of the reference"
    rows = judge_outputs(key, "Functional.bessel_j0.0.backward", [None, f64(X)], [f32(X), f32(X)], THRESHOLDS)
    assert [row.status for row in rows] == [Status.ERROR, Status.PASS]


def test_dropout_is_judged_by_zeros_in_ours_too() -> None:
    half = np.arange(200) % 2.0
    assert judged(f64(half), f32(1 - half), api="dropout").status is Status.PASS
    row = judged(f64(half), f32(np.ones(200)), api="dropout")
    assert (row.status, row.rule) == (Status.ERROR, "zeros of dropout")


def outputs(bench: list[Any], device: list[Any], profile: Profile = "own", **more: Any) -> tuple[Judged, ...]:
    key = ApiKey("pytorch", "Torch", "softmax")
    return judge_outputs(key, "Torch.softmax.0.forward", bench, device, THRESHOLDS, profile=profile, **more)


@pytest.mark.parametrize("profile", PROFILES)
def test_more_or_fewer_outputs_are_an_error_each(profile: Profile) -> None:
    for bench, device, told in (
        ([f64(X)], [f32(X), f32(X)], "more outputs than the reference gives"),
        ([f64(X), f64(X)], [f32(X)], "fewer outputs than the reference gives"),
        ([], [None], "more outputs than the reference gives"),
    ):
        rows = outputs(bench, device, profile)
        assert [row.name[-8:] for row in rows] == [f"output.{place}" for place in range(len(rows))]
        assert (rows[-1].status, api_status(rows)) == (Status.ERROR, Status.ERROR)
        theirs = "bench and npu output structure is different."
        assert rows[-1].message == (told if profile == "own" else theirs)
        assert all(row.status is Status.PASS for row in rows[:-1])


def test_each_output_has_its_expected_error() -> None:
    rows = outputs([f64([1.0]), f64([1.0])], [f32([1.1]), f32([1.1])], expected=[0.1, None])
    assert [row.status for row in rows] == [Status.PASS, Status.ERROR]


def test_a_call_whose_outputs_are_all_skipped_is_skipped() -> None:
    assert api_status(outputs([None, None], [None, None])) is Status.SKIP
    row = skipped("Torch.f.0.forward.output.0", "no reference")
    assert (row.status, row.message, row.figures) == (Status.SKIP, "no reference", {})


def test_rows_survive_json() -> None:
    for row in (*outputs([f64(X), 3, None], [f32(-X), math.nan, f32([math.inf])]), skipped("a", "b")):
        assert repr(Judged.from_json(row.to_json())) == repr(row)


@pytest.mark.parametrize(("one", "other"), [(math.nan, math.nan), (1, 1.0), ("a", "a"), (None, None)])
def test_equal_values(one: Any, other: Any) -> None:
    assert equal_values(one, other)
    assert not equal_values(one, object())


def test_float8_arguments_choose_the_standard_of_26() -> None:
    assert judged(f64(X), f32(X), "latest", float8_arguments=True).standard == "absolute"
    assert judged(f64(X), f32(X), "latest").standard == "benchmark"


LARGE = np.linspace(10.0, 90.0, 400)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("api", ["softmax", "matmul", "add", "gelu"])
def test_a_mantissa_of_bfloat16_in_float32_is_found(api: str, framework: str) -> None:
    device = f32(rounded(LARGE, "bfloat16").values)
    row = judged(f64(LARGE), device, framework=framework, api=api, elements=10**6, magnitude=90.0)
    assert (row.status, row.peer_status) == (Status.ERROR, Status.ERROR)
    assert row.figures[fig.WITHIN_HUNDREDTH] == 1.0 and (row.figures[fig.WITHIN_THOUSANDTH] or 0) < 0.9
    narrow = TypedArray("bfloat16", device.values)
    assert judged(f64(LARGE), narrow, framework=framework, api=api).status is Status.PASS


@pytest.mark.parametrize("api", ["softmax", "matmul", "add", "gelu", "gather"])
@pytest.mark.parametrize("planted", [math.nan, math.inf, -math.inf])
def test_one_planted_nan_or_infinity_is_found(api: str, planted: float) -> None:
    device = LARGE.copy()
    device[int(np.argmax(device))] = planted
    assert judged(f64(LARGE), f32(device), api=api).status is Status.ERROR


def test_an_index_off_by_one_is_found() -> None:
    table, index = np.linspace(0.1, 1.0, 50), np.arange(40)
    shifted = table[np.where(index == 7, 8, index)]
    for profile in PROFILES[:2]:
        assert judged(f64(table[index]), f32(table[index].astype(np.float32)), profile, api="gather").status == "pass"
    assert judged(f64(table[index]), f32(shifted), api="gather").status is Status.ERROR
