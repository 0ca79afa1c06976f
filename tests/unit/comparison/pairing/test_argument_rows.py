"""Plain arguments that two frameworks call otherwise stand in one row."""

from __future__ import annotations

from pathlib import Path

import pytest
from softmax_dumps import NAME, softmax

from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.reading.reader import read_dump


def rows(target: Path, golden: Path) -> set[tuple[str, str]]:
    """The names of both sides of each row of an input, without the call's; "" where a side has none."""
    (found,) = pair(*(read_dump(folder / "dump.json") for folder in (target, golden)), Mappings())
    items = [(row.target, row.golden) for row in found.rows if row.state == "input"]
    return {
        (mine.name.removeprefix(f"{NAME}.") if mine else "", other.name.removeprefix(f"{NAME}.") if other else "")
        for mine, other in items
    }


@pytest.mark.parametrize(
    ("golden", "beside"),
    [
        (({"dim": -1},), {("input.axis", "input.dim")}),
        (({}, -1), {("input.axis", "input.1")}),
        (({"dtype": 3},), {("input.axis", ""), ("", "input.dtype")}),
    ],
)
def test_an_axis_is_beside_a_dim_and_beside_no_other_argument(
    golden: tuple[dict[str, object], int], beside: set[tuple[str, str]], tmp_path: Path
) -> None:
    target = softmax(tmp_path / "a", "mindspore", {"axis": 1})
    assert rows(target, softmax(tmp_path / "bb", "pytorch", *golden)) == {("input.0", "input.0"), *beside}
