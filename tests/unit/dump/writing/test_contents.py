"""The index of a journal: parts are noted as they are written, and added when they are needed."""

from __future__ import annotations

from typing import Any

from msprobe_ms.dump.writing.contents import Contents, IndexedEntry

NOTED: list[tuple[Any, ...]] = [
    ("inner.forward", "outer.forward", 3, 100, False, "input_args", 10, "output", 5),
    ("outer.forward", None, 4, 200, False, "input_args", 7),
    ("outer.backward", None, None, 300, False, "input", 1),
    ("inner.backward", "outer.backward", None, 400, False, "input", 2),
    ("inner.backward", "outer.backward", None, 500, False, "output", 3),
    ("outer.backward", None, None, 600, True, "output", 4),
]

ENTRIES = {
    "inner.forward": IndexedEntry({"input_args": (100, 10), "output": (110, 5)}, "outer.forward", 3),
    "outer.forward": IndexedEntry({"input_args": (200, 7)}, None, 4),
    "inner.backward": IndexedEntry({"input": (400, 2), "output": (500, 3)}, "outer.backward", None),
    "outer.backward": IndexedEntry({"input": (300, 1), "output": (600, 4)}, None, None),
}


def test_what_is_noted_is_added_in_its_order() -> None:
    contents = Contents()
    contents.noted.extend(NOTED)
    contents.add_noted()
    assert list(contents.entries.items()) == list(ENTRIES.items())
    assert not contents.noted
    kept = contents.kept(1000, 5)
    assert list(kept.contents.entries.items()) == list(ENTRIES.items())
    assert (kept.contents.length, kept.checksum) == (1000, 5)
