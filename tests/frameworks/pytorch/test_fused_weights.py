"""Checkpoints of which one has a fused projection; and parameters that are said to have no counterpart."""

from __future__ import annotations

import argparse
import collections
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from msprobe_ms.cli.main import main
from msprobe_ms.weights.open import open_weights

RULES = "Attention:\n  q + k + v: qkv\nTopLayer:\n  layers: h\n"
BACK = "Attention:\n  qkv: q + k + v\nTopLayer:\n  h: layers\n"
LENGTHS = {"q": 8, "k": 4, "v": 4}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Compare two sets of arrays under a layer mapping; the exit status and what was printed, with the table."""

    def compare(target: dict[str, Any], golden: dict[str, Any], rules: str) -> tuple[int, str]:
        for name, arrays in (("target", target), ("golden", golden)):
            np.savez(tmp_path / name, **arrays)
        (tmp_path / "layer.yaml").write_text(rules)
        paths = [str(tmp_path / name) for name in ("target.npz", "golden.npz", "layer.yaml", "out")]
        status = main(["compare_weights", *paths[:2], "-lm", paths[2], "-o", paths[3], "--csv", "--exit-code"])
        printed = capsys.readouterr().out
        table = Path(printed.rstrip().rpartition("report: ")[2])
        return status, printed + table.read_text()

    return compare


def parts() -> dict[str, np.ndarray]:
    made = np.random.default_rng(1)
    arrays = {"embed.weight": made.normal(size=(5, 6))}
    for layer in range(2):
        for name, length in LENGTHS.items():
            arrays[f"layers.{layer}.attention.{name}.weight"] = made.normal(size=(length, 6))
            arrays[f"layers.{layer}.attention.{name}.bias"] = made.normal(size=length)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def fused(groups: int = 1) -> dict[str, np.ndarray]:
    """The same with one ``qkv``, a share of each part for every group."""
    split = parts()
    arrays = {"embed.weight": split["embed.weight"]}
    for layer in range(2):
        for last in ("weight", "bias"):
            shares = [np.split(split[f"layers.{layer}.attention.{name}.{last}"], groups) for name in LENGTHS]
            rows = [share for group in zip(*shares, strict=True) for share in group]
            arrays[f"h.{layer}.attention.qkv.{last}"] = np.concatenate(rows)
    return arrays


def test_parts_are_compared_as_what_they_are_together(run: Any) -> None:
    status, text = run(parts(), fused(), RULES)
    assert status == 0 and "CONSISTENT: all parameters are equal" in text
    assert "5 parameters compared: 5 equal" in text
    joined = "layers.0.attention.q + k + v.weight,h.0.attention.qkv.weight"
    assert f'{joined},equal,float32,float32,"[16, 6]","[16, 6]"' in text
    status, text = run(fused(), parts(), BACK)
    assert status == 0 and "h.1.attention.qkv.bias,layers.1.attention.q + k + v.bias,equal" in text


def test_the_order_of_rows_is_told_where_it_is_another(run: Any) -> None:
    status, text = run(parts(), fused(groups=2), RULES)
    assert status == 0
    names = ", ".join(f"layers.1.attention.{name}.weight" for name in LENGTHS)
    assert f"its rows are those of {names}, in 2 groups of each" in text


def test_a_part_that_differs_is_found(run: Any) -> None:
    target = parts()
    target["layers.1.attention.k.weight"] *= 2
    status, text = run(target, fused(), RULES)
    assert status == 1
    assert "DIVERGENT: 1 of 5 parameters differ; the first is" in text
    assert "  layers.1.attention.q + k + v.weight (golden: h.1.attention.qkv.weight): deviates by" in text


def test_where_the_other_side_is_not_fused_each_part_has_its_own_counterpart(run: Any) -> None:
    status, text = run(parts(), parts(), "Attention:\n  q + k + v: qkv\n")
    assert status == 0 and "13 parameters compared: 13 equal" in text


def test_parts_that_cannot_be_put_together_cost_their_own_row(run: Any) -> None:
    target = parts()
    target["layers.0.attention.k.weight"] = np.ones((4, 7), np.float32)
    status, text = run(target, fused(), RULES)
    assert status == 2
    assert "tensors of the shapes [8, 6], [4, 7], [4, 6] cannot be put together" in text
    assert "5 parameters compared: 4 equal, 1 not compared" in text


def test_what_the_mapping_says_has_no_counterpart_is_not_compared(run: Any) -> None:
    target = parts()
    golden = {name: array for name, array in target.items() if ".k." not in name}
    status, text = run(target, golden, "Attention:\n  k: unmatched\n")
    assert status == 0
    assert "not compared, as the mapping says (4): layers.0.attention.k.weight, layers.0.attention.k.bias, " in text
    other = {**target, "layers.0.attention.k.weight": target["layers.0.attention.k.weight"] + 1}
    _, text = run(target, other, "Attention:\n  k: unmatched\n")
    assert "9 parameters compared: 9 equal" in text and "only in the golden (4)" in text


class Own(dict):
    """A dict of the user's own class."""


@pytest.mark.parametrize(
    ("saved", "names"),
    [
        ({"model": collections.defaultdict(list, w=torch.ones(2))}, ["w"]),
        (collections.defaultdict(dict, model=collections.OrderedDict(w=torch.ones(2))), ["w"]),
        (Own(w=torch.ones(2), inner=Own(b=torch.ones(2))), ["w", "inner.b"]),
        ({"w": torch.ones(2), "ema": argparse.Namespace(shadow=[torch.ones(2)])}, ["w", "ema.shadow.0"]),
        ({"w": torch.ones(2), 0.5: torch.ones(2), ("a", 1): torch.ones(2)}, ["w", "0.5", "(tuple 2)"]),
    ],
)
def test_no_tensor_in_a_container_of_another_class_is_left_out(saved: object, names: list[str], tmp_path: Path) -> None:
    torch.save(saved, tmp_path / "net.pt")
    with open_weights(tmp_path / "net.pt") as found:
        assert list(found.weights) == names
        assert all((weight.load() == 1).all() for weight in found.weights.values())
