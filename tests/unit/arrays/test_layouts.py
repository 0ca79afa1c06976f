"""Layouts of Ascend's tensors, against their definitions element by element, and both ways round."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msprobe_ms.arrays.layouts import BLOCKED, LAYOUTS, PLAIN, convert_layout, pack, targets
from msprobe_ms.support.errors import DumpFormatError

LENGTHS = st.integers(1, 20)
SMALL = st.integers(1, 3)


def counted(*shape: int) -> np.ndarray:
    """No element is zero, so that padding shows."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def by_element(array: np.ndarray, layout: str, width: int) -> np.ndarray:
    """The definition of a blocked layout, element by element; ``array`` is NCHW, NCDHW or a stack of matrices."""
    up = -(-array.shape[1] // width)
    if layout == "NC1HWC0":
        n, _, h, w = array.shape
        stored = np.zeros((n, up, h, w, width), array.dtype)
    elif layout == "NDC1HWC0":
        n, _, d, h, w = array.shape
        stored = np.zeros((n, d, up, h, w, width), array.dtype)
    elif layout == "FRACTAL_Z":
        n, _, h, w = array.shape
        stored = np.zeros((up * h * w, -(-n // 16), 16, width), array.dtype)
    else:
        batch, rows, columns = array.shape
        stored = np.zeros((batch, -(-columns // width), -(-rows // 16), 16, width), array.dtype)
    for place in np.ndindex(array.shape):
        if layout == "FRACTAL_NZ":
            b, row, column = place
            at: tuple[int, ...] = (b, column // width, row // 16, row % 16, column % width)
        else:
            n, c, *inner = place
            if layout == "NC1HWC0":
                at = (n, c // width, *inner, c % width)
            elif layout == "NDC1HWC0":
                at = (n, inner[0], c // width, *inner[1:], c % width)
            else:
                high, wide = array.shape[2:]
                at = (((c // width) * high + inner[0]) * wide + inner[1], n // 16, n % 16, c % width)
        stored[at] = array[place]
    return stored


@settings(max_examples=25, deadline=None)
@given(n=LENGTHS, c=LENGTHS, d=SMALL, h=SMALL, w=SMALL, width=st.sampled_from([4, 8, 16, 32]))
def test_blocks_are_those_of_the_definition_both_ways(n: int, c: int, d: int, h: int, w: int, width: int) -> None:
    for layout, array, axes in (
        ("NC1HWC0", counted(n, c, h, w), "NCHW"),
        ("FRACTAL_Z", counted(n, c, h, w), "NCHW"),
        ("NDC1HWC0", counted(2, c, d, h, w), "NCDHW"),
        ("FRACTAL_NZ", counted(d, n, c), "ND"),
    ):
        stored = pack(array, axes, layout, width)
        np.testing.assert_array_equal(stored, by_element(array, layout, width))
        for target in set(targets(layout)) & set(PLAIN):
            moved = array if "ND" in (axes, target) else array.transpose([axes.index(axis) for axis in target])
            if target in ("NCHW", "NHWC") and axes == "ND":
                moved = array
            back = convert_layout(stored, layout, target, moved.shape)
            np.testing.assert_array_equal(back, moved)
            if target != "ND":
                np.testing.assert_array_equal(pack(moved, target, layout, width), stored)


@pytest.mark.parametrize("axes", ["NCHW", "NCDHW"])
def test_every_plain_layout_becomes_every_other_of_its_axes_by_transposition(axes: str) -> None:
    array = counted(*range(2, 2 + len(axes)))
    same = [layout for layout in PLAIN if sorted(layout) == sorted(axes)]
    for one, other in itertools.product(same, same):
        here, there = (array.transpose([axes.index(axis) for axis in layout]) for layout in (one, other))
        np.testing.assert_array_equal(convert_layout(here, one, other, there.shape), there)
        np.testing.assert_array_equal(convert_layout(here, one, "ND"), here)


@pytest.mark.parametrize(
    ("dtype", "c0"), [(np.int8, 32), (np.float16, 16), (np.float32, 8), (np.float64, 4), (np.complex128, 2)]
)
def test_a_row_of_a_block_is_32_bytes_unless_said(dtype: Any, c0: int) -> None:
    assert pack(np.ones((1, 3, 2, 2), dtype), "NCHW", "NC1HWC0").shape == (1, -(-3 // c0), 2, 2, c0)


def test_without_a_shape_padding_stays_and_what_is_not_known_is_asked() -> None:
    array = counted(2, 17, 3, 2)
    whole = convert_layout(pack(array, "NCHW", "NC1HWC0", 16), "NC1HWC0", "NHWC")
    assert whole.shape == (2, 3, 2, 32)
    np.testing.assert_array_equal(whole[..., :17], array.transpose(0, 2, 3, 1))
    assert not whole[..., 17:].any()
    nz = pack(counted(3, 20, 35), "ND", "FRACTAL_NZ", 16)
    assert convert_layout(nz, "FRACTAL_NZ", "ND").shape == (3, 32, 48)
    with pytest.raises(DumpFormatError, match=r"12x1x16x16 does not tell the tensor's own shape; say it"):
        convert_layout(pack(array, "NCHW", "FRACTAL_Z", 16), "FRACTAL_Z", "NCHW")


@pytest.mark.parametrize(
    ("source", "target", "shape", "told"),
    [
        ("NC1HWC0", "NCHW", (2, 33, 3, 2), "NCHW of 2x33x3x2 is 2x3x3x2x16 in NC1HWC0, stored is 2x2x3x2x16"),
        ("NC1HWC0", "NHWC", (2, 17, 3, 2), "NHWC of 2x17x3x2 is"),
        ("NC1HWC0", "NCHW", (2, 17), "2x17 is no shape of NCHW"),
        ("NC1HWC0", "NCDHW", None, "NC1HWC0 cannot become NCDHW: from NC1HWC0 NCHW, NHWC, HWCN, CHWN, NC1HWC0"),
        ("NC1HWC0", "FRACTAL_Z", None, "cannot become"),
        ("NC1HWC0", "NWHC", None, "NWHC is no layout that is read; accepted are NCHW, "),
        ("FRACTAL_NZ", "ND", (35,), "is no shape of ND"),
        ("FRACTAL_Z", "HWCN", (0, 0, 0, 0), "is 0x0x16x16 in FRACTAL_Z"),
        ("NCHW", "NHWC", None, "NCHW has 4 axes"),
        ("ND", "NCHW", None, "ND cannot become NCHW: from ND ND, FRACTAL_NZ"),
    ],
)
def test_what_does_not_fit_is_refused(source: str, target: str, shape: Any, told: str) -> None:
    stored = np.ones((2, 2, 3, 2, 16), np.float16)
    if source == "FRACTAL_Z":
        stored = np.ones((12, 1, 16, 16), np.float16)
    with pytest.raises(DumpFormatError, match=told):
        convert_layout(stored, source, target, shape)


def test_every_layout_stays_itself() -> None:
    assert {layout for layout in LAYOUTS if layout in targets(layout)} == set(LAYOUTS)
    for layout in BLOCKED:
        array = counted(1, 1, 16, 16)
        assert convert_layout(array, layout, layout, (3, 3)) is array
