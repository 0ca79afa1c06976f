"""Figures of tensors on a device, which training does not wait for; those of many are read back at once.

What is sent to the device for a tensor costs the host some microseconds an operation, so they are to be few. A small
tensor is copied as it is, by one operation, and the host computes its figures from the copy once that is read back. A
large one is reduced where it is, in double, and a few numbers of it are read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from msprobe_ms.arrays import sketch as sketches
from msprobe_ms.arrays.statistics import Statistics, parts, together

#: Bytes of a tensor that is copied; so what waits for one read-back takes at most 32 MB of the device's memory.
SMALL = 1 << 15

#: Elements that are made wider at once; their products with the vectors of a sketch take 24 bytes each.
_WIDENED = 1 << 21

#: Statistics, text of the sketch, checksum.
FiguresOfTensor = tuple[Statistics, str | None, str | None]

#: ``figures(tensor, sketch, md5)`` of a tensor on the host, the last two where asked for.
FiguresOnHost = Callable[[torch.Tensor, bool, bool], FiguresOfTensor]

#: Operations run on what they are given: under autocast some would make tensors narrower first, or refuse them.
_as_given: Callable[[], Any] = getattr(torch._C, "_DisableAutocast", nullcontext)


class PendingCopy(NamedTuple):
    """A copy of a small tensor, in C order. ``stream`` is what makes it, on CUDA."""

    tensor: torch.Tensor
    stream: Any
    sketch: bool
    md5: bool

    @property
    def on_device(self) -> Sequence[torch.Tensor]:
        return (self.tensor,) if self.tensor.numel() else ()

    def told(self, on_host: Sequence[torch.Tensor], figures: FiguresOnHost) -> FiguresOfTensor:
        (tensor,) = on_host or (torch.empty(self.tensor.shape, dtype=self.tensor.dtype),)
        return figures(tensor, self.sketch, self.md5)


class PendingNumbers(NamedTuple):
    """What a large tensor was reduced to, all of it float64.

    ``numbers`` are Max, Min, sum and norm of each piece of the tensor, one after another; ``sizes`` counts the elements
    of each piece. ``sketch`` is what `sketches.finished_text` takes, in parts, none where there is to be no sketch.
    """

    numbers: Sequence[torch.Tensor]
    stream: Any
    sketch: Sequence[torch.Tensor]
    sizes: Sequence[int]
    dtype: torch.dtype

    @property
    def on_device(self) -> Sequence[torch.Tensor]:
        return (*self.numbers, *self.sketch)

    def told(self, on_host: Sequence[torch.Tensor], _: FiguresOnHost) -> FiguresOfTensor:
        rows = zip(*(iter([number.item() + 0.0 for number in on_host[: len(self.numbers)]]),) * 4, strict=True)
        found = [(size, self._of_piece(size, *row)) for size, row in zip(self.sizes, rows, strict=True)]
        statistics = found[0][1] if len(found) == 1 else together(found)
        if not self.sketch:
            return statistics, None, None
        elements = sum(self.sizes) * (2 if self.dtype.is_complex else 1)
        numbers = torch.cat(tuple(on_host[len(self.numbers) :])).numpy()
        return statistics, sketches.finished_text(numbers, elements, _of_sketch(self.dtype)), None

    def _of_piece(self, size: int, maximum: float, minimum: float, total: float, norm: float) -> Statistics:
        if self.dtype == torch.bool:
            return Statistics(bool(maximum), bool(minimum), None, None)
        return Statistics(maximum, minimum, total / size, norm)


Pending = PendingCopy | PendingNumbers


def is_on_device(tensor: torch.Tensor) -> bool:
    """Whether a tensor is on a device of its own."""
    return tensor.is_cuda


def start(
    tensor: torch.Tensor, wider: torch.dtype | None, *, sketch: bool = False, md5: bool = False
) -> Pending | None:
    """Start the figures of a dense tensor of any shape, by operations that nobody waits for.

    They are those of ``arrays.statistics``. ``wider`` is a dtype that holds the values of one that has no arithmetic.
    None for a large tensor of which a checksum is asked for.
    """
    with _as_given():
        stream = torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None
        if tensor.nbytes <= SMALL:  # what is written into it later is not what it holds now
            return PendingCopy(tensor.clone(memory_format=torch.contiguous_format), stream, sketch, md5)
        if md5:
            return None
        numbers: list[torch.Tensor] = []
        of_sketch: list[torch.Tensor] = []
        sizes = []
        for piece in _pieces(tensor, wider):
            sizes.append(piece.numel())
            wide = (piece.abs() if piece.is_complex() else piece).double()
            minimum, maximum = torch.aminmax(wide)
            numbers += [maximum, minimum, wide.sum(), torch.linalg.vector_norm(wide)]
            if sketch:
                of_sketch += _sketch(torch.view_as_real(piece).reshape(-1).double() if piece.is_complex() else wide)
        return PendingNumbers(numbers, stream, of_sketch, sizes, tensor.dtype)


def _pieces(tensor: torch.Tensor, wider: torch.dtype | None) -> Iterator[torch.Tensor]:
    """The elements in their order, flat, in pieces of ``_WIDENED``, a multiple of ``BLOCK``, and a last one."""
    if tensor.is_contiguous() or tensor.numel() <= _WIDENED:
        yield from (_with_arithmetic(piece, wider) for piece in tensor.reshape(-1).split(_WIDENED))
        return
    held: list[torch.Tensor] = []
    lacking = _WIDENED
    for index in parts(tuple(tensor.shape), _WIDENED):
        rest = _with_arithmetic(tensor[index].reshape(-1), wider)
        while rest.numel():
            held.append(rest[:lacking])
            rest, lacking = rest[lacking:], lacking - held[-1].numel()
            if not lacking:
                yield torch.cat(held)
                held, lacking = [], _WIDENED
    if held:
        yield torch.cat(held)


def _with_arithmetic(piece: torch.Tensor, wider: torch.dtype | None) -> torch.Tensor:
    return piece.to(wider or piece.dtype)


def _of_sketch(dtype: torch.dtype) -> np.dtype:
    """The dtype of a tensor's sketch: float64 of doubles and integers."""
    narrow = dtype.is_floating_point or dtype.is_complex or dtype == torch.bool
    return np.dtype(np.float64 if not narrow or dtype in (torch.float64, torch.complex128) else np.float32)


