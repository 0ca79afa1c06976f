"""The rules by which the errors of two devices are set against each other, a standard of comparison each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging.findings import EXCESS
from msprobe_ms.accuracy.judging.model import Profile, Status, gravest
from msprobe_ms.accuracy.judging.peer_rules import generation_of
from msprobe_ms.accuracy.judging.standards import FIGURES, STANDARD_DTYPES, Standard, level_of, standard_of
from msprobe_ms.accuracy.judging.thresholds import Thresholds
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.support.translation import tr

Cells = dict[str, "float | str | None"]

#: Ratios of the benchmark method: figure → title of the ratio, title of its verdict.
_RATIOS = {
    fig.SMALL_VALUE_ERRORS: ("小值域错误比值", "小值域判定结果"),
    fig.ROOT_MEAN_SQUARE: ("均方根误差比值", "均方根误差判定结果"),
    fig.MAX_NORMAL_RELATIVE: ("相对误差最大值比值", "相对误差最大值判定结果"),
    fig.MEAN_NORMAL_RELATIVE: ("相对误差平均值比值", "相对误差平均值判定结果"),
    fig.ERROR_BALANCE: ("误差均衡性比值", "误差均衡性判定结果"),
}
#: What the target alone is judged by: figure → its title, title of its verdict.
_OF_TARGET = {
    fig.NON_FINITE_ERRORS: ("inf/nan错误率", "inf/nan判定结果"),
    fig.RELATIVE_ERRORS: ("相对误差错误率", "相对误差判定结果"),
    fig.ABSOLUTE_ERRORS: ("绝对误差错误率", "绝对误差判定结果"),
    fig.UNEQUAL: ("二进制一致错误率", "二进制一致错误率判定结果"),
}
_ULP = ("ULP误差平均值", "ULP误差大于阈值占比", "ULP误差大于阈值占比比值", "ULP误差判定结果")
_THOUSANDTH = ("双千指标", "双千指标判定结果")

#: All of them, in the order of the table.
TITLES = (
    *(title for pair in _RATIOS.values() for title in pair),
    *(title for pair in _OF_TARGET.values() for title in pair),
    *_ULP,
    *_THOUSANDTH,
)

#: Not part of the verdict.
_NOT_JUDGED = frozenset({fig.ERROR_BALANCE})
#: The ratio to a golden that has no error at all.
_TO_NOTHING = 10_000.0

NOT_SUPPORTED = "This data type does not support benchmark compare."
_TOPK_HINT = "topk: with sorted=False the order of its results is not fixed.\n"


class Side(NamedTuple):
    """An output in one table. ``wrong``: what in its row is no number; "" where all are."""

    dtype: str
    figures: Mapping[str, float | None]
    status: str
    message: str
    wrong: str = ""

    def has(self, standard: Standard) -> bool:
        """Whether all figures are there that a standard judges by."""
        return all(self.figures.get(key) is not None for key in _judged_by(standard))


class Verdict(NamedTuple):
    """The verdict of one output."""

    status: Status
    cells: Cells
    algorithm: str = " "
    message: str = ""
    rule: str = tr("not compared")


def judge_pair(api: str, target: Side, golden: Side, thresholds: Thresholds, profile: Profile) -> Verdict:
    """Judge an output of ``api`` (the last part of its name) by the figures of both tables."""
    for side, who in ((target, tr("target")), (golden, tr("golden"))):
        if side.wrong:
            return Verdict(Status.SKIP, {}, message=tr("{who}: {what}", who=who, what=side.wrong))
        if side.status == Status.SKIP or not side.dtype:
            what = side.message or tr("was not compared with its reference")
            return Verdict(Status.SKIP, {}, message=tr("{who}: {what}", who=who, what=what))
    if not any(value is not None for value in target.figures.values()) and target.status == Status.ERROR:
        return Verdict(Status.ERROR, {}, message=target.message or tr("error in the pre-check"), rule="pre-check")
    dtype = parse_dtype(target.dtype)
    if dtype.kind in ("float", "complex") and dtype.name not in STANDARD_DTYPES:
        return Verdict(Status.SKIP, {}, message=NOT_SUPPORTED)
    standard = _standard(api, target, golden, profile)
    if standard is None:
        reason = tr("the figures of its standard of comparison are not in both tables")
        return Verdict(Status.SKIP, {}, message=reason)
    verdict = _Judge(api, dtype.name, target, golden, thresholds, profile).by(standard)
    if verdict.status is Status.ERROR and api == "topk":
        verdict = verdict._replace(message=verdict.message + _TOPK_HINT)
    return _within_rounding(verdict, target) if profile == "own" else verdict


def _within_rounding(verdict: Verdict, target: Side) -> Verdict:
    """Ours: what is as exact as a correct computation passes, however much more exact the golden is."""
    excess = target.figures.get(EXCESS)
    if verdict.status in (Status.WARNING, Status.ERROR) and excess is not None and excess <= 1.0:
        rule = tr("within what a correct result may be off by")
        return verdict._replace(status=Status.PASS, rule=rule, message="")
    return verdict


def _judged_by(standard: Standard) -> tuple[str, ...]:
    if standard is Standard.THOUSANDTH:
        return (fig.WITHIN_THOUSANDTH,)
    if standard is Standard.ULP:
        return fig.MEAN_ULP, fig.MANY_ULPS
    return FIGURES[standard]


def _standard(api: str, target: Side, golden: Side, profile: Profile) -> Standard | None:
    """The standard of the API, or, where tables of another version have no figures for it, one that they have."""
    proper = standard_of(api, target.dtype, profile)
    for standard in (proper, *(each for each in Standard if each not in (proper, Standard.THOUSANDTH))):
        if target.has(standard) and golden.has(standard):
            return standard
    # msprobe's MindSpore checker has but one figure that can be divided.
    relative = fig.MAX_NORMAL_RELATIVE
    both = all(side.figures.get(relative) is not None for side in (target, golden))
    return Standard.BENCHMARK if both and fig.MAX_RELATIVE in target.figures else None


class _Judge(NamedTuple):
    api: str
    dtype: str
    target: Side
    golden: Side
    thresholds: Thresholds
    profile: Profile

    def by(self, standard: Standard) -> Verdict:
        if standard is Standard.BENCHMARK:
            return self._benchmark()
        if standard is Standard.ULP:
            return self._ulp()
        if standard is Standard.THOUSANDTH:
            return self._thousandth()
        return self._of_target(standard)

    def _benchmark(self) -> Verdict:
        cells: Cells = {}
        statuses, message = [Status.PASS], ""
        for key, (title, verdict_title) in _RATIOS.items():
            one, other = self.target.figures.get(key), self.golden.figures.get(key)
            if one is None or other is None:
                continue
            ratio, status = self._ratio(key, one, other)
            cells[title], cells[verdict_title] = ratio, status
            if key not in _NOT_JUDGED:
                statuses.append(status)
                if status is not Status.PASS:
                    message += f"{status.name}: {title}超过阈值\n"
        return self._verdict(Standard.BENCHMARK, gravest(statuses) or Status.PASS, cells, message)

    def _ratio(self, key: str, one: float, other: float) -> tuple[float, Status]:
        if not (math.isfinite(one) and math.isfinite(other)):
            alike = one == other or (math.isnan(one) and math.isnan(other))
            return math.nan, Status.PASS if alike else Status.ERROR
        least = self.thresholds.table("least_denominator").get(self.dtype)
        if self.profile == "latest" and least is not None:
            ratio = abs(one / max(abs(other), least))
            limit = self.thresholds.number("compare_latest", level_of(self.api), key)
            return ratio, Status.ERROR if ratio > limit else Status.PASS
        ratio = abs(one / other) if other else (_TO_NOTHING if one else 1.0)
        limits = self.thresholds.table("compare_v110", key)
        if ratio > limits["error"]:
            return ratio, Status.ERROR
        return ratio, Status.WARNING if ratio > limits["warning"] else Status.PASS

    def _ulp(self) -> Verdict:
        mean, many = (self.target.figures[key] or 0.0 for key in (fig.MEAN_ULP, fig.MANY_ULPS))
        golden = self.golden.figures[fig.MANY_ULPS] or 0.0
        limits = self.thresholds.table("compare_ulp")
        ratio = abs(many / golden) if golden else (_TO_NOTHING if many else 1.0)
        if self.dtype == "float32":
            passed = mean < limits["mean"] or many < limits["share"] or ratio < 1
        else:
            passed = many < limits["narrow_share"] or ratio < 1
        status = Status.PASS if passed else Status.ERROR
        cells: Cells = dict(zip(_ULP, (mean, many, ratio, status), strict=True))
        return self._verdict(Standard.ULP, status, cells, "" if passed else "ERROR: ULP误差不符合标准\n")

    def _thousandth(self) -> Verdict:
        share = self.target.figures[fig.WITHIN_THOUSANDTH] or 0.0
        passed = share >= self.thresholds.number("compare_thousandth")
        status = Status.PASS if passed else Status.ERROR
        cells: Cells = dict(zip(_THOUSANDTH, (share, status), strict=True))
        return self._verdict(Standard.THOUSANDTH, status, cells, "" if passed else "ERROR: 双千指标不符合标准\n")

    def _of_target(self, standard: Standard) -> Verdict:
        """What a correct device has no error of, whatever the other has."""
        cells: Cells = {}
        statuses, message = [], ""
        for key in FIGURES[standard]:
            title, verdict_title = _OF_TARGET[key]
            value = self.target.figures[key]
            status = Status.PASS if value == 0 else Status.ERROR
            cells[title], cells[verdict_title] = value, status
            statuses.append(status)
            if status is Status.ERROR:
                message += f"ERROR: {title}超过阈值\n"
        return self._verdict(standard, gravest(statuses) or Status.PASS, cells, message)

    def _verdict(self, standard: Standard, status: Status, cells: Cells, message: str) -> Verdict:
        version = "26.x" if generation_of(self.profile) == "latest" else "1.1.0"
        return Verdict(
            status,
            cells,
            standard.algorithm,
            message,
            tr("{standard} of msprobe {version}", standard=standard, version=version),
        )
