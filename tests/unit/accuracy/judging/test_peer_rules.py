"""The verdicts of msprobe's two checkers, case by case."""

from __future__ import annotations

import math

import numpy as np
import pytest

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging import peer_rules as peer
from msprobe_ms.accuracy.judging.model import ApiKey, Status
from msprobe_ms.accuracy.judging.standards import FIGURES, Standard
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.arrays.typed import TypedArray

THRESHOLDS = load_thresholds()
WIDER = {"float16": "float32", "bfloat16": "float32", "float32": "float64", "float64": "float64"}
#: 1000 values of 100 and more, so that no error is below the absolute limit.
LARGE = np.linspace(100.0, 200.0, 1000)


def pair(bench: object, device: object, dtype: str = "float32") -> peer.Compared:
    one, other = (np.asarray(each, np.float64) for each in (bench, device))
    return peer.compared(TypedArray(WIDER[dtype], one), TypedArray(dtype, other))


def by_pytorch(bench: object, device: object, dtype: str = "float32", api: str = "softmax") -> peer.Verdict:
    compared = pair(bench, device, dtype)
    found = peer.all_figures(compared, Standard.BENCHMARK, THRESHOLDS, "v110")
    return peer.judge_as_pytorch(ApiKey("pytorch", "Torch", api), compared, found, THRESHOLDS)


def off(relative: float, count: int) -> np.ndarray:
    """``LARGE`` with ``count`` elements off by this share of them."""
    return np.where(np.arange(1000) < count, LARGE * (1 + relative), LARGE)


@pytest.mark.parametrize(
    ("dtype", "device", "status", "told"),
    [
        ("float32", LARGE, "pass", ""),
        ("float32", LARGE + 9e-4, "pass", ""),
        ("float32", -LARGE, "error", "Cosine similarity is not above 0.99."),
        ("float32", off(2e-3, 2), "error", "Share of relative errors below 0.001 is not above 0.999."),
        ("float32", off(5e-4, 2), "warning", "Share of relative errors below 0.0001 is not above 0.9999."),
        ("float64", off(5e-4, 2), "warning", "Share of relative errors below 0.0001 is not above 0.9999."),
        ("float16", off(2e-2, 20), "error", "Share of relative errors below 0.01 is not above 0.99."),
        ("float16", off(2e-2, 9), "warning", "Share of relative errors below 0.001 is not above 0.999."),
        ("bfloat16", off(5e-3, 2), "warning", "Share of relative errors below 0.001 is not above 0.999."),
        ("bfloat16", off(5e-4, 1000), "pass", ""),
        ("float32", np.where(np.arange(1000) < 1, np.nan, LARGE), "error", "Cosine similarity is not above 0.99."),
    ],
)
def test_floats_of_pytorch(dtype: str, device: np.ndarray, status: str, told: str) -> None:
    assert by_pytorch(LARGE, device, dtype) == (Status(status), told)


@pytest.mark.parametrize(
    ("bench", "device", "status", "told"),
    [
        ([0.0, 0.0], [0.0, 0.0], "pass", ""),
        ([0.0, 0.0], [1.0, 0.0], "error", "All the data is zero in bench output."),
        ([2.0, 0.0], [0.0, 0.0], "error", "All the data is zero in device output."),
        ([100.0], [-100.0], "error", "Share of relative errors below 0.001 is not above 0.999."),
        ([], [], "error", "Relative error result list is empty."),
    ],
)
def test_where_there_is_no_cosine(bench: list[float], device: list[float], status: str, told: str) -> None:
    assert by_pytorch(bench, device) == (Status(status), told)
    assert peer.all_figures(pair(bench, device), Standard.BENCHMARK, THRESHOLDS, "v110")[fig.COSINE] is None


def test_relative_errors_are_over_the_epsilon_of_the_bench_but_for_bfloat16() -> None:
    assert pair([0.0], [1.0], "float16").relative.tolist() == [2.0**23]
    assert pair([0.0], [1.0], "float32").relative.tolist() == [2.0**52]
    assert pair([0.0], [1.0], "bfloat16").relative.tolist() == [2.0**8]


