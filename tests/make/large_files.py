"""Files larger than any memory that take no room on the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

#: Elements of a tensor of a tebibyte.
LARGE = 1 << 38


def large_npy(file: Path) -> Path:
    """Write a file of that many elements, all of them zero."""
    with file.open("wb") as written:
        header = {"descr": "<f4", "fortran_order": False, "shape": (LARGE,)}
        np.lib.format.write_array_header_1_0(written, header)  # type: ignore[no-untyped-call]
        written.truncate(written.tell() + 4 * LARGE)
    return file
