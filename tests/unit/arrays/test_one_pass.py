"""The pass in C gives what numpy does, of any elements anywhere in memory, and the same bits however they lie; as text,
what the leaf of these figures gives."""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import zlib
from collections.abc import Callable

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays.dtypes import widen
from msprobe_ms.arrays.one_pass import Elements, Kind, elements_at, elements_of, kind_of, leaf_text, sums
from msprobe_ms.arrays.sketch import decode
from msprobe_ms.arrays.sketch_map import BLOCK
from msprobe_ms.arrays.statistics import Statistics, statistics, summary, summary_of
from msprobe_ms.dump.writing.json_text import LEAF_LEVEL, TensorLeaf, leaf_frame, number_text, value_text

pytestmark = pytest.mark.skipif(
    not one_pass.is_built() and shutil.which(os.environ.get("CC", "cc")) is None, reason="there is no compiler"
)

NUMBERS = ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
FLOAT8 = ("torch.float8_e4m3fn", "torch.float8_e5m2fnuz", "torch.float8_e8m0fnu", "Float8E5M2", "HiFloat8")

#: Rounding, of the mean magnitude, of the norm, and of the norm again for the sketch (docs/format.md, "Statistics").
NARROW, WIDE = 4e-6, 1e-12

#: What float32 may round where it has fewer digits; numpy's sketches multiply by a quarter before they add.
SUBNORMAL = 1e-38

#: Where the sketch changes its form, and where the pass does.
SIZES = (1, 15, 16, 17, 31, 33, 511, 512, 513, 1027, 8191, 8192, 8193, 16384, 40000, BLOCK + 5, 2 * BLOCK + 9000)


def by_numpy(array: np.ndarray) -> tuple[Statistics, str | None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_pass, "_figures", None)
        return summary(array)


def assert_equal(found: tuple[Statistics, str | None], array: np.ndarray) -> None:
    """What the pass ``found`` of the elements of ``array`` is what numpy finds, but for rounding."""
    (ours, sketch), (theirs, expected) = found, by_numpy(array)
    assert repr(ours[:2]) == repr(theirs[:2])  # NaN, infinities, the sign of zero, and booleans
    assert (sketch is None) == (expected is None)
    if theirs.mean is None or theirs.norm is None:
        assert ours[2:] == theirs[2:]
        return
    rounding = WIDE if array.dtype.kind in "iu" or array.dtype.itemsize > 4 else NARROW
    with np.errstate(all="ignore"):
        magnitude = float(np.abs(array.astype(np.float64)).mean())
    if magnitude < 1e300:  # else sums of doubles may overflow, or not, by their order
        assert ours.mean == pytest.approx(theirs.mean, abs=rounding * magnitude, nan_ok=True)
    assert ours.norm == pytest.approx(theirs.norm, rel=rounding, nan_ok=True)
    assert math.copysign(1, ours.mean) == math.copysign(1, theirs.mean) or ours.mean != 0 or math.isnan(theirs.mean)
    if sketch is not None and expected is not None:
        one, other = decode(sketch), decode(expected)
        assert one is not None and other is not None
        assert np.linalg.norm(one - other) <= rounding * abs(theirs.norm) + SUBNORMAL


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    """An array of any numeric dtype, its elements special or drawn, seen through steps, reversals and other axes."""
    dtype = np.dtype(draw(st.sampled_from((*NUMBERS, "?"))))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=9))
    largest = {"allow_subnormal": True} if dtype.kind == "f" else {}
    if dtype == np.float64:
        largest |= {"min_value": -1e150, "max_value": 1e150}
    array = draw(hnp.arrays(dtype, shape, elements=hnp.from_dtype(dtype, **largest)))
    if dtype.kind == "f" and draw(st.booleans()):
        special = draw(st.sampled_from((np.nan, np.inf, -np.inf, -0.0, float(np.finfo(dtype).smallest_subnormal))))
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = special
    repeats = draw(st.sampled_from((1, 1, 300, 9000)))
    if array.ndim:
        array = np.repeat(array, repeats if array.size < 50 else 1, axis=draw(st.integers(0, array.ndim - 1)))
        array = array.transpose(draw(st.permutations(range(array.ndim))))
        array = array[tuple(slice(None, None, draw(st.sampled_from((1, 1, -1, 2)))) for _ in array.shape)]
    return array


