"""The folder between a training and the process that judges its calls."""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.remote.spool import Progress, Spool


def dumped(spool: Spool, step: int) -> Path:
    """A step's dump, with a file of 100 bytes."""
    folder = spool.folder / f"step{step}" / "proc1"
    (folder / "dump_tensor_data").mkdir(parents=True)
    (folder / "dump_tensor_data" / "x.npy").write_bytes(b"x" * 100)
    return folder


def test_samples_come_in_their_order_and_only_once_they_are_handed_over(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.make()
    for number, step in enumerate((8, 9, 10), 1):
        spool.hand_over(dumped(spool, step), number, f"step{step}")
    being_recorded = dumped(spool, 11)
    samples = spool.samples()
    assert [(sample.step, sample.whole) for sample in samples] == [("step8", True), ("step9", True), ("step10", True)]
    assert spool.waiting() == 400
    assert [(each.step, each.folder, each.whole) for each in spool.unfinished()] == [("step11", being_recorded, False)]
    spool.remove(samples[0])
    assert [sample.step for sample in spool.samples()] == ["step9", "step10"]
    spool.discard()
    assert not spool.folder.exists() and spool.samples() == [] and spool.waiting() == 0


def test_steps_that_are_counted_anew_have_names_of_their_own(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.hand_over(dumped(spool, 0), 1, "step0")
    spool.hand_over(dumped(spool, 0), 2, "run2.step0")
    assert [sample.step for sample in spool.samples()] == ["step0", "run2.step0"]


def test_progress_is_read_as_it_was_told(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.progress() == Progress()
    spool.tell(told := Progress(7, 2, {"Functional.relu": (9, 4)}, {"Tensor.item": "no values of its own"}, "cpu"))
    read = spool.progress()
    assert {api: tuple(counts) for api, counts in read.calls.items()} == told.calls
    assert (read.steps, read.sampled, read.unchecked, read.device, read.ended) == (7, 2, told.unchecked, "cpu", False)
    (tmp_path / "progress.json").write_text('{"steps": ')
    assert spool.progress() == Progress()


def test_a_judged_call_leaves_a_sign(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.last_progress() == 0
    spool.note_progress()
    assert spool.last_progress() > 0
