"""Entries that wait for figures on a device, while others come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.dump.writing.json_text import TensorLeaf
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart
from msprobe_ms.recording.output import deferred_statistics
from msprobe_ms.recording.output.deferred_statistics import DeferredStatistics
from msprobe_ms.recording.output.error_log import ErrorLog


def test_an_entry_that_comes_while_others_are_written_waits_for_its_own_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a second device do, whose backward runs on a thread of its own."""
    monkeypatch.setattr(deferred_statistics, "LONGEST", 1000.0)
    store = DumpStore(tmp_path / "step0", task="statistics", level="L0", framework="pytorch", tensors=False)
    read: list[list[float]] = []

    class Writing:
        """Hands a second entry over while the first is written."""

        full, call_site, tensor, forget = False, store.call_site, store.tensor, store.forget

        def __init__(self) -> None:
            self.written: list[bytes] = []

        def entry(self, part: EntryPart) -> None:
            self.written.append(part.encode())
            if len(self.written) == 1:
                add("second", 2.0)

    def reading(on_device: Sequence[Any]) -> Sequence[Sequence[Any]]:
        read.append(list(on_device))
        return [(value, value, value, value, None, None) for value in on_device]

    sink = Writing()
    deferred = DeferredStatistics(sink, reading, ErrorLog(store.files, set(), store.mark_incomplete))

    def add(name: str, value: float) -> None:
        *figures, _, _ = deferred.of(value)
        deferred.entry(EntryPart(name, [("output", [TensorLeaf("torch.Tensor", "torch.float32", (1,), *figures)])]))

    add("first", 1.0)
    deferred.fetch()
    assert read == [[1.0], [2.0]]
    assert [b"1.0" in sink.written[0], b"2.0" in sink.written[1]] == [True, True]
    assert not deferred.waits
    store.close()