@lru_cache(maxsize=64)
def _steps(device: torch.device, stream: int) -> tuple[torch.Tensor, ...]:
    """Vectors of rows, (set, vector, 512), what folds the products, vectors of the rest.

    Each stream has its own, as one need not wait for what another copies.
    """
    vectors, folding, rest = sketches.steps()
    return tuple(torch.from_numpy(np.ascontiguousarray(t)).to(device) for t in (vectors.swapaxes(0, 1), folding, rest))


def _sketch(numbers: torch.Tensor) -> Iterator[torch.Tensor]:
    """What `sketches.finished_text` takes of a piece, in parts.

    By products and sums: a product of matrices may be computed with less precision, or refused where it need not be
    the same each time.
    """
    stream = torch.cuda.current_stream(numbers.device).cuda_stream if numbers.is_cuda else 0
    vectors, folding, rest = _steps(numbers.device, stream)
    whole = sketches.groups(numbers.numel())
    if whole:
        rows = numbers[:whole].view(-1, vectors.shape[0], 1, vectors.shape[2])
        yield from _sums_with((rows * vectors).sum(-1).view(-1), folding)
    if whole < numbers.numel():
        yield from _sums_with(numbers[whole:], rest)


def _sums_with(numbers: torch.Tensor, vectors: torch.Tensor) -> Iterator[torch.Tensor]:
    """The sums of the products of each row of ``numbers``, the last of which may be shorter, and each vector."""
    width = vectors.shape[1]
    whole = numbers.numel() - numbers.numel() % width
    for row in (numbers[:whole].view(-1, 1, width), numbers[whole:].view(1, 1, -1)):
        if row.numel():
            yield (row * vectors[:, : row.shape[-1]]).sum(-1).view(-1)


def read(found: Sequence[Pending], figures: FiguresOnHost) -> list[tuple[Any, ...]]:
    """Read Max, Min, Mean, Norm, the text of the sketch and the checksum of each, by one read-back a device.

    ``figures`` computes them of what was copied.
    """
    for stream in {one.stream for one in found if one.stream is not None}:
        # Not for the whole device: what others send may depend on what this process does next.
        torch.cuda.current_stream(stream.device).wait_stream(stream)
    with _as_given():
        on_host = _on_host([tensor for one in found for tensor in one.on_device])
    told = []
    for one in found:
        statistics, *others = one.told([next(on_host) for _ in one.on_device], figures)
        told.append((*statistics, *others))
    return told


def _on_host(tensors: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield each on the host, by one read-back a device: their bytes one after another."""
    # Those of wide elements first, so that each begins where its elements may lie.
    order = sorted(range(len(tensors)), key=lambda place: (str(tensors[place].device), -tensors[place].element_size()))
    chunks: dict[torch.device, list[torch.Tensor]] = {}
    for place in order:
        tensor = tensors[place]
        chunks.setdefault(tensor.device, []).append(tensor.view(-1).view(torch.uint8))
    found: dict[int, torch.Tensor] = {}
    places = iter(order)
    for of_device in chunks.values():
        sizes = [chunk.numel() for chunk in of_device]
        for chunk in torch.cat(of_device).cpu().split(sizes):
            place = next(places)
            found[place] = chunk.view(tensors[place].dtype).view(tensors[place].shape)
    return (found[place] for place in range(len(tensors)))
