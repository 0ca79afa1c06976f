"""The rules between two devices, standard by standard."""

from __future__ import annotations

import math

import pytest

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging.compare_rules import NOT_SUPPORTED, TITLES, Side, Verdict, judge_pair
from msprobe_ms.accuracy.judging.findings import EXCESS
from msprobe_ms.accuracy.judging.model import Profile, Status
from msprobe_ms.accuracy.judging.standards import FIGURES, Standard
from msprobe_ms.accuracy.judging.thresholds import load_thresholds

SMALL, RMSE, EB = fig.SMALL_VALUE_ERRORS, fig.ROOT_MEAN_SQUARE, fig.ERROR_BALANCE
MAX, MEAN = fig.MAX_NORMAL_RELATIVE, fig.MEAN_NORMAL_RELATIVE
BENCHMARK = dict.fromkeys(FIGURES[Standard.BENCHMARK], 0.01)


def side(dtype: str = "torch.float32", status: str = "pass", message: str = "", **figures: float | None) -> Side:
    return Side(dtype, figures, status, message)


def judged(
    target: dict[str, float], golden: dict[str, float], profile: Profile, dtype: str = "torch.float32", api: str = "exp"
) -> Verdict:
    return judge_pair(api, Side(dtype, target, "", ""), Side(dtype, golden, "", ""), load_thresholds(), profile)


@pytest.mark.parametrize(
    ("key", "ratio", "own", "latest"),
    [
        (SMALL, 1.0, "pass", "pass"),
        (SMALL, 1.5, "warning", "pass"),
        (SMALL, 2.1, "error", "error"),
        (RMSE, 2.1, "error", "error"),
        (MAX, 9.0, "warning", "pass"),
        (MAX, 11.0, "error", "error"),
        (MEAN, 2.1, "error", "error"),
        (EB, 50.0, "pass", "pass"),
    ],
)
def test_benchmark_ratios(key: str, ratio: float, own: str, latest: str) -> None:
    target = {**BENCHMARK, key: 0.01 * ratio}
    for profile, status in (("own", own), ("v110", own), ("latest", latest)):
        verdict = judged(target, BENCHMARK, profile)  # type: ignore[arg-type]
        assert (verdict.status, verdict.algorithm) == (status, "标杆比对法")
        assert verdict.message.startswith({"pass": "", "warning": "WARNING: ", "error": "ERROR: "}[status])


def test_a_failed_figure_is_named() -> None:
    verdict = judged({**BENCHMARK, SMALL: 0.03, RMSE: 0.015}, BENCHMARK, "v110")
    assert verdict.message == "ERROR: 小值域错误比值超过阈值\nWARNING: 均方根误差比值超过阈值\n"
    assert verdict.cells["小值域错误比值"] == pytest.approx(3.0) and verdict.cells["小值域判定结果"] == "error"
    assert set(verdict.cells) == set(TITLES[:10])


def test_levels_of_26() -> None:
    target = {**BENCHMARK, MEAN: 0.0014}
    golden = {**BENCHMARK, MEAN: 0.001}
    assert judged(target, golden, "latest", api="softmax").status is Status.PASS
    assert judged(target, golden, "latest", api="embedding").status is Status.PASS
    assert judged(target, golden, "latest", api="layer_norm").status is Status.ERROR


def test_denominators_of_26_do_not_vanish() -> None:
    target, golden = {**BENCHMARK, MEAN: 1e-5}, {**BENCHMARK, MEAN: 1e-7}
    assert judged(target, golden, "latest").status is Status.PASS
    assert judged(target, golden, "v110").status is Status.ERROR


@pytest.mark.parametrize(
    ("one", "other", "ratio", "status"),
    [
        (0.0, 0.0, 1.0, "pass"),
        (1e-3, 0.0, 10000.0, "error"),
        (0.0, 1e-3, 0.0, "pass"),
        (math.inf, math.inf, math.nan, "pass"),
        (math.nan, math.nan, math.nan, "pass"),
        (math.inf, 1.0, math.nan, "error"),
        (math.nan, math.inf, math.nan, "error"),
        (-math.inf, math.inf, math.nan, "error"),
    ],
)
def test_zeros_and_what_is_not_finite(one: float, other: float, ratio: float, status: str) -> None:
    verdict = judged({**BENCHMARK, RMSE: one}, {**BENCHMARK, RMSE: other}, "v110")
    assert verdict.status == status
    assert verdict.cells["均方根误差比值"] == pytest.approx(ratio, nan_ok=True)


