"""Memory of tensors as Python and numpy see it: what is there, read where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msprobe_ms.arrays.dtypes import widen
from msprobe_ms.arrays.in_memory import InMemory, array_of, bytes_of
from msprobe_ms.arrays.one_pass import KINDS, Elements, Kind, Places, kind_of

NUMBERS = [np.dtype(name) for name in KINDS if name != "bfloat16"]


def of(array: np.ndarray, dtype: str | None = None) -> Elements:
    """Where the elements of an array lie, which stand for those of ``dtype``."""
    kind = kind_of(dtype or str(array.dtype))
    assert kind is not None
    strides = None if array.flags.c_contiguous else array.strides
    address = array.__array_interface__["data"][0]
    return Elements(address, kind.kind, array.shape, strides, kind.values, kind.dtype)


arrays = st.sampled_from(NUMBERS).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=5))
)


@given(array=arrays, data=st.data())
def test_an_array_is_what_lies_there(array: np.ndarray, data: st.DataObject) -> None:
    steps = tuple(slice(None, None, data.draw(st.sampled_from((1, 2)))) for _ in array.shape)
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))[steps]
    found = array_of(of(array))
    assert found.dtype == array.dtype and found.shape == array.shape
    assert np.shares_memory(found, array) and not found.flags.writeable
    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize("dtype", ["BFloat16", "torch.bfloat16", "torch.float8_e4m3fn", "Float8E5M2", "HiFloat8"])
def test_narrow_floats_are_widened(dtype: str) -> None:
    width = 2 if "bfloat16" in dtype.lower() else 1
    codes = np.arange(1 << (8 * width), dtype=f"u{width}").reshape(4, -1)
    for some in (codes, codes[:, ::3], codes.T, codes[1:2, 2].reshape(())):
        found = array_of(of(some, dtype))
        assert found.dtype == np.float32 and np.array_equal(found, widen(some, dtype), equal_nan=True)


@given(arrays)
def test_bytes_are_those_of_the_elements(array: np.ndarray) -> None:
    found = bytes_of(of(array))
    assert found is not None
    assert found.tobytes() == array.tobytes() and found.readonly and found.format == "B"
    turned = array.T
    assert (bytes_of(of(turned)) is None) == (not turned.flags.c_contiguous)


class Tensor:
    """An array, told of as frameworks tell of their tensors."""

    def __init__(self, array: np.ndarray) -> None:
        self.__dict__["array"] = array


def places(**changed: Any) -> Places:
    told: dict[str, Any] = {
        "types": frozenset((Tensor,)), "instead": frozenset(("shape",)), "expected": ((lambda each: each.kept, True),),
        "dtype": lambda each: each.array.dtype, "kinds": {np.dtype("f4"): kind_of("float32")},
        "storage": lambda each: each.array, "begin": lambda _: 1, "held": lambda array: array.nbytes,
        "offset": lambda _: 0, "is_contiguous": lambda each: each.array.flags.c_contiguous,
        "shape": lambda each: each.array.shape, "strides": lambda each: (1, 2),
        "address": lambda each: each.array.ctypes.data,
    }  # fmt: skip
    return Places(**(told | {"expected": ()} | changed))


ARRAY = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_a_tensor_tells_where_its_elements_lie() -> None:
    found = InMemory(places()).elements(Tensor(ARRAY))
    assert found == Elements(ARRAY.ctypes.data, KINDS["float32"], (3, 2), None, None, "float32")
    turned = InMemory(places()).elements(Tensor(ARRAY.T))
    assert turned is not None and (turned.shape, turned.strides) == ((2, 3), (4, 8))


def test_attributes_written_in_c_are_read() -> None:
    """As those of PyTorch's tensors are."""
    kinds = {np.dtype("f4"): Kind(KINDS["float32"], 4, None, "float32")}

    class Array(np.ndarray):
        """Has attributes of its own, and numpy's in C."""

    got = vars(np.ndarray)
    told = places(
        dtype=got["dtype"], shape=got["shape"], storage=lambda each: each, held=got["nbytes"], kinds=kinds,
        is_contiguous=lambda each: each.flags.c_contiguous, address=lambda each: each.ctypes.data,
        requires_grad=got["ndim"],
    )  # fmt: skip
    memory, tensor = InMemory(told), ARRAY.view(Array)
    assert memory.elements(tensor) == Elements(ARRAY.ctypes.data, KINDS["float32"], (3, 2), None, None, "float32")
    assert memory.requires_grad(tensor) == 2 and InMemory(places()).requires_grad(tensor) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"instead": None}, {"instead": frozenset(("array",))}, {"expected": ((lambda _: 1, 2),)}, {"kinds": {}},
        {"shape": lambda _: (3, 0)}, {"shape": lambda _: (-1, 2)}, {"begin": lambda _: 0}, {"held": lambda _: 23},
        {"offset": lambda _: 1}, {"address": lambda _: 0},
    ],
)  # fmt: skip
def test_what_is_to_be_looked_at_closer(changed: dict[str, Any]) -> None:
    """Attributes of the tensor's own, other kinds of tensors, no elements, memory that is freed or too short."""
    assert InMemory(places(**changed)).elements(Tensor(ARRAY)) is None


def test_large_ones_that_are_not_contiguous_are_looked_at_closer() -> None:
    assert InMemory(places()).elements(Tensor(np.zeros((300, 300), np.float32).T)) is None
    assert InMemory(places()).elements(Tensor(np.zeros((300, 300), np.float32))) is not None
