"""One comparison as a whole."""

from __future__ import annotations

import json
import weakref
from pathlib import Path

import numpy as np
from rank_dumps import call, write_dump

from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.columns import ItemSlice
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.process import no_garbage_collection


def write_net(folder: Path, fault: float) -> Path:
    """A module with two layers in it, the second of which is wrong by ``fault``."""
    x = np.arange(1, 9, dtype=np.float32)
    given, result = x * 2, x * np.float32(2 * (1 + fault))
    data = {
        "Cell.block.fc1.Dense.forward.0": call(x, given),
        "Cell.block.fc2.Dense.forward.0": call(given, result),
        "Cell.block.Block.forward.0": call(x, result),
    }
    write_dump(folder, data)
    block = "Cell.block.Block.forward.0"
    (folder / "construct.json").write_text(json.dumps({name: block if name != block else None for name in data}))
    return folder


def test_a_comparison_is_freed_without_a_search_for_cycles(tmp_path: Path) -> None:
    target, golden = write_net(tmp_path / "target", 0.5), write_net(tmp_path / "golden", 0.0)
    with no_garbage_collection():
        dumps = [read_dump(target), read_dump(golden)]
        comparison = compare_dumps(dumps[0], dumps[1], Options())
        assert [origin.target for origin in comparison.origins] == ["Cell.block.fc2.Dense.forward.0.output.0"]
        items = [entry.items for dump in dumps for entry in dump.entries.values()]
        tables = {weakref.ref(each.table) for each in items if isinstance(each, ItemSlice)}
        del dumps, comparison, items
        assert len(tables) == 2 and not any(table() for table in tables)