@pytest.mark.parametrize(
    ("bench", "device", "status", "told"),
    [
        ([1.0, 2.0], [1.0, 2.0005], "pass", ""),
        ([1.0, 2.0], [1.0, 2.002], "error", "max absolute difference is greater than threshold: 0.001 "),
        ([1e-4, 0.0], [0.0, 1e-4], "error", "cosine similarity is less than threshold: 0.99 "),
        (
            [1.0, math.inf],
            [1.0, math.inf],
            "error",
            "cosine similarity is less than threshold: 0.99 max absolute difference is greater than threshold: 0.001 ",
        ),
    ],
)
def test_mindspore(bench: list[float], device: list[float], status: str, told: str) -> None:
    found = peer.mindspore_figures(pair(bench, device))
    assert peer.judge_as_mindspore(found, THRESHOLDS) == (Status(status), told)


def test_texts_of_what_mindspore_cannot_measure() -> None:
    assert peer.INVALID_FOR_MINDSPORE.startswith(
        "two inputs are not valid for computing cosine similarity, skip comparing two inputs are not valid for "
    )


def test_dropout_is_judged_by_its_zeros() -> None:
    ones, half = np.ones(200), np.arange(200) % 2.0
    assert by_pytorch(half * 2, (1 - half) * 2, api="dropout").status is Status.PASS
    assert by_pytorch(half * 2, ones, api="feature_dropout") == (
        Status.ERROR,
        "The shares of zeros differ by 0.5.",
    )
    assert by_pytorch(half[:99], ones[:99], api="dropout").status is Status.PASS  # too few to tell


ALWAYS = {fig.COSINE, fig.MAX_ABSOLUTE, *fig.SHARES}


@pytest.mark.parametrize("standard", Standard)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_standard_fills_its_own_figures(standard: Standard, dtype: str) -> None:
    found = peer.all_figures(pair(LARGE, LARGE, dtype), standard, THRESHOLDS, "latest")
    assert set(found) == ALWAYS | set(FIGURES[standard])


def test_of_other_dtypes_only_the_binary_standard_has_figures() -> None:
    for standard in Standard:
        found = peer.all_figures(pair(LARGE, LARGE, "float64"), standard, THRESHOLDS, "v110")
        assert set(found) == ALWAYS | ({fig.UNEQUAL} if standard is Standard.BINARY else set())


def test_figures_of_the_absolute_standard_by_hand() -> None:
    bench = np.array([1e-7, 5e-7, 0.0, 1.0, 2.0, np.inf, np.nan])
    device = np.array([1e-7, 5.1e-7, 2e-9, 1.0, 2.00001, np.inf, 0.0])
    found = peer.all_figures(pair(bench, device), Standard.ABSOLUTE, THRESHOLDS, "v110")
    assert found[fig.ABSOLUTE_ERRORS] == pytest.approx(2 / 3)  # small ones off by 1e-8 and 2e-9
    assert found[fig.RELATIVE_ERRORS] == 0.5
    assert found[fig.NON_FINITE_ERRORS] == 0.5


def test_figures_of_the_benchmark_standard_by_hand() -> None:
    bench, device = (np.array([1e-7, one, 1.0, other], np.float32) for one, other in ((5e-7, 2.0), (6e-7, 2.2)))
    found = peer.all_figures(pair(bench, device), Standard.BENCHMARK, THRESHOLDS, "v110")
    assert found[fig.SMALL_VALUE_ERRORS] == 0.5
    assert found[fig.MAX_NORMAL_RELATIVE] == pytest.approx(0.1)
    assert found[fig.MEAN_NORMAL_RELATIVE] == pytest.approx(0.05)
    assert found[fig.ROOT_MEAN_SQUARE] == pytest.approx(math.sqrt(0.04 / 4 * (4 / 2.0001 + 1e-4)))
    assert found[fig.ERROR_BALANCE] == 0.5


def test_figures_of_the_ulp_standard_by_hand() -> None:
    bench = np.array([1.0, 1.0, 1.0, 1.0])
    device = bench + np.array([0, 1, 31, 40]) * 2.0**-23
    found = peer.all_figures(pair(bench, device), Standard.ULP, THRESHOLDS, "v110")
    assert [found[key] for key in FIGURES[Standard.ULP]] == [40.0, 18.0, 0.25]
    empty = peer.all_figures(pair([], []), Standard.ULP, THRESHOLDS, "v110")
    assert [empty[key] for key in FIGURES[Standard.ULP]] == [0.0, 0.0, 0.0]


def test_parts_of_complex_numbers_are_numbers_of_their_own() -> None:
    one, other = (TypedArray(dtype, np.array([1 + 2j])) for dtype in ("complex128", "complex64"))
    assert peer.compared(one, other).bench.tolist() == [[1.0, 2.0]]
