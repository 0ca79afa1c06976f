"""The files of Model Explorer, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from export_dumps import HOSTILE, ROOT, WRONG, alone, compared, dump_of, faulty, fused, hostile, net, recorded

from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.model_explorer import write
from msprobe_ms.comparison.export.topology import Topology


def written(folder: Path, topology: Topology) -> list[Any]:
    return [json.loads(path.read_bytes()) for path in write([topology], Naming(folder, "1"))]


def test_the_graph_has_layers_edges_and_figures(tmp_path: Path) -> None:
    (content,) = written(tmp_path, alone(net()))
    (graph,) = content["graphs"]
    assert (content["label"], graph["id"]) == ("export_1", "dump")
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert list(nodes) == list(net().entries)
    norm = nodes[WRONG]
    assert (norm["label"], norm["namespace"]) == ("norm: LayerNorm", "forward/Net/blocks.1")
    assert nodes["Cell.blocks.1.Block.forward.0"]["label"] == "blocks.1: Block (result)"
    assert nodes[ROOT]["namespace"] == "forward/Net"
    edge = {"sourceNodeId": "Cell.blocks.0.Block.forward.0", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}
    assert norm["incomingEdges"] == [edge]
    assert nodes["Cell.blocks.1.Block.forward.0"]["incomingEdges"][0]["sourceNodeOutputId"] == "follows"
    told = {each["key"]: each["value"] for each in norm["outputsMetadata"][0]["attrs"]}
    item = net().entries[WRONG].in_state("output")[0]
    assert (told["tensor_shape"], told["Norm"]) == ("Float32 [4, 8]", repr(item.norm))
    assert graph["groupNodeAttributes"]["forward/Net"]["class or operation"] == "Net"


def test_deviations_have_the_colours_of_verdicts(tmp_path: Path) -> None:
    graphs, deviations, _ = written(tmp_path, faulty())
    assert [graph["id"] for graph in graphs["graphs"]] == list(deviations) == ["target", "golden"]
    results = deviations["target"]["results"]
    assert results[WRONG]["bgColor"] == "#FF704D" and results[WRONG]["value"] > 100
    assert results[ROOT]["bgColor"] == "#FFDC7F"
    good = results["Cell.blocks.0.fc.Dense.forward.0"]
    assert good["bgColor"] == "#FFFCF3" and good["value"] <= 1
    assert [each["value"] for each in deviations["target"]["thresholds"]] == [1.0, 1e300]


def test_infinite_ratios_and_missing_counterparts_are_valid_json(tmp_path: Path) -> None:
    x = np.arange(3, dtype=np.float32)
    first = recorded("Cell.a.Dense.forward.0", None, [x], [x])
    bad = recorded("Cell.a.Dense.forward.0", None, [x], [x * np.nan])
    extra = recorded("Cell.c.Other.forward.0", None, [x + 1], [x + 2])
    results = written(tmp_path, compared(dump_of(bad, extra), dump_of(first)))[1]["target"]["results"]
    assert results["Cell.a.Dense.forward.0"]["value"] == 1e300
    assert results["Cell.c.Other.forward.0"]["value"] == "unmatched"


def test_fused_modules_belong_to_the_one_that_they_are(tmp_path: Path) -> None:
    sync = written(tmp_path, fused())[2]
    assert sync["type"] == "sync_navigation"
    three = [f"Cell.layer.{part}.Dense.forward.0" for part in "qkv"]
    assert {"leftNodeIds": three, "rightNodeIds": ["Cell.layer.qkv.Dense.forward.0"]} in sync["mappingEntries"]
    around = ["Cell.layer.Attention.forward.0"]
    assert {"leftNodeIds": around, "rightNodeIds": around} in sync["mappingEntries"]


def test_hostile_names_open_no_layers(tmp_path: Path) -> None:
    ((graph,),) = [written(tmp_path, alone(hostile()))[0]["graphs"]]
    assert len({node["id"] for node in graph["nodes"]}) == len(HOSTILE) + 1
    assert {node["namespace"] for node in graph["nodes"]} == {'forward/gone/a∕b"\\'}
