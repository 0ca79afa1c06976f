"""One budget for all that a recording holds: copies that come and go, and indexes that stay."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from msprobe_ms.dump.writing.memory_budget import MIB, MemoryBudget, OutOfMemory
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart


def store(folder: Path, budget: MemoryBudget) -> DumpStore:
    return DumpStore(folder, task="structure", level="L0", framework="pytorch", tensors=False, memory=budget)


def fill(dump: DumpStore) -> int:
    """Record entries until there is no room; how many there was room for."""
    while True:
        try:
            dump.entry(EntryPart(f"Cell.fc.Dense.forward.{dump.entries}", []))
        except OutOfMemory:
            return dump.entries


def test_two_dumps_of_one_step_share_it(tmp_path: Path) -> None:
    """What ran in compiled graphs has a dump beside that of the rest: both indexes together keep to the limit."""
    alone = fill(store(tmp_path / "alone", MemoryBudget(MIB)))
    budget = MemoryBudget(MIB)
    first, second = store(tmp_path / "graph", budget), store(tmp_path / "pynative", budget)
    for number in range(alone // 2):
        first.entry(EntryPart(f"Cell.fc.Dense.forward.{number}", []))
    assert alone - 1 <= alone // 2 + fill(second) <= alone + 1


def test_copies_leave_room_for_entries(tmp_path: Path) -> None:
    """Tensors of calls that are open may hold all that they can: an entry still has its place."""
    budget = MemoryBudget(MIB)
    while budget.take(10_000):
        continue
    dump = store(tmp_path / "rank0", budget)
    for number in range(30):
        dump.entry(EntryPart(f"Cell.fc.Dense.forward.{number}", []))
    dump.close()
    assert dump.exported_entries == 30


def test_what_stays_takes_the_room_of_what_goes(tmp_path: Path) -> None:
    budget = MemoryBudget(MIB)
    assert budget.fits(MIB // 2)
    fill(store(tmp_path / "rank0", budget))
    assert not budget.fits(MIB // 2)
    assert not budget.take(MIB // 2)


def test_an_entry_waits_for_copies_that_are_being_written() -> None:
    """As training does: it is lost only where the disk takes nothing."""
    budget = MemoryBudget(MIB)
    copies = MIB * 3 // 4
    assert budget.take(copies)
    budget.due["a writer"] = time.monotonic() + 60
    threading.Timer(0.2, budget.hand_back, [copies]).start()
    begun = time.monotonic()
    assert budget.stay(MIB // 2)
    assert 0.1 < time.monotonic() - begun < 30


@pytest.mark.parametrize("due", [0.0, 0.2])
def test_a_disk_that_stands_still_is_not_waited_for(due: float) -> None:
    budget = MemoryBudget(MIB)
    assert budget.take(MIB * 3 // 4)
    budget.due["a writer"] = due and time.monotonic() + due
    begun = time.monotonic()
    assert not budget.take_when_free(MIB // 2)
    assert not budget.stay(MIB // 2)
    assert time.monotonic() - begun < 30
    assert not budget.wait(0.01)


def test_what_another_writer_hands_back_counts_for_all() -> None:
    """Both halves of a step write files: one of them waits for what the other holds."""
    budget = MemoryBudget(MIB)
    assert budget.take(MIB * 3 // 4)
    budget.due["the first"], budget.due["the second"] = 0.0, time.monotonic() + 60
    threading.Timer(0.2, budget.hand_back, [MIB * 3 // 4]).start()
    assert budget.take_when_free(MIB // 2)
