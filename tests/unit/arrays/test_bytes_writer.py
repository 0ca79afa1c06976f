"""Files that hold the bytes of elements as they lie: how many bytes stand around them."""

from __future__ import annotations

import io

import numpy as np
import pytest

from msprobe_ms.arrays.bytes_writer import BytesWriter
from msprobe_ms.arrays.npy import npy_writer
from msprobe_ms.arrays.torch_writing import torch_writer

SHAPES: list[tuple[int, ...]] = [(), (3,), (4, 5), (1, 2, 3, 4, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", ["npy", "pt"])
def test_what_stands_around_the_elements_has_the_lengths_that_are_told(shape: tuple[int, ...], suffix: str) -> None:
    writer = npy_writer("<f4", shape) if suffix == "npy" else torch_writer("float32", shape)
    assert isinstance(writer, BytesWriter)
    elements, file = np.arange(np.prod(shape, dtype=int), dtype=np.float32).tobytes(), io.BytesIO()
    writer(file, elements)
    head, tail = writer.around(elements)
    assert (len(head), len(tail)) == (writer.before, writer.after) and file.getvalue() == head + elements + tail