def test_it_is_built() -> None:
    """Where there is a compiler."""
    assert one_pass.is_built()


@given(views())
@settings(max_examples=300, deadline=None)
@example(np.zeros(70_000, np.float32))
@example(np.full(3, -0.0, np.float32))
@example(np.r_[np.full(100, 3e38), np.full(9000, -3e38)].astype(np.float32))
@example(np.r_[np.zeros(600), np.nan, np.inf].astype(np.float16))
@example(np.full((300, 40), 1e-42, np.float32).T)
@example(np.broadcast_to(np.arange(5, dtype=np.int64), (4000, 5)))
def test_any_array(array: np.ndarray) -> None:
    elements = elements_of(array)
    assert elements is not None
    assert_equal(summary_of(elements, sketch=True), array)
    assert summary(array) == summary_of(elements, sketch=True) or np.isnan(np.sum(array, dtype=np.float64))
    assert_text(elements)


def assert_text(elements: Elements) -> None:
    """The text of a leaf that the pass gives is that of the leaf which holds its figures."""
    found, depth = summary_of(elements, sketch=True), LEAF_LEVEL + len(elements.shape)
    for sketch, requires_grad in ((None, None), (found[1], True)):
        leaf = TensorLeaf("torch.Tensor", elements.dtype, elements.shape, *found[0], requires_grad, sketch=sketch)
        frame = leaf_frame("torch.Tensor", elements.dtype, elements.shape, requires_grad)
        text = leaf_text(elements, frame, sketch=sketch is not None)
        assert value_text([text], LEAF_LEVEL - 1) == value_text([leaf], LEAF_LEVEL - 1)
        assert value_text([text], depth) == value_text([leaf], depth)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "?", "i8"])
def test_any_size(size: int, dtype: str) -> None:
    array = (np.random.default_rng(size).normal(size=size) * 5).astype(dtype)
    assert_equal(summary(array), array)


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "u2", "i1"])
def test_the_same_bits_wherever_elements_lie(dtype: str) -> None:
    """Sums follow the order of elements, not that of memory."""
    array = (np.random.default_rng(3).normal(size=(37, 29, 65)) * 9).astype(dtype)
    memory = np.zeros(array.nbytes + 1, np.uint8)
    unaligned = memory[1:].view(dtype).reshape(array.shape)
    unaligned[:] = array
    expected = summary(array)
    for same in (np.asfortranarray(array), array[::-1].copy()[::-1], np.repeat(array, 3, axis=1)[:, ::3], unaligned):
        assert summary(same) == expected
        assert statistics(same) == expected[0]


def test_the_same_bits_on_every_processor() -> None:
    """Those of AVX-512, which AVX2 and SSE2 have as well."""
    array = ((np.arange(70_700) % 251 - 125) / 7).astype(np.float32)
    elements = elements_of(array)
    assert elements is not None
    found = sums(elements, sketch=True)
    assert (found.total.hex(), found.squares.hex()) == ("-0x1.eeedb6dc00000p+9", "0x1.ce174ca54e3a9p+22")
    assert zlib.crc32(found.sketch or b"") == 665507725


