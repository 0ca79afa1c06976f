"""A training waits for room as long as it was told to, once, and then goes on without: every step has its word."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from msprobe_ms.remote import outgoing as module
from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.outgoing import Outgoing
from msprobe_ms.remote.spool import DROPPED, NO_ROOM, Spool


class Idle:
    """In place of the process that sends: nothing is sent."""

    def __init__(self, spool: Spool, sending: object) -> None:
        self.finished = False

    def keep_alive(self) -> bool:
        return True

    def finish(self) -> None:
        self.finished = True


def steps_of(outgoing: Outgoing, numbers: range, size: int) -> list[int]:
    """The steps that are recorded, each with a tensor of so many bytes."""
    recorded = []
    for step in numbers:
        if outgoing.begin(step, 0, speaks=False):
            recorded.append(step)
            dump = outgoing.folder / f"step{step}" / "rank0"
            dump.mkdir(parents=True)
            (dump / "dump.json").write_bytes(b"{}")
            if outgoing.fits(size):
                (dump / "tensor").write_bytes(b"x" * size)
            outgoing.end(dump, step)
    return recorded


def test_without_room_steps_are_left_out_after_one_wait_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SenderProcess", Idle)
    outgoing = Outgoing(Address("", "localhost", 5), tmp_path, 1000, 0.3)
    began = time.monotonic()
    assert steps_of(outgoing, range(6), 300) == [0, 1]
    assert 0.3 < time.monotonic() - began < 0.6, "it waits once, not at each step"
    spool = Spool(outgoing.folder)
    for sample in spool.samples():
        spool.remove(sample)
    assert steps_of(outgoing, range(6, 8), 2000) == [6, 7]
    samples = spool.samples()
    assert [sample.step for sample in samples] == ["step2-step5", "step6", "step7"]
    assert "took all the room" in (samples[0].folder / DROPPED).read_text()
    assert (samples[1].folder / NO_ROOM).exists(), "a tensor that is larger than all the room"
    outgoing.finish()
    assert spool.progress().ended and spool.progress().steps == 8


def test_steps_that_are_counted_anew_have_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SenderProcess", Idle)
    outgoing = Outgoing(Address("", "localhost", 5), tmp_path, 10_000, 0.1)
    steps_of(outgoing, range(2), 1)
    steps_of(outgoing, range(2), 1)
    assert [sample.step for sample in Spool(outgoing.folder).samples()] == [
        "step0",
        "step1",
        "run2.step0",
        "run2.step1",
    ]
