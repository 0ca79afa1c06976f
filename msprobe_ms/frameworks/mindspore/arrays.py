"""MindSpore's tensors and numpy's arrays."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter, methodcaller
from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor
from mindspore._c_expression import TensorPy
from packaging.version import Version

from msprobe_ms.arrays.dtypes import narrow_width, parse_dtype, widen
from msprobe_ms.arrays.npy import PLAIN_DTYPES
from msprobe_ms.arrays.one_pass import Elements, Kind, Places, elements_at, kind_of
from msprobe_ms.arrays.statistics import parts

#: Dtypes whose memory MindSpore hands to others; from 2.8 on.
_HANDED_ON = frozenset(
    getattr(mindspore, name)
    for name in (
        "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
    )
    if Version(mindspore.__version__) >= Version("2.8")
)  # fmt: skip


# Those of MindSpore's own: what provides torch's interface replaces some by methods in Python.
def _own(name: str) -> Any:
    return getattr(TensorPy, name, None)


_storage, _offset, _strides = _own("untyped_storage"), _own("storage_offset"), _own("stride")
_is_contiguous, _address = _own("is_contiguous"), _own("_data_ptr")

#: Whether ``_data_ptr`` is known to wait for what computes a tensor, and to be the address of a view's first element.
_HAS_ADDRESSES = Version(mindspore.__version__) >= Version("2.10")

#: The dtypes that are read where they lie.
_KINDS: dict[Any, Kind] = {
    dtype: kind
    for dtype in vars(mindspore.common.dtype).values()
    if isinstance(dtype, mindspore.common.dtype.Type) and (kind := kind_of(str(dtype)))
}

#: Those whose files hold the elements as they are: as numpy writes them, by their text.
STORED_AS = {
    kind.dtype: np.dtype(name).str for kind in _KINDS.values() if (name := parse_dtype(kind.dtype).name) in PLAIN_DTYPES
}

#: DLPack's device: the CPU, the first.
_CPU = (1, 0)


#: The class that MindSpore makes its parameters of, which adds nothing to `Parameter`.
_MADE: Any = getattr(Parameter, "_get_base_class", lambda _: Parameter)(Tensor)

#: Classes of most tensors, and what is asked of them that is no attribute: a tensor may have others in their place.
_COMMON = frozenset((Tensor, Parameter, *([_MADE] if _MADE.__mro__[1:] == (Parameter, *Tensor.__mro__) else ())))
_METHODS = frozenset(("asnumpy", "is_contiguous", "stride", "_data_ptr", "to_dlpack"))


def plain(tensor: Any) -> Any:
    """The tensor as one of MindSpore's own class, with the same memory; itself where it is one.

    A user's subclass may compute in its ``shape`` or ``asnumpy``, raise there or wait.
    """
    if type(tensor) in _COMMON and _METHODS.isdisjoint(tensor.__dict__):
        return tensor
    alias = Tensor.__new__(Tensor)
    TensorPy.__init__(alias, tensor)  # `Tensor` would ask the tensor for its dtype and shape
    return alias


class _OnCpu:
    """A tensor in the CPU's memory, handed on as DLPack (the data interchange of the Python array API standard)."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return TensorPy.to_dlpack(self._tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU


def _array(tensor: Any) -> np.ndarray:
    """The tensor's values in MindSpore's own numpy dtype; aliases the tensor's memory, also that of a view.

    ``asnumpy`` has a kernel copy a view that is not contiguous, element by element, which takes a hundred times longer.
    A tensor without memory yet has none to hand on: its address is 0, and asking for it would end the process.
    """
    if not tensor.is_contiguous() and tensor.dtype in _HANDED_ON and tensor.device == "CPU" and tensor._data_ptr():
        return np.from_dlpack(_OnCpu(tensor))
    return tensor.asnumpy()


def is_in_memory(tensor: Any) -> bool:
    """Whether the memory that a tensor on the host names is its own: its storage may have been made smaller."""
    if _storage is None or _offset is None or _strides is None or _is_contiguous is None:
        return True
    try:
        held = _storage(tensor).nbytes()
    except RecursionError:
        raise
    except RuntimeError:  # memory comes with the first reading
        return True
    offset = _offset(tensor)
    if not offset and _is_contiguous(tensor):
        return tensor._nbytes <= held
    shape = tensor.shape
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, _strides(tensor), strict=True))
    return 0 in shape or (offset + extent) * tensor._itemsize <= held


