"""Columns of numbers as text in a page: transformed, shuffled, compressed; the script decodes them when it needs them.

docs/report_page_design.md describes the format.
"""

from __future__ import annotations

import json
import zlib
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import Z_DEFAULT_STRATEGY, Z_RLE

import numpy as np
import numpy.typing as npt

#: Numbers in one chunk: the script decodes only the chunks that it shows.
_CHUNK = 1 << 16
#: Of 1 to 9. A higher one makes pages smaller by a hundredth and takes twice as long. isal would take a seventh of the
#: time, but what it writes of the same bytes differs now and then, and the same comparison is to make the same page.
_LEVEL = 1
#: What zlib takes for the form of gzip, without a time.
_GZIP = 31
#: Bytes of floats hardly ever repeat but one after the other: to look for more takes twice as long.
_STRATEGIES = {"f32": Z_RLE}
#: Stands in columns of float32 where there is no number; another NaN is the value NaN.
NOTHING = np.uint32(0x7FC00001)
_TYPES = {np.dtype(np.uint8): "u8", np.dtype(np.uint16): "u16", np.dtype(np.uint32): "u32", np.dtype(np.float32): "f32"}


class Columns:
    """The columns of a page, in the order they are added.

    ``index`` describes them, by name, for the script.
    """

    def __init__(self) -> None:
        self.index: dict[str, dict[str, object]] = {}
        self._chunks: list[str] = []

    def add(self, name: str, numbers: npt.NDArray[Any], *, delta: bool = False, dictionary: str = "") -> None:
        """Add an array of uint8, uint16, uint32 or float32.

        ``delta`` stores differences of neighbours; ``dictionary`` names the JSON column that explains the codes.
        """
        self._add(name, numbers, "delta" if delta else "", _differences if delta else _as_they_are, dictionary)

    def add_beside(self, name: str, numbers: npt.NDArray[np.float32], other: str, reference: npt.NDArray[Any]) -> None:
        """Add float32 numbers as what differs in their bits from those of column ``other``: equal ones are zeros."""
        bits = numbers.view(np.uint32) ^ reference.view(np.uint32)
        self._add(name, bits, f"xor:{other}", _as_they_are, "", "f32")

    def add_json(self, name: str, values: Sequence[Any]) -> None:
        """Add a list of what JSON can hold; lone surrogates in texts stay, as escapes."""
        text = json.dumps(list(values), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        self.index[name] = {"type": "json", "length": len(values), "chunks": [self._keep(text.encode("ascii"))]}

    def elements(self) -> Iterator[str]:
        """Yield the chunks as elements of a page."""
        for number, text in enumerate(self._chunks):
            yield f'<script type="text/plain" id="k{number}">{text}</script>\n'

    def _add(
        self, name: str, numbers: npt.NDArray[Any], transform: str, transformed: Any, dictionary: str, kind: str = ""
    ) -> None:
        kind = kind or _TYPES[numbers.dtype]
        parts = (numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK))
        chunks = [self._keep(_shuffled(transformed(part)), _STRATEGIES.get(kind, Z_DEFAULT_STRATEGY)) for part in parts]
        described: dict[str, object] = {
            "type": kind, "length": len(numbers), "chunks": chunks, "transform": transform,
        }  # fmt: skip
        if dictionary:
            described["dictionary"] = dictionary
        self.index[name] = described

    def _keep(self, content: bytes, strategy: int = Z_DEFAULT_STRATEGY) -> str:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP, strategy=strategy)
        packed = packer.compress(content) + packer.flush()
        self._chunks.append(b2a_base64(packed, newline=False).decode("ascii"))
        return f"k{len(self._chunks) - 1}"


class _Numbers(dict[Any, int]):
    """A number for each value that is asked for, from 0 on."""

    def __missing__(self, value: Any) -> int:
        self[value] = number = len(self)
        return number


class Codes:
    """Numbers for values that repeat: what a column holds, and the dictionary that explains them."""

    def __init__(self, *first: Any) -> None:
        self._codes = _Numbers()
        self.codes(first)

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def values(self) -> list[Any]:
        """The values, each at the place that is its number."""
        return list(self._codes)

    def code(self, value: Any) -> int:
        """Return the number of a value, a new one where it has none."""
        return self._codes[value]

    def numbers(self, values: Iterable[Any]) -> npt.NDArray[np.uint32]:
        """Return the numbers of many values in an array."""
        return np.fromiter(map(self._codes.__getitem__, values), np.uint32)

    def codes(self, values: Iterable[Any]) -> list[int]:
        """Return the numbers of many values."""
        return [*map(self._codes.__getitem__, values)]


def floats(values: npt.ArrayLike, missing: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.float32]:
    """Return numbers as float32, with the one NaN that stands for the value, and ``NOTHING`` where ``missing``."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = np.asarray(values, np.float64).astype(np.float32)
    bits = found.view(np.uint32)
    bits[np.isnan(found)] = 0x7FC00000
    if missing is not None:
        bits[missing] = NOTHING
    return found


def rounded(numbers: npt.NDArray[np.float32], bits: int) -> npt.NDArray[np.float32]:
    """Return float32 numbers rounded to so many bits of their fraction (of 23): the zeros behind them compress away."""
    dropped = 23 - bits
    raw = numbers.view(np.uint32)
    near = (raw + np.uint32(1 << (dropped - 1))) & np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    return np.where(np.isfinite(numbers), near, raw).view(np.float32)


def _as_they_are(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return numbers


def _differences(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The first number, then what each adds to the one before it, modulo their size."""
    return np.diff(numbers, prepend=numbers.dtype.type(0))


def _shuffled(numbers: npt.NDArray[Any]) -> bytes:
    """All first bytes of the numbers, then all second ones: those of alike numbers are alike, and compress."""
    width = numbers.dtype.itemsize
    raw = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes()
    return b"".join(raw[place::width] for place in range(width))  # a tenth of the time that a transposed array takes