def test_parts_go_on_where_others_ended() -> None:
    array = np.random.default_rng(5).normal(size=3 * BLOCK + 700)
    head, tail, whole = (
        np.frombuffer(sums(elements, sketch=True, first=first).sketch or b"")
        for part, first in ((array[:BLOCK], 0), (array[BLOCK:], BLOCK), (array, 0))
        if (elements := elements_of(part)) is not None
    )
    assert head + tail == pytest.approx(whole, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("dtype", ["BFloat16", *FLOAT8])
@pytest.mark.parametrize("size", [0, 700, 20_000])
def test_narrow_floats(dtype: str, size: int) -> None:
    """All that there are, and as many drawn."""
    kind = kind_of(dtype)
    assert kind is not None
    codes = np.arange(1 << (8 * kind.itemsize), dtype=f"u{kind.itemsize}")
    if size:
        finite = codes[np.abs(np.nan_to_num(widen(codes, dtype), nan=np.inf, posinf=np.inf)) < 1e30]
        codes = np.random.default_rng(size).choice(finite, size)
    elements = elements_at(codes.ctypes.data, kind, codes.shape, None)
    assert elements is not None
    assert_equal(summary_of(elements, sketch=True), widen(codes, dtype))
    assert_text(elements)


def test_every_half() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for each in codes[::61]:
        found = statistics(np.array([each]))
        assert repr(found[:2]) == repr((float(each) + 0.0,) * 2)


#: Numbers as other releases of orjson, or other writers of JSON, may write them.
WRITERS: list[Callable[[tuple[float, ...]], bytes]] = [
    orjson.dumps,
    lambda numbers: json.dumps(numbers).encode(),
    lambda numbers: f"[{','.join(f'{number:.17e}' for number in numbers)}]".encode(),
    lambda numbers: f"[{','.join(f'{number:.20f}' for number in numbers)}]".encode(),
]


@pytest.mark.parametrize("number", [0.0, -0.0, 0.5, -2.0, 12.25, 2.0**-10, 2.0**-20, 1e15, 1e16, 12e16, 1e22])
@pytest.mark.parametrize("writer", WRITERS)
def test_numbers_are_written_as_python_does(
    number: float, writer: Callable[[tuple[float, ...]], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orjson, "dumps", writer)
    assert number_texts(number) == [repr(number + 0.0)] * 3


@settings(max_examples=2000)
@given(st.floats())
def test_any_number(number: float) -> None:
    assert number_texts(number) == [number_text(number + 0.0)] * 3


def number_texts(number: float) -> list[str]:
    """How Max, Min and Mean of one number are written."""
    elements = elements_of(np.array([number]))
    assert elements is not None
    return leaf_text(elements, (b"", b" ", b" ", b" ", b"", b"", b""), sketch=False).decode().split()[:3]


def test_what_is_left_to_numpy() -> None:
    for array in (np.zeros((0, 3)), np.ones(3, ">f4"), np.ones(3, np.complex64), np.array(["a"]), np.ones(3, "f2,f4")):
        assert elements_of(array) is None
    big_endian = statistics(np.arange(5).astype(">i4"))
    assert big_endian == (4, 0, 2, 30**0.5)
    assert kind_of("torch.complex64") is kind_of("String") is None


def test_what_frameworks_leave_to_numpy() -> None:
    """Tensors without memory or elements, and large ones whose order in memory is to be looked at."""
    float32 = Kind(ord("f"), 4)
    assert elements_at(0, float32, (3,), None) is elements_at(8, float32, (3, 0), None) is None
    assert elements_at(8, float32, (300, 300), (1, 300)) is None
    assert elements_at(8, float32, (3, 2), (1, 3)) == Elements(8, ord("f"), (3, 2), (4, 12))


@pytest.mark.parametrize(
    "elements",
    [
        Elements(0, ord("f"), (3,)), Elements(8, ord("x"), (3,)), Elements(8, ord("t"), (3,)), Elements(8, 999, (3,)),
        Elements(8, ord("f"), (0,)), Elements(8, ord("f"), (-1,)), Elements(8, ord("f"), (1 << 40, 1 << 40)),
        Elements(8, ord("f"), (1,) * 65), Elements(8, ord("f"), (3,), ()), Elements(8, ord("t"), (3,), None, b"12"),
    ],
)  # fmt: skip
def test_impossible_elements_are_refused(elements: Elements) -> None:
    with pytest.raises(ValueError, match=r"."):
        sums(elements, sketch=True)


def test_what_is_missing_is_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    one_pass.say_if_missing.cache_clear()
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.setattr(one_pass, "_figures", None)
        one_pass.say_if_missing()
        one_pass.say_if_missing()
    assert len(caplog.messages) == 1 and "C compiler" in caplog.messages[0]
    one_pass.say_if_missing.cache_clear()
    one_pass.say_if_missing()
    assert len(caplog.messages) == 1
