"""Weights loaded crosswise: names and places pair the layers, and what looks exchanged is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from built_nets import Module, Told, changed, dump_of, paths

from msprobe_ms.comparison.many.run import SharedMapping
from msprobe_ms.comparison.pairing.automatic import Alignment, align_modules
from tests.unit.comparison.pairing.automatic.test_automatic import encoder, found, passed_back, renamed, truth

#: From here on nothing agrees that is computed.
AFTER = Told(faulty_from="layers.0.attention.out")


def crosswise(modules: Sequence[Module], holds: Mapping[str, str]) -> list[Module]:
    """The net, its layers with the weights of others: path → path of what it holds."""
    by_path = {path: module for top in modules for path, module in paths(top)}
    keys = {by_path[path].key: by_path[other].key for path, other in holds.items()}

    def load(one: Module) -> Module:
        return replace(one, key=keys[one.key], takes=one.takes or f"{one.key} takes") if one.key in keys else one

    return [changed(top, load) for top in modules]


def aligned(
    holds: Mapping[str, str], told: Told, tmp_path: Path, name: Callable[[Sequence[Module]], list[Module]] = renamed
) -> Alignment:
    """Every layer is paired with the one in its place, whatever weights it holds, and the file says the same."""
    theirs = name(encoder())
    target, golden = dump_of("mindspore", crosswise(encoder(), holds), told), dump_of("pytorch", theirs)
    alignment = align_modules(target, golden)
    assert found(alignment) == truth(encoder(), theirs)
    assert passed_back(alignment, target, golden, tmp_path) == found(alignment)
    return alignment


def circles(alignment: Alignment) -> list[set[str]]:
    return [{path for path, _ in circle} for circle in alignment.exchanged]


def swapped(ours: str, other: str) -> dict[str, str]:
    return {ours: other, other: ours}


def test_in_every_layer_names_say_it(tmp_path: Path) -> None:
    layers = [f"layers.{number}.attention" for number in range(3)]
    holds = {one: other for layer in layers for one, other in swapped(f"{layer}.k", f"{layer}.v").items()}
    alignment = aligned(holds, AFTER, tmp_path)
    assert circles(alignment) == [{f"{layer}.k", f"{layer}.v"} for layer in layers]
    assert alignment.rules["Attention"] == {"q": "query", "k": "key", "v": "value", "out": "dense"}
    text = alignment.text()
    assert "  q: query  # 1.00\n  k: key  # 0.71; its weights look exchanged, see below\n" in text
    assert "# these weights look exchanged: layers.0.attention.k (Dense) and layers.0.attention.v (Dense); they" in text


def test_three_that_went_round(tmp_path: Path) -> None:
    at = "layers.1.attention"
    alignment = aligned({f"{at}.q": f"{at}.k", f"{at}.k": f"{at}.v", f"{at}.v": f"{at}.q"}, AFTER, tmp_path)
    assert circles(alignment) == [{f"{at}.q", f"{at}.k", f"{at}.v"}]


def nameless(modules: Sequence[Module]) -> list[Module]:
    """As another writer calls it whose names say nothing."""

    def rename(module: Module) -> Module:
        return replace(module, name={"q": "a", "k": "b", "v": "c", "out": "d"}.get(module.name, module.name))

    return [changed(module, rename) for module in modules]


@pytest.mark.parametrize("name", [renamed, nameless])
def test_in_one_layer_the_others_say_it(tmp_path: Path, name: Callable[[Sequence[Module]], list[Module]]) -> None:
    at = "layers.1.attention"
    alignment = aligned(swapped(f"{at}.q", f"{at}.k"), replace(AFTER, faulty_from=f"{at}.out"), tmp_path, name)
    assert circles(alignment) == [{f"{at}.q", f"{at}.k"}]


def test_between_layers_the_layers_around_say_it(tmp_path: Path) -> None:
    holds = swapped("layers.1.ffn.up", "layers.2.ffn.up")
    alignment = aligned(holds, Told(faulty_from="layers.1.ffn.act"), tmp_path)
    assert circles(alignment) == [{"layers.1.ffn.up", "layers.2.ffn.up"}]


def test_whole_layers_are_told_by_what_they_take_in(tmp_path: Path) -> None:
    parts = [path for top in encoder() for path, one in paths(top) if path.startswith("layers.1.") and one.weights]
    holds = {}
    for path in parts:
        holds |= swapped(path, path.replace("layers.1", "layers.2"))
    alignment = aligned(holds, Told(faulty_from="layers.1.attention.q"), tmp_path)
    assert {frozenset(circle) for circle in circles(alignment)} >= {
        frozenset((path, path.replace("layers.1", "layers.2"))) for path in parts if path.endswith(("k", "v", "up"))
    }


def test_where_names_say_nothing_weights_decide() -> None:
    """All layers alike, and names that tell nothing: the other order is the net's own."""
    layers = [f"layers.{number}.attention" for number in range(3)]
    holds = {one: other for layer in layers for one, other in swapped(f"{layer}.k", f"{layer}.v").items()}
    target, golden = dump_of("mindspore", crosswise(encoder(), holds), AFTER), dump_of("pytorch", nameless(encoder()))
    alignment = align_modules(target, golden)
    assert not alignment.exchanged
    assert found(alignment)["layers.0.attention.k"] == "layers.0.attention.c"


def test_what_agrees_behind_them_says_that_weights_are_right() -> None:
    """A module that calls ``k`` what the other calls ``value`` gives out the same."""
    layers = [f"layers.{number}.attention" for number in range(3)]
    holds = {one: other for layer in layers for one, other in swapped(f"{layer}.k", f"{layer}.v").items()}
    target, golden = dump_of("mindspore", crosswise(encoder(), holds)), dump_of("pytorch", renamed(encoder()))
    alignment = align_modules(target, golden)
    assert not alignment.exchanged
    assert alignment.exchanges() == ""
    assert found(alignment)["layers.2.attention.k"] == "blocks.2.self_attn.value"


def test_of_many_pairs_one_that_looks_exchanged_keeps_its_file(tmp_path: Path) -> None:
    told = align_modules(dump_of("mindspore", encoder()), dump_of("pytorch", renamed(encoder()))).text()
    at = "layers.1.attention"
    wrong = aligned(swapped(f"{at}.q", f"{at}.k"), replace(AFTER, faulty_from=f"{at}.out"), tmp_path).text()
    mapping = SharedMapping(tmp_path, "1")
    kept = []
    for rank, text in enumerate([told, wrong, told.replace("# 1.00", "# 0.80"), wrong]):
        file = tmp_path / f"layer_mapping_rank{rank}_1.yaml"
        file.write_text(text)
        kept += mapping.files([file, tmp_path / f"compare_result_rank{rank}_1.csv"])[:1]
    assert [file.name for file in kept] == [
        "layer_mapping_1.yaml", "layer_mapping_rank1_1.yaml", "layer_mapping_1.yaml", "layer_mapping_rank3_1.yaml",
    ]  # fmt: skip
    assert all(file.exists() for file in kept)
    assert not (tmp_path / "layer_mapping_rank2_1.yaml").exists()
