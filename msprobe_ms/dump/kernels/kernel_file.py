"""One tensor of a kernel as the framework's own dump holds it: in a file, or as a row of figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.npy_reader import array_header, load_array
from msprobe_ms.arrays.statistics import Statistics
from msprobe_ms.dump.names import PARAMETER
from msprobe_ms.support.errors import MissingTensorError

INPUT = "input"
OUTPUT = "output"

#: Names without a dtype (GE) whose two-byte items have none either can only be of this.
_TWO_BYTES = "BFloat16"

#: dtype texts by lower case, as dump.json spells them.
_DTYPES = {
    name.lower(): name
    for name in (
        "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float16", "Float32",
        "Float64", "BFloat16", "Complex64", "Complex128", "Float8E4M3FN", "Float8E5M2", "Int4", "HiFloat8",
    )
}  # fmt: skip


def dtype_name(text: str) -> str:
    """
    >>> dtype_name("float32"), dtype_name("DT_FLOAT")
    ('Float32', 'DT_FLOAT')
    """
    return _DTYPES.get(text.strip().lower().removeprefix("kNumberType".lower()), text.strip())


@dataclass(frozen=True, slots=True)
class KernelFile:
    """One tensor that a kernel took in or gave out: a file, or a row of ``statistic.csv``.

    ``path``       the file; for a row the table that holds it
    ``op_name``    the scope path with ``_`` for ``/`` (as in file names), or with ``/`` where a table has it so
    ``timestamp``  microseconds; of one launch's files each may have its own
    ``io``         ``input`` or ``output``
    ``dtype``      as the name has it (``Float32``), None where it does not say
    ``shape``      known beforehand for rows of a table, and for ``.bin`` files that a table beside them speaks of
    ``figures``    Max, Min, Mean, Norm of a row of a table; None for files
    """

    path: Path
    op_type: str
    op_name: str
    task: int
    stream: int
    timestamp: int
    io: str
    slot: int
    format: str = ""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    figures: Statistics | None = None

    @property
    def is_parameter(self) -> bool:
        return self.op_type == PARAMETER

    @property
    def order(self) -> tuple[int, bool, int]:
        """Sorts into launch order; of one moment inputs come first."""
        return self.timestamp, self.io == OUTPUT, self.slot

    def load(self) -> np.ndarray:
        """The tensor; bfloat16 as float32 with the same bits. A ``.bin`` whose shape nothing tells is 1-D.

        :raises MissingTensorError: a row of a table, or the file is gone
        :raises DumpFormatError: the file is damaged, no regular file, or of a dtype that nothing tells
        """
        if self.figures is not None:
            raise MissingTensorError(f"{self.path}: holds statistics, no tensors")
        stored = self.dtype if self.path.suffix == ".bin" else self.dtype or _TWO_BYTES
        return load_array(self.path, stored, self.shape)

    def header(self) -> tuple[tuple[int, ...] | None, str | None]:
        """Shape and dtype without the tensor, as far as they can be known. Raises as ``load``."""
        if self.figures is not None or self.path.suffix == ".bin":
            return self.shape, self.dtype
        shape, stored = array_header(self.path, self.dtype or _TWO_BYTES)
        return shape, self.dtype or (_TWO_BYTES if stored.kind == "V" else dtype_name(stored.name))
