"""Gradients of two trainings: the first step, the parameters and the ranks at which they part, and nothing else."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.comparison.pairing.rules.files import load_mappings
from msprobe_ms.compat.msprobe import GradComparator
from msprobe_ms.dump.gradient_files import direction_file, directions, summary, summary_file, titles
from msprobe_ms.gradients.compare import GradientComparison, compare_gradients
from msprobe_ms.gradients.report import gradient_lines, write_gradients
from msprobe_ms.support.errors import UsageError

SHAPES = {"embedding.weight": (50, 8), "fc.weight": (40, 8), "norm.weight": (8,), "norm.bias": (8,)}
#: What MindSpore calls them.
OF_MINDSPORE = {
    "embedding.weight": "embedding.embedding_table", "norm.weight": "norm.gamma", "norm.bias": "norm.beta",
}  # fmt: skip

Change = Callable[[int, int, str, np.ndarray], np.ndarray | None]


def unchanged(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
    return gradient


def write(
    folder: Path,
    change: Change = unchanged,
    *,
    level: str = "L1",
    steps: int = 4,
    ranks: int = 1,
    mindspore: bool = False,
) -> Path:
    for rank in range(ranks):
        place = folder / f"rank{rank}"
        place.mkdir(parents=True)
        for step in range(steps):
            generator = np.random.default_rng((rank, step))
            rows = [titles(level, (-1, 0, 1))]
            for name, shape in SHAPES.items():
                gradient = change(rank, step, name, generator.standard_normal(shape).astype(np.float32))
                if gradient is None:
                    continue
                written = OF_MINDSPORE.get(name, name) if mindspore else name
                rows.append([str(each) for each in summary(written, gradient, level, (-1, 0, 1))])
                if level != "L0":
                    file = place / direction_file(step, written)
                    file.parent.mkdir(exist_ok=True)
                    np.save(file, directions(gradient))
            with (place / summary_file(step)).open("w", newline="") as opened:
                csv.writer(opened).writerows(rows)
    return folder


def compared(target: Path, golden: Path) -> GradientComparison:
    return compare_gradients(target, golden, load_mappings(None, None, None))


@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_equal_trainings_are_consistent_in_the_names_of_either_framework(tmp_path: Path, level: str) -> None:
    found = compared(
        write(tmp_path / "a", level=level, ranks=2, mindspore=True), write(tmp_path / "b", level=level, ranks=2)
    )
    (line,) = gradient_lines(found)
    assert line.startswith("CONSISTENT: no gradient differs by more than the limits (signs 3 %, norms 3 %; ")
    assert line.endswith("4 parameters, 4 steps, 2 ranks)")
    assert {row.similarity for row in found.rows} == {1.0}
    assert len(found.rows) == 4 * 4 * 2


def test_the_sign_of_one_gradient_is_found_at_its_step_its_parameter_and_its_rank(tmp_path: Path) -> None:
    def turned(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
        return -gradient if (rank, name) == (1, "fc.weight") and step >= 2 else gradient

    found = compared(write(tmp_path / "a", turned, ranks=2), write(tmp_path / "b", ranks=2))
    first, told, *_ = gradient_lines(found)
    assert first == (
        "DIVERGENT: the signs of gradients differ from step 2 on, most in fc.weight, on rank 1 "
        "(1 of 4 parameters differ in that step; compared were 4 parameters, 4 steps, 2 ranks)"
    )
    assert told.startswith("  rank 1 step 2 fc.weight: similarity 0.0000, norm ")
    assert found.parting is not None and [row.name for row in found.parting.rows] == ["fc.weight"]


def test_a_gradient_that_is_scaled_shows_in_its_norm(tmp_path: Path) -> None:
    golden = write(tmp_path / "golden")
    slightly = compared(write(tmp_path / "a", lambda rank, step, name, gradient: gradient * np.float32(1.001)), golden)
    assert slightly.parting is None
    assert all(0.9989 < (row.norm_ratio or 0) < 0.9991 for row in slightly.rows)
    twice = compared(write(tmp_path / "b", lambda rank, step, name, gradient: gradient * 2), golden)
    assert next(iter(gradient_lines(twice))).startswith(
        "DIVERGENT: the norms of gradients differ from step 0 on, most in "
    )


def test_what_one_side_lacks_has_a_row_with_the_reason_and_the_rest_is_compared(tmp_path: Path) -> None:
    def frozen(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
        return None if name == "norm.bias" else gradient

    target = write(tmp_path / "a", frozen, steps=3)
    (target / "rank0" / "step1" / "fc.weight.npy").unlink()
    np.save(target / "rank0" / "step2" / "fc.weight.npy", np.zeros((3, 3), bool))
    (target / "rank0" / "step0" / "norm.weight.npy").write_bytes(b"\x93NUMPY")
    found = compared(target, write(tmp_path / "b"))
    notes = {(row.step, row.name or row.golden): row.note for row in found.rows if row.note}
    assert notes.pop((0, "norm.weight")).startswith(str(target / "rank0" / "step0" / "norm.weight.npy"))
    assert notes == {
        (0, "norm.bias"): "only in the golden",
        (1, "norm.bias"): "only in the golden",
        (2, "norm.bias"): "only in the golden",
        (1, "fc.weight"): "the target has no signs (grad_level L0 writes none)",
        (2, "fc.weight"): "shapes [3, 3] and [40, 8] differ",
    }
    lines = [*gradient_lines(found)]
    assert (
        lines[0]
        == "INCOMPLETE: what was compared agrees (3 parameters, 3 steps, 1 rank), but not everything could be compared"
    )
    assert "rank 0: steps only in the golden: 3" in lines
    assert "parameters only in the golden: norm.bias" in lines
    assert not any("-lm FILE" in line for line in lines)
    assert len([row for row in found.rows if row.similarity == 1.0]) == 3 * 3 - 3


def test_names_that_differ_point_at_the_mappings(tmp_path: Path) -> None:
    write(tmp_path / "a"), write(tmp_path / "b")
    for file in (tmp_path / "b").rglob("grad_summary_*.csv"):
        file.write_text(file.read_text().replace("fc.", "dense."))
    lines = [*gradient_lines(compared(tmp_path / "a", tmp_path / "b"))]
    place = lines.index("parameters only in the golden: dense.weight")
    assert lines[place - 1] == "parameters only in the target: fc.weight"
    assert lines[place + 1].startswith("  names that differ between the sides pair with -lm FILE")


def test_tables_hold_what_was_compared(tmp_path: Path) -> None:
    def half(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
        if name == "norm.weight":
            gradient[:4] *= -1
        return gradient

    found = compared(write(tmp_path / "a", half, steps=2), write(tmp_path / "b", steps=2))
    page, table, similarities = write_gradients(found, tmp_path / "out")
    with similarities.open(newline="", encoding="utf-8-sig") as opened:
        rows = list(csv.reader(opened))
    assert similarities == tmp_path / "out" / "rank0" / "similarities.csv"
    assert rows[0] == ["step", "0", "1"]
    assert [row[0] for row in rows[1:]] == [*SHAPES, "summary"]
    elements = sum(int(np.prod(shape)) for shape in SHAPES.values())
    assert [float(value) for value in rows[3][1:]] == [0.5, 0.5]
    assert [float(value) for value in rows[5][1:]] == pytest.approx([1 - 4 / elements] * 2)
    with table.open(newline="", encoding="utf-8-sig") as opened:
        assert len(list(csv.DictReader(opened))) == 8
    text = page.read_text("utf-8")
    assert "DIVERGENT: the signs of gradients differ from step 0 on" in text
    assert text.count('class="s4 marked"') == 1 and "default-src 'none'" in text


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: folder.mkdir(), "holds no gradients; accepted is the dump_path of task grad_probe"),
        (lambda folder: write(folder / "x"), "holds no gradients"),
        (lambda folder: None, "cannot be read: No such file or directory"),
        (lambda folder: write(folder).joinpath("rank0").rename(folder / "rank7"), "no matched ranks: the target has 7"),
    ],
)
def test_what_cannot_be_compared_is_said(tmp_path: Path, prepare: Callable[[Path], object], message: str) -> None:
    prepare(tmp_path / "a")
    with pytest.raises(UsageError, match=message):
        compared(tmp_path / "a", write(tmp_path / "b"))


def test_tables_of_msprobe_in_graph_mode_are_read(tmp_path: Path) -> None:
    target = write(tmp_path / "a")
    for file in target.glob("rank0/*.csv"):
        head, rest = file.read_text().split("\n", 1)
        file.write_text(",".join(title.capitalize() for title in head.strip().split(",")) + "\n" + rest)
    assert next(iter(gradient_lines(compared(target, write(tmp_path / "b"))))).startswith("CONSISTENT")


def test_scripts_for_msprobe_call_it_as_they_do(tmp_path: Path) -> None:
    GradComparator.compare_distributed(str(write(tmp_path / "a")), str(write(tmp_path / "b")), str(tmp_path / "out"))
    assert (tmp_path / "out" / "rank0" / "similarities.csv").is_file()


def test_layouts_of_the_other_framework_are_turned(tmp_path: Path) -> None:
    def transposed(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
        return gradient.T if name == "fc.weight" else gradient[None] if name == "norm.weight" else gradient

    found = compared(write(tmp_path / "a", transposed), write(tmp_path / "b"))
    assert {row.similarity for row in found.rows} == {1.0}


def test_a_gradient_that_is_rounding_alone_on_both_sides_is_named_and_not_marked(tmp_path: Path) -> None:
    """A bias before a normalisation: zero in exact arithmetic, so that its signs are chance."""

    def noise(seed: int) -> Change:
        def changed(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
            if name != "norm.bias":
                return gradient
            return np.random.default_rng((seed, step)).standard_normal(8).astype(np.float32) * np.float32(3e-8)

        return changed

    found = compared(write(tmp_path / "a", noise(1)), write(tmp_path / "b", noise(2)))
    first, told = gradient_lines(found)
    assert first.startswith("CONSISTENT: ")
    assert told == "gradients that are only rounding error (not counted): 1 parameter, norm.bias"
    assert min(row.similarity or 0.0 for row in found.rows if row.name == "norm.bias") < 0.9
    page, table, *_ = write_gradients(found, tmp_path / "out")
    notes = {row["Note"] for row in csv.DictReader(table.open()) if row["Target Name"] == "norm.bias"}
    assert notes == {"rounding alone"}
    assert "marked" not in page.read_text().partition("<tbody>")[2].partition("</table>")[0]


def test_a_gradient_that_is_tiny_on_one_side_only_counts(tmp_path: Path) -> None:
    def vanished(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
        return -gradient * np.float32(1e-8) if name == "norm.bias" else gradient

    first, *others = gradient_lines(compared(write(tmp_path / "a", vanished), write(tmp_path / "b")))
    assert first.startswith("DIVERGENT: the signs of gradients differ from step 0 on, most in norm.bias")
    assert not any("rounding alone" in line for line in others)


def test_gradients_that_are_small_throughout_count(tmp_path: Path) -> None:
    """Small beside others of the same step is what rounding is, not small alone."""

    def small(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
        return gradient * np.float32(1e-9)

    def turned(rank: int, step: int, name: str, gradient: np.ndarray) -> np.ndarray | None:
        return gradient * np.float32(-1e-9 if name == "norm.bias" else 1e-9)

    first, *_ = gradient_lines(compared(write(tmp_path / "a", turned), write(tmp_path / "b", small)))
    assert first.startswith("DIVERGENT: the signs of gradients differ from step 0 on, most in norm.bias")
