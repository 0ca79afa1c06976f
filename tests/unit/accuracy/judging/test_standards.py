"""Which standard of comparison an output gets: by API and dtype, in each generation."""

from __future__ import annotations

import pytest

from msprobe_ms.accuracy.judging.model import Profile
from msprobe_ms.accuracy.judging.standards import Standard, _lists, level_of, standard_of


@pytest.mark.parametrize(
    ("api", "dtype", "standard"),
    [
        ("conv2d", "float32", Standard.THOUSANDTH),
        ("relu", "float32", Standard.BINARY),
        ("add", "float16", Standard.ABSOLUTE),
        ("add", "int64", Standard.BINARY),
        ("__iadd__", "torch.bfloat16", Standard.ABSOLUTE),
        ("matmul", "Float32", Standard.ULP),
        ("matmul", "bool", Standard.BINARY),
        ("softmax", "float32", Standard.BENCHMARK),
        ("histc", "float32", Standard.BENCHMARK),
    ],
)
def test_of_1_1_0_and_ours(api: str, dtype: str, standard: Standard) -> None:
    for profile in ("own", "v110"):
        assert standard_of(api, dtype, profile) is standard  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "float8_arguments", "standard"),
    [
        ("float32", False, Standard.BENCHMARK),
        ("float32", True, Standard.ABSOLUTE),
        ("float8_e4m3fn", False, Standard.ULP),
        ("hifloat8", True, Standard.ULP),
        ("int32", False, Standard.BINARY),
    ],
)
@pytest.mark.parametrize("api", ["conv2d", "relu", "add", "matmul", "softmax"])
def test_of_26_the_lists_have_no_effect(api: str, dtype: str, float8_arguments: bool, standard: Standard) -> None:
    profile: Profile = "latest"
    assert standard_of(api, dtype, profile, float8_arguments=float8_arguments) is standard


def test_the_lists_are_whole_and_disjoint() -> None:
    sizes = {name: len(apis) for name, apis in _lists()["standards"].items()}
    assert sizes == {"absolute": 30, "binary": 61, "ulp": 17, "thousandth": 2}
    assert len(frozenset[str]().union(*_lists()["standards"].values())) == sum(sizes.values())


def test_levels() -> None:
    assert [level_of(api) for api in ("embedding", "matmul", "GELU", "gelu", "softmax")] == [
        "L1",
        "L2",
        "L2",
        "L0",
        "L0",
    ]


def test_algorithms_have_the_names_of_the_tables() -> None:
    assert [each.algorithm for each in Standard] == [
        "绝对阈值法",
        "二进制一致法",
        "ULP误差比对法",
        "双千指标法",
        "标杆比对法",
    ]