def to_numpy(tensor: Any) -> np.ndarray:
    """The tensor's values; bfloat16 and float8 as float32. May alias the tensor's memory, and be strided."""
    # Met a thousand times a step, and mostly there is nothing to do: no calls that find that out.
    array = tensor.asnumpy() if tensor.is_contiguous() else _array(tensor)
    return array if array.dtype.kind != "V" else _readable(array, tensor.dtype)


def elements(tensor: Any) -> Elements | None:
    """Where the elements of a tensor on the host lie. To ask for its address is to wait for its values.

    None before MindSpore 2.10, whose addresses were not looked into, for what has no memory of its own yet, and for
    what a user's class or methods may stand before.
    """
    if not _HAS_ADDRESSES or type(tensor) not in _COMMON or not _METHODS.isdisjoint(tensor.__dict__):
        return None
    if (kind := _KINDS.get(tensor.dtype)) is None or not is_in_memory(tensor):
        return None
    strides = None if _is_contiguous(tensor) else _strides(tensor)
    return elements_at(_address(tensor), kind, tuple(tensor.shape), strides)


#: How the same is told of most tensors; None where it is not.
PLACES = (
    None
    if not _HAS_ADDRESSES
    else Places(
        types=_COMMON, instead=_METHODS, expected=(),
        dtype=attrgetter("dtype"), kinds=_KINDS,
        storage=_storage, begin=None, held=methodcaller("nbytes"), offset=_offset,
        is_contiguous=_is_contiguous, shape=attrgetter("shape"), strides=_strides, address=_address,
    )
)  # fmt: skip


def in_parts(tensor: Any) -> Iterator[np.ndarray]:
    """The same in parts; of what MindSpore hands out as it is, without any operator."""
    on_host = mindspore.get_context("device_target") == "CPU"
    if on_host and (tensor.is_contiguous() or tensor.dtype in _HANDED_ON):
        array = _array(tensor)
        for index in parts(array.shape):
            yield _readable(array[index], tensor.dtype)
    else:
        for index in parts(tensor.shape):
            yield to_numpy(tensor[index])


def _readable(array: np.ndarray, dtype: Any) -> np.ndarray:
    if array.dtype.kind != "V":
        return array
    if dtype == mindspore.bfloat16:
        return widened(array)
    known = array.dtype.itemsize == narrow_width(str(dtype)) == 1
    return widen(array.view(np.uint8), str(dtype)) if known else array


def widened(array: np.ndarray) -> np.ndarray:
    """An array of MindSpore's own numpy dtype for bfloat16, the upper half of a float32, as float32."""
    return (array.reshape(-1).view("<u2").astype("<u4") << 16).view("<f4").reshape(array.shape)


#: What processors add as kernels do, but for numbers that these take for 0.
_ADDED = frozenset((mindspore.float32, mindspore.float64))


def total(first: Any, second: Any) -> Any:
    """``first + second`` of tensors on the host, without a kernel, which takes many times as long; None for others."""
    if first.dtype not in _ADDED or second.dtype != first.dtype or second.shape != first.shape or not first.size:
        return None
    with np.errstate(all="ignore"):
        return Tensor.from_numpy(np.asarray(np.add(to_numpy(first), to_numpy(second), order="C")))


def difference(total: Any, part: Any) -> Any:
    """``total - part`` without any kernel, not all of which exist for all dtypes; None where it is but rounding."""
    whole, inner = to_numpy(total), to_numpy(part)
    with np.errstate(all="ignore"):
        # What overflowed in the part and so in the sum is the part's; inf - inf would be a NaN of our own.
        rest = np.where((whole == inner) | (np.isnan(whole) & np.isnan(inner)), whole.dtype.type(0), whole - inner)
    finite = np.abs(whole[np.isfinite(whole)])
    epsilon = 2.0**-7 if total.dtype == mindspore.bfloat16 else float(np.finfo(whole.dtype).eps)
    if not rest.size or np.abs(rest).max() <= 4 * epsilon * finite.max(initial=0):
        return None
    return Tensor(rest, total.dtype)
