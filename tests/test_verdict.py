"""What the terminal says of what could not be compared as it was meant."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.compare.run import Options, Outcome, compare_dumps
from msprobe_ms.compare.verdict import verdict_lines
from msprobe_ms.store.model import Dump

ENTRIES = [f"Functional.relu.{number}.forward" for number in range(3)]


def with_files(folder: Path, figures: bool = True) -> Dump:
    """A tensor dump of three calls, with statistics or without."""
    changed = {} if figures else dict.fromkeys(("maximum", "minimum", "mean", "norm"))
    (folder / "dump_tensor_data").mkdir(parents=True)
    items = [tensor("output.0", np.float32([1, number]), entry, **changed) for number, entry in enumerate(ENTRIES)]
    for number, item in enumerate(items):
        np.save(folder / "dump_tensor_data" / str(item.data_name), np.float32([1, number]))
    made = dump(items, folder=folder)
    made.mode = "tensor"
    return made


def told(target: Dump, golden: Dump) -> list[str]:
    comparison = compare_dumps(target, golden, Options())
    return list(verdict_lines(Outcome("", target, golden, comparison, [])))


def test_tensors_that_could_not_be_read_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    target, golden = with_files(tmp_path / "target"), with_files(tmp_path / "golden")
    lost = tmp_path / "golden" / "dump_tensor_data" / f"{ENTRIES[1]}.output.0.npy"
    lost.unlink()
    lines = told(target, golden)
    assert lines[:3] == [
        "3 values compared (tensor); without a twin: 0 in the target, 0 in the golden",
        "1 of 3 tensors could not be read; their statistics were compared instead, which tell less",
        f"  the first: {lost}: no such file",
    ]
    assert lines[3].startswith("CONSISTENT")


def test_a_side_without_its_files_is_told_even_where_its_statistics_agree(tmp_path: Path) -> None:
    target, golden = with_files(tmp_path / "target"), with_files(tmp_path / "golden")
    shutil.rmtree(tmp_path / "target" / "dump_tensor_data")
    assert told(target, golden)[1].startswith("3 of 3 tensors could not be read; their statistics")


def test_where_no_statistics_stood_in_nothing_was_compared(tmp_path: Path) -> None:
    target, golden = with_files(tmp_path / "target", figures=False), with_files(tmp_path / "golden", figures=False)
    (tmp_path / "target" / "dump_tensor_data" / f"{ENTRIES[2]}.output.0.npy").write_bytes(b"no array")
    assert told(target, golden)[1] == "1 of 3 tensors could not be read; nothing of them was compared"


def test_dumps_whose_files_are_whole_say_nothing_of_files(tmp_path: Path) -> None:
    assert not any("could not be read" in line for line in told(with_files(tmp_path / "a"), with_files(tmp_path / "b")))


def calls(*named: tuple[str, float]) -> Dump:
    return dump([tensor("output.0", np.float32([1, amount]), f"{name}.forward.0") for name, amount in named])


def test_what_differs_is_told_where_most_was_not_compared_too() -> None:
    """A bias that drifts a little beyond its tolerance, and no origin."""
    target = calls(("Cell.a.L", 2.0), ("Cell.mine.L", 3.0))
    comparison = compare_dumps(target, calls(("Cell.a.L", 2.0), ("Cell.theirs.L", 3.0)), Options())
    (row,) = comparison.pairs[0].rows
    row.deviation, row.tolerance = 2e-5, 1e-5
    lines = list(verdict_lines(Outcome("", target, target, comparison, [])))
    place = next(number for number, line in enumerate(lines) if "INCOMPLETE" in line)
    assert lines[place + 1] == (
        "  1 value differs by more than its dtype explains, by slow drift or where ReLU, pooling and the like switch; "
        "the report colours it"
    )
