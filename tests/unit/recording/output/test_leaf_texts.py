"""Leaves made as text are those that are made of figures, with a file and without, one by one and all at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays.one_pass import KINDS, Elements, Places, is_built, kind_of
from msprobe_ms.arrays.statistics import summary
from msprobe_ms.dump.writing.json_text import LEAF_LEVEL, TensorLeaf, value_text, with_file
from msprobe_ms.recording.output.leaf_texts import LeafTexts
from msprobe_ms.recording.output.plain_values import plain_leaf


@pytest.fixture(params=["C", "numpy"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """What reads the elements."""
    if request.param == "C" and not is_built():
        pytest.skip("the extension is not built")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(one_pass, "_figures", None)
        yield request.param


#: Whoever asks where elements lie holds them.
ARRAYS = (np.arange(12, dtype=np.float32).reshape(3, 4), np.array([np.nan, 1.0]), np.array(True), np.arange(5).T)


@pytest.mark.parametrize("sketch", [True, False])
@pytest.mark.parametrize("requires_grad", [True, False, None])
@pytest.mark.parametrize("file", [None, 'Cell.a"ü.forward.0.input.0.npy'])
def test_texts_are_those_of_leaves(sketch: bool, requires_grad: bool | None, file: str | None) -> None:
    texts = LeafTexts("torch.Tensor", sketch=sketch)
    for array in ARRAYS:
        elements = Elements(array.ctypes.data, KINDS[str(array.dtype)], array.shape, None, None, "float32")
        figures, sketched = summary(array)
        leaf = TensorLeaf(
            "torch.Tensor", "float32", array.shape, *figures, requires_grad, file, sketch=sketched if sketch else None
        )
        made = texts.of(elements, None)
        assert made is not None
        found = with_file(made, requires_grad, file)
        assert found.decode() == value_text(leaf, LEAF_LEVEL)
        assert file is not None or found == texts.of(elements, requires_grad)


class Tensor:
    """An array, told of as frameworks tell of their tensors."""

    __slots__ = ("__dict__", "array")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)


def places(held: int = 1 << 20, begin: int = 1, requires_grad: Any = None) -> Places:
    names = ("bool", "float16", "float32", "float64", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")
    kinds = {np.dtype(name): kind for name in (*names, "uint64") if (kind := kind_of(name)) is not None}
    return Places(
        types=frozenset((Tensor,)), instead=frozenset(("array",)),
        expected=((lambda tensor: tensor.array.ndim < 4, True),),
        dtype=lambda tensor: tensor.array.dtype, kinds=kinds,
        storage=lambda tensor: tensor.array, begin=lambda _: begin, held=lambda _: held, offset=lambda _: 0,
        is_contiguous=lambda tensor: tensor.array.flags.c_contiguous, shape=lambda tensor: tensor.array.shape,
        strides=lambda tensor: tensor.strides, address=lambda tensor: tensor.array.__array_interface__["data"][0],
        requires_grad=requires_grad,
    )  # fmt: skip


def texts_of(values: list[Any], told: Places) -> list[bytes | None] | None:
    return LeafTexts("torch.Tensor", sketch=True).of_all(values, told)


dtypes = st.sampled_from(["?", "f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)).map(
    lambda array: array.T if array.size % 2 else array
)
numbers = st.none() | st.booleans() | st.integers() | st.floats()


@given(values=st.lists(arrays | numbers, max_size=6), required=st.sampled_from([None, True, False]))
def test_all_at_once_are_those_one_by_one(way: str, values: list[Any], required: bool | None) -> None:
    told = places(requires_grad=None if required is None else lambda _: required)
    found = texts_of([Tensor(each) if isinstance(each, np.ndarray) else each for each in values], told)
    assert found is not None
    for value, text in zip(values, found, strict=True):
        if not isinstance(value, np.ndarray):
            small = way == "numpy" or type(value) is not int or -(1 << 63) <= value < 1 << 63
            assert (text and text.decode()) == (value_text(plain_leaf(value), LEAF_LEVEL) if small else None)
        elif not value.size:
            assert text is None
        else:
            leaf = TensorLeaf("torch.Tensor", str(value.dtype), value.shape, *summary(value)[0], required)
            leaf = leaf._replace(sketch=summary(value)[1])
            assert text is not None
            assert text.decode() == value_text(leaf, LEAF_LEVEL)


def test_what_is_out_of_the_ordinary_is_left_to_python() -> None:
    array = np.arange(6, dtype=np.float32)
    odd = [Tensor(array), Tensor(array.reshape(1, 1, 2, 3)), Tensor(array.astype(complex))]
    odd[0].__dict__["array"] = array  # something of its own in the place of what is asked for
    assert texts_of(list(odd), places()) == [None] * 3
    for freed in (places(held=23), places(begin=0)):
        assert texts_of([Tensor(array)], freed) == [None]
    assert texts_of([Tensor(array), "text"], places()) is None
    assert texts_of([Tensor(np.zeros((1 << 9, 1 << 9), np.float32).T)], places()) == [None]


def test_what_a_framework_raises_is_for_python() -> None:
    def fails(error: type[Exception]) -> Places:
        def raising(_: Any) -> Any:
            raise error

        return places()._replace(storage=raising)

    assert texts_of([Tensor(np.ones(2))], fails(RuntimeError)) is None
    with pytest.raises(MemoryError):
        texts_of([Tensor(np.ones(2))], fails(MemoryError))


WITHOUT = """
import sys
for name in ("arrays._one_pass", "dump.writing._records", "dump.writing._whole_files"):
    sys.modules[f"msprobe_ms.{name}"] = None
from msprobe_ms.recording.output.leaf_texts import LeafTexts
from msprobe_ms.dump.writing import journal, tensor_files, writer
LeafTexts("torch.Tensor", sketch=True)
assert journal._at_end is writer._entry is None and not tensor_files._is_built
"""


@pytest.mark.processes
def test_recording_is_there_where_no_extension_is_built() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True)
