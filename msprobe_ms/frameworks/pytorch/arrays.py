"""Tensors of PyTorch as arrays: which may be read, and their elements, wherever and however they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from msprobe_ms.arrays.one_pass import Kind, Places, kind_of
from msprobe_ms.arrays.repetition import distinct
from msprobe_ms.arrays.statistics import LARGE
from msprobe_ms.frameworks.pytorch.genuine import COMMON, own
from msprobe_ms.support.interruptions import interrupts

#: How the names of dtypes begin whose elements are no numbers.
_PACKED = ("bits", "float4_")

#: dtypes numpy has no twin of, and the wider one that holds their values exactly.
WIDER: dict[torch.dtype, torch.dtype] = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64} | {
    dtype: torch.float32
    for name, dtype in vars(torch).items()
    if name.startswith("float8_") and isinstance(dtype, torch.dtype)
}

#: The dtypes that are read where they lie.
KINDS: dict[torch.dtype, Kind] = {
    dtype: kind for dtype in vars(torch).values() if isinstance(dtype, torch.dtype) and (kind := kind_of(str(dtype)))
}

#: How most tensors tell where their elements lie.
PLACES = Places(
    types=COMMON, instead=None,
    expected=(
        (own("is_cpu"), True), (own("layout"), torch.strided), (own("is_neg"), False), (own("is_nested"), False)
    ),
    dtype=own("dtype"), kinds=KINDS,
    storage=own("untyped_storage"), begin=torch.UntypedStorage.data_ptr, held=torch.UntypedStorage.nbytes,
    offset=own("storage_offset"), is_contiguous=own("is_contiguous"), shape=own("shape"), strides=own("stride"),
    address=own("data_ptr"), requires_grad=own("requires_grad"),
)  # fmt: skip

#: The dtypes of numbers; others, packed ones for instance, have no figures.
NUMBERS = frozenset((*KINDS, *WIDER, torch.complex64, torch.complex128))

#: Those in which PyTorch packs what it cannot compute with, and those whose numbers only a quantizer tells.
_WITHOUT_NUMBERS = frozenset(
    dtype for name, dtype in vars(torch).items() if isinstance(dtype, torch.dtype) and name.startswith(_PACKED)
)
_QUANTIZED = frozenset((torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4))
_UNUSUAL = _WITHOUT_NUMBERS | _QUANTIZED
#: What files cannot name: as they are written instead.
SAVED_AS: dict[torch.dtype, torch.dtype] = {
    getattr(torch, f"{kind}{bits}"): getattr(torch, f"{kind}8")
    for kind in ("int", "uint")
    for bits in range(1, 8)
    if hasattr(torch, f"{kind}{bits}")
}

_COMPRESSED = frozenset((torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc))


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the memory that a tensor names is its own: it may be freed, or that of a device that holds nothing."""
    # Asked of every tensor: no calls that find out what is so of few.
    try:
        storage = tensor.untyped_storage()
        if type(tensor) not in COMMON and storage.device.type == "meta":
            return False  # one that is fake warns when it is asked for its address
        begin, address = storage.data_ptr(), tensor.data_ptr()
    except RuntimeError as error:
        if isinstance(error, RecursionError) or interrupts(error):
            raise
        return _is_readable_in_parts(tensor)
    end = begin + storage.nbytes()
    if tensor.dtype in _UNUSUAL and not _has_numbers(tensor):
        return False
    if begin and address + tensor.nbytes <= end and tensor.is_contiguous():
        return not tensor.is_nested
    return not tensor.is_nested and (not tensor.numel() or bool(begin and address + extent(tensor) <= end))


def _has_numbers(tensor: torch.Tensor) -> bool:
    """Whether one of an unusual dtype has; one that was made by `torch.empty` may lack its quantizer."""
    if tensor.dtype in _WITHOUT_NUMBERS:
        return False
    try:
        tensor.qscheme()
    except RuntimeError as error:
        if isinstance(error, RecursionError) or interrupts(error):
            raise
        return False
    return True


def extent(tensor: torch.Tensor) -> int:
    """The bytes from a tensor's first element to the end of its last."""
    elements = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return elements * tensor.element_size()


def _is_readable_in_parts(tensor: torch.Tensor) -> bool:
    """The same of a tensor without a memory of its own: sparse or distributed, or else a stand-in of a transform."""
    if hasattr(tensor, "to_local"):
        return is_readable(tensor.to_local())
    return tensor.layout is not torch.strided and not tensor.is_nested and all(map(is_readable, held(tensor)))


def held(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """The tensors that a sparse one consists of."""
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return ()


def in_own_storage(tensor: torch.Tensor, *, copy: bool = False) -> torch.Tensor:
    """A tensor on the host in a storage of its own; what a large one only shows once more is not copied."""
    shown = tensor.shape
    known = distinct(tensor, tuple(shown), tensor.stride(), LARGE).elements
    tensor = tensor if known is None else known
    on_host = tensor.cpu()
    alone = on_host.is_contiguous() and on_host.untyped_storage().nbytes() == on_host.nbytes
    if not alone or (copy and on_host is tensor):
        on_host = on_host.clone(memory_format=torch.contiguous_format)
    return on_host.expand(shown)


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's own memory as an array, to read.

    ``Tensor.numpy`` would forbid for good that the memory is resized or freed, as FSDP does with it.
    """
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError) as error:  # dtypes that some releases do not hand out in this way
        if interrupts(error):
            raise
        return tensor.clone().numpy()


def as_bytes(tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor on the host whose elements lie one behind the other."""
    return as_array(tensor.reshape(-1).view(torch.uint8)).data if tensor.numel() else memoryview(b"")


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values as a plain dense tensor outside every graph; of a distributed tensor, this rank's part."""
    return dense(tensor.detach())


def dense(tensor: torch.Tensor) -> torch.Tensor:
    if type(tensor) is not torch.Tensor and hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout in _COMPRESSED:  # made unchecked, its indices may be any: `to_dense` writes where they lead
        torch._validate_sparse_compressed_tensor_args(*held(tensor), tensor.shape, tensor.layout)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg() if tensor.is_conj() or tensor.is_neg() else tensor
