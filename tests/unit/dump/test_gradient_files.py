"""Files of task grad_probe: columns by level, shares as numpy counts them, names that stay in the folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.dump.gradient_files import direction_file, directions, intervals, rank_of, shares, step_of, titles


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("L0", ["param_name", "MD5", "max", "min", "norm", "shape"]),
        ("L1", ["param_name", "max", "min", "norm", "shape"]),
        ("L2", ["param_name", "(-inf, -1]", "(-1, 0]", "(0, 1]", "(1, inf)", "=0", "max", "min", "norm", "shape"]),
    ],
)
def test_columns_are_those_of_msprobe(level: str, expected: list[str]) -> None:
    assert titles(level, (-1, 0, 1)) == expected


@given(
    st.lists(st.floats(width=32) | st.sampled_from([-1.0, 0.0, -0.0, 1.0]), max_size=40),
    st.lists(st.floats(-10, 10), max_size=4, unique=True),
)
def test_shares_are_those_that_numpy_counts(values: list[float], bounds: list[float]) -> None:
    gradient, bounds = np.array(values, np.float32), sorted(bounds)
    found = dict(zip(intervals(bounds), shares(gradient, bounds), strict=True))
    size = max(len(values), 1)
    assert found.pop("=0") == np.count_nonzero(gradient == 0) / size
    ends = [-np.inf, *bounds, np.inf] if bounds else []
    wide = gradient.astype(np.float64)
    for place, share in enumerate(found.values()):
        low, high = ends[place], ends[place + 1]
        above = wide >= low if low == -np.inf else wide > low
        assert share == np.count_nonzero(above & (wide <= high)) / size


def test_zero_and_nan_have_no_direction() -> None:
    gradient = np.array([[1e-30, 0.0], [-1.0, np.nan]], np.float32)
    np.testing.assert_array_equal(directions(gradient), [[True, False], [False, False]])


@given(st.text(min_size=1))
def test_a_file_lies_in_its_step_and_no_two_names_share_one(name: str) -> None:
    path = direction_file(3, name)
    assert path.parts[:-1] == ("step3",) and path.name not in (".npy", "..npy")
    assert len(path.name) <= 210 and path.name.isascii() and not set(path.name) & set('/\\\0:*?"<>|')
    assert direction_file(3, f"{name}a") != path != direction_file(3, f"/{name}")


def test_plain_names_are_kept() -> None:
    assert direction_file(0, "layers.0.fc_1.weight") == Path("step0/layers.0.fc_1.weight.npy")
    assert direction_file(0, "../x") == Path("step0/..%2Fx.npy")


def test_other_names_are_neither_steps_nor_ranks() -> None:
    assert (step_of(Path("a/grad_summary_12.csv")), rank_of(Path("a/rank3"))) == (12, 3)
    assert [step_of(Path(name)) for name in ("grad_summary_x.csv", "grad_summary_1.csv.tmp")] == [None, None]
    assert [rank_of(Path(name)) for name in ("rank", "rank-1", "rank1a")] == [None, None, None]
