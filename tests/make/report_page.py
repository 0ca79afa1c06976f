"""Read a report page as its script does (docs/report_page_design.md): the index and the columns, as numbers."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

_TYPES = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "f32": "<f4"}


class Page:
    """A page that was written; ``text`` is all of it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def of(cls, path: Path) -> Page:
        return cls(path.read_text("utf-8"))

    @property
    def static(self) -> str:
        """What is there before the data."""
        return self.text.partition('<script type="application/json"')[0]

    @cached_property
    def index(self) -> dict[str, Any]:
        found = re.search(r'<script type="application/json" id="index">(.*?)</script>', self.text, re.DOTALL)
        assert found is not None
        index: dict[str, Any] = json.loads(found[1])
        return index

    @cached_property
    def _chunks(self) -> dict[str, bytes]:
        found = re.findall(r'<script type="text/plain" id="(k\d+)">(.*?)</script>', self.text, re.DOTALL)
        return {name: gzip.decompress(b64decode(text, validate=True)) for name, text in found}

    def column(self, name: str) -> Any:
        """Numbers as an array, JSON as it is, codes as what they stand for."""
        described = self.index["columns"][name]
        chunks = [self._chunks[chunk] for chunk in described["chunks"]]
        if described["type"] == "json":
            return json.loads(chunks[0])
        numbers = np.concatenate([self._numbers(chunk, described) for chunk in chunks] or [np.zeros(0, "<u1")])
        assert len(numbers) == described["length"]
        transform = described["transform"]
        if transform.startswith("xor:"):
            bits = self.column(transform.removeprefix("xor:")).view("<u4")
            return (numbers.view("<u4") ^ bits).view("<f4")
        if dictionary := described.get("dictionary"):
            values = self.column(dictionary)
            return [values[code] for code in numbers]
        return numbers

    @staticmethod
    def _numbers(chunk: bytes, described: dict[str, Any]) -> Any:
        kind = np.dtype(_TYPES[described["type"]])
        raw = np.frombuffer(chunk, np.uint8).reshape(kind.itemsize, -1).T
        numbers = np.ascontiguousarray(raw).reshape(-1).view(kind)
        return np.cumsum(numbers, dtype=kind) if described["transform"] == "delta" else numbers

    def names(self) -> list[str]:
        """The names of the values, in their order: the call's and what follows it; the target's where it has one."""
        calls, slots = self.column("call_names"), self.column("row_slot")
        goldens = self.column("row_golden_slot")
        starts = [*self.column("call_rows"), self.index["rows"]]
        owners = np.repeat(np.arange(len(calls)), np.diff(starts))
        return [f"{calls[owner]}.{slot or golden}" for owner, slot, golden in zip(owners, slots, goldens, strict=True)]


def is_missing(numbers: Any) -> Any:
    """Where float32 numbers of a page are none at all."""
    return numbers.view("<u4") == 0x7FC00001
