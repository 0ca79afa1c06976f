"""Suggested layer mappings."""

from __future__ import annotations

from pathlib import Path

import yaml
from built_dumps import dump

from msprobe_ms.compare.pair import pair
from msprobe_ms.mapping.files import Mappings
from msprobe_ms.mapping.suggest import suggest
from msprobe_ms.store.reader import read_dump

DATA = Path(__file__).parent / "data" / "mapping"


def test_the_whole_mapping_of_two_real_encoders_is_suggested():
    pairs = pair(read_dump(DATA / "encoder_mindspore_L0"), read_dump(DATA / "encoder_pytorch_L0"), Mappings())
    written = yaml.safe_load((DATA / "encoder_layer_mapping.yaml").read_text())
    assert yaml.safe_load("\n".join(suggest(pairs))) == written


def test_a_renamed_container_is_one_line():
    target = dump("mindspore", *(f"Cell.layers.{k}.Block.forward.0" for k in range(3)), "Cell.head.Dense.forward.0")
    golden = dump("pytorch", *(f"Module.blocks.{k}.Layer.forward.0" for k in range(3)), "Module.head.Linear.forward.0")
    assert suggest(pair(target, golden, Mappings())) == ["TopLayer:", "  layers: blocks"]


def test_nothing_is_suggested_where_counts_differ_or_all_is_paired():
    target = dump("mindspore", "Cell.a.A.forward.0", "Cell.b.A.forward.0")
    assert suggest(pair(target, dump("pytorch", "Module.c.A.forward.0"), Mappings())) == []
    assert suggest(pair(target, target, Mappings())) == []
