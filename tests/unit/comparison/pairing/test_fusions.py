"""Modules that are one on one side and several on the other: found by what mappings say, or left what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_dumps import dump as built
from built_dumps import entry, paired

from msprobe_ms.comparison.pairing.fused_modules import join_fused
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings, load_mappings
from msprobe_ms.dump.model import Dump
from msprobe_ms.support.errors import MappingError

WHOLE = entry("Module.a.whole.Linear.forward.0", {"input.0": (2, 4), "output.0": (2, 6)})


def parts(*outputs: tuple[int, ...]) -> Dump:
    entries = (
        entry(f"Cell.a.{name}.Dense.forward.0", {"input.0": (2, 4), "output.0": given})
        for name, given in zip("pq", outputs, strict=True)
    )
    return built("mindspore", *entries)


def pairs(target: Dump, golden: Dump, mappings: Mappings) -> dict[str, str]:
    return paired(pair(*join_fused(target, golden, mappings), mappings))


@pytest.mark.parametrize("kind", ["layer", "automatic"])
def test_by_a_layer_mapping(kind: str) -> None:
    target, golden = parts((2, 3), (2, 3)), built("pytorch", WHOLE)
    joined = "Cell.a.p + q.Dense.forward.0"
    assert pairs(target, golden, Mappings(**{kind: {"a": {"p + q": "whole"}}})) == {joined: WHOLE.name}
    assert pairs(golden, target, Mappings(**{kind: {"a": {"whole": "p + q"}}})) == {WHOLE.name: joined}
    top = Mappings(**{kind: {"TopLayer": {"a.p + a.q": "a.whole"}}})
    assert pairs(target, golden, top) == {"Cell.a.p + a.q.Dense.forward.0": WHOLE.name}


def test_by_a_data_mapping() -> None:
    """As compare writes it."""
    target, golden = parts((2, 3), (2, 3)), built("pytorch", WHOLE)
    said = {"Cell.a.p + q.Dense.forward.0": WHOLE.name}
    assert pairs(target, golden, Mappings(data=said)) == said
    back = {golden: target for target, golden in said.items()}
    assert pairs(golden, target, Mappings(data=back)) == back


def test_what_the_user_says_of_a_part_counts_before_what_was_found() -> None:
    target, golden = parts((2, 3), (2, 3)), built("pytorch", WHOLE)
    automatic = {"a": {"p + q": "whole"}}
    name = "Cell.a.p.Dense.forward.0"
    said = Mappings(data={name: WHOLE.name}, automatic=automatic)
    assert pairs(target, golden, said) == {name: WHOLE.name}
    assert pairs(target, golden, Mappings(cell={"a.p": "a.whole"}, automatic=automatic)) == said.data


def test_a_rule_without_its_modules_joins_nothing_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    target, golden = parts((2, 3), (2, 3)), built("pytorch", WHOLE)
    assert pairs(target, golden, Mappings(layer={"a": {"p + r": "whole"}})) == {}
    assert "mapping rules that meet no module of the target: a.p + r" in caplog.text


def test_the_file_says_it_in_any_spacing(tmp_path: Path) -> None:
    file = tmp_path / "layer.yaml"
    file.write_text("Attention:\n  q+k +v: qkv (Linear)\nMLP:\n  gate_up: gate + up\n")
    assert load_mappings(layer=file).layer == {"Attention": {"q + k + v": "qkv"}, "MLP": {"gate_up": "gate + up"}}


@pytest.mark.parametrize(
    ("line", "message"),
    [("q + k: a + b", "one of the two sides of what is fused is one module"), ("q +: qkv", "is no dotted module name")],
)
def test_what_the_file_cannot_mean_is_refused(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "layer.yaml"
    file.write_text(f"Attention:\n  {line}\n")
    with pytest.raises(MappingError, match=message):
        load_mappings(layer=file)
