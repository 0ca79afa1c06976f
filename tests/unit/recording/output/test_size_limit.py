"""Tensors of a sample: those that fit are written, of others the entry alone is there."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.npy import write_npy
from msprobe_ms.dump.writing.memory_budget import Copy
from msprobe_ms.dump.writing.writer import TENSOR_FOLDER, DumpStore, EntryPart
from msprobe_ms.recording.output.size_limit import SizeLimit


class Room:
    """So many bytes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def takes(self, base: str) -> bool:
        return True

    def fits(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


def test_a_tensor_that_does_not_fit_has_no_file_and_its_entry_is_recorded(tmp_path: Path) -> None:
    store = DumpStore(tmp_path / "rank0", task="tensor", level="L1", framework="pytorch", tensors=True)
    limit = SizeLimit(store, Room(1000))
    entry = "Functional.relu.0.forward"

    def written(name: str, count: int) -> bool:
        array = np.zeros(count, np.float32)
        write = partial(write_npy, array=array)
        return limit.tensor(name, write, entry, Copy(array.nbytes, lambda: write))

    fitted = [written("small.npy", 10), written("large.npy", 1000), written("other.npy", 20)]
    limit.entry(EntryPart(entry, []))
    store.close()
    assert fitted == [True, False, True]
    files = {file.name for file in (tmp_path / "rank0" / TENSOR_FOLDER).iterdir()}
    assert files == {"small.npy", "other.npy"}
    assert list(json.loads((tmp_path / "rank0" / "dump.json").read_text())["data"]) == [entry]