@pytest.mark.parametrize(
    ("dtype", "mean", "many", "golden", "status"),
    [
        ("torch.float32", 63.0, 0.9, 0.1, "pass"),
        ("torch.float32", 65.0, 0.04, 0.01, "pass"),
        ("torch.float32", 65.0, 0.06, 0.07, "pass"),
        ("torch.float32", 65.0, 0.06, 0.06, "error"),
        ("Float32", 65.0, 0.06, 0.0, "error"),
        ("torch.float16", 0.1, 0.0009, 0.0, "pass"),
        ("torch.float16", 0.1, 0.01, 0.02, "pass"),
        ("torch.bfloat16", 0.1, 0.01, 0.01, "error"),
        ("torch.float32", math.nan, math.nan, 0.5, "error"),
    ],
)
def test_ulp(dtype: str, mean: float, many: float, golden: float, status: str) -> None:
    target = {fig.MAX_ULP: 99.0, fig.MEAN_ULP: mean, fig.MANY_ULPS: many}
    verdict = judged(target, {**target, fig.MANY_ULPS: golden}, "own", dtype, "matmul")
    assert (verdict.status, verdict.algorithm) == (status, "ULP误差比对法")
    assert verdict.cells["ULP误差判定结果"] == status


@pytest.mark.parametrize(
    ("api", "key", "good", "bad", "algorithm"),
    [
        ("relu", fig.UNEQUAL, 0.0, 1e-9, "二进制一致法"),
        ("add", fig.NON_FINITE_ERRORS, 0.0, 0.1, "绝对阈值法"),
        ("add", fig.RELATIVE_ERRORS, 0.0, 0.1, "绝对阈值法"),
        ("add", fig.ABSOLUTE_ERRORS, 0.0, math.nan, "绝对阈值法"),
        ("conv2d", fig.WITHIN_THOUSANDTH, 0.999, 0.9989, "双千指标法"),
    ],
)
def test_what_the_target_alone_is_judged_by(api: str, key: str, good: float, bad: float, algorithm: str) -> None:
    names = FIGURES[Standard.ABSOLUTE] if api == "add" else (key,)
    golden = dict.fromkeys(names, 0.5)
    for value, status in ((good, "pass"), (bad, "error")):
        verdict = judged({**dict.fromkeys(names, 0.0), key: value}, golden, "v110", api=api)
        assert (verdict.status, verdict.algorithm) == (status, algorithm)
        assert verdict.message.startswith("ERROR: ") == (status == "error")


def test_topk_gets_a_hint() -> None:
    assert "sorted=False" in judged({fig.UNEQUAL: 0.5}, {fig.UNEQUAL: 0.0}, "v110", api="topk").message
    assert judged({fig.UNEQUAL: 0.0}, {fig.UNEQUAL: 0.5}, "v110", api="topk").message == ""


def test_ours_passes_what_is_as_exact_as_a_correct_result() -> None:
    target = {**BENCHMARK, RMSE: 0.05, EXCESS: 0.4}
    assert judged(target, BENCHMARK, "v110").status is Status.ERROR
    verdict = judged(target, BENCHMARK, "own")
    assert (verdict.status, verdict.rule) == (Status.PASS, "within what a correct result may be off by")
    assert verdict.message == "", "the figures that are apart have their own columns"
    assert judged({**target, EXCESS: 1.1}, BENCHMARK, "own").status is Status.ERROR


@pytest.mark.parametrize("dtype", ["torch.float64", "torch.complex64", "complex128", "Float64"])
def test_dtypes_without_a_standard(dtype: str) -> None:
    verdict = judged(BENCHMARK, BENCHMARK, "own", dtype)
    assert (verdict.status, verdict.message) == (Status.SKIP, NOT_SUPPORTED)


def test_what_was_not_compared_with_its_reference_is_not_compared() -> None:
    good = Side("torch.float32", BENCHMARK, "pass", "")
    for bad, told in (
        (Side("", BENCHMARK, "", ""), "was not compared with its reference"),
        (Side("torch.float32", {}, "SKIP", "no reference"), "no reference"),
        (Side("torch.float32", BENCHMARK, "", "", "均方根误差: 'x' is no number"), "均方根误差: 'x' is no number"),
        (Side("torch.float32", {**BENCHMARK, RMSE: None}, "pass", ""), "the figures of its standard of comparison"),
    ):
        for pair in ((bad, good), (good, bad)):
            verdict = judge_pair("exp", *pair, load_thresholds(), "own")
            assert verdict.status is Status.SKIP and told in verdict.message


def test_an_error_that_left_no_figures_stays_one() -> None:
    shapes = Side("torch.float32", dict.fromkeys(BENCHMARK), "error", "the shapes differ")
    good = Side("torch.float32", BENCHMARK, "pass", "")
    verdict = judge_pair("exp", shapes, good, load_thresholds(), "v110")
    assert (verdict.status, verdict.message) == (Status.ERROR, "the shapes differ")
    assert judge_pair("exp", good, shapes, load_thresholds(), "v110").status is Status.SKIP


def test_tables_of_another_version_are_judged_by_the_figures_that_they_have() -> None:
    """26.x knows no binary standard for floats: its tables have the figures of the benchmark."""
    verdict = judged(BENCHMARK, BENCHMARK, "v110", api="relu")
    assert (verdict.status, verdict.algorithm) == (Status.PASS, "标杆比对法")
    assert judged({fig.UNEQUAL: 0.5}, {fig.UNEQUAL: 0.0}, "latest", api="exp").status is Status.ERROR
