"""The database of tb_graph_ascend, opened with the queries that the plugin makes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built_dumps import module_calls
from export_dumps import (
    HOSTILE,
    PLACE,
    ROOT,
    WRONG,
    alone,
    compared,
    dump_of,
    faulty,
    fused,
    hostile,
    net,
    recorded,
)  # fmt: skip
from repository import DATA

from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Topology, topology_of_dump
from msprobe_ms.comparison.export.vis_db import write
from msprobe_ms.dump.reading.locate import Place
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import UsageError

_INDEXES = {
    "index1": ["step", "rank", "data_source", "up_node", "node_order"],
    "index2": ["step", "rank", "data_source", "node_name"],
    "index3": ["step", "rank", "data_source", "node_order"],
    "index4": ["step", "rank", "node_order"],
    "index5": ["step", "rank", "micro_step_id", "node_order"],
    "index6": ["step", "rank", "modified", "matched_node_link"],
    "index7": ["is_distributed"],
}


class Viewer:
    """What the plugin asks for: the root, the children of a node, a node with its stack."""

    def __init__(self, path: Path, source: str = "NPU", step: int = 0, rank: int = 0) -> None:
        self.database = sqlite3.connect(path)
        self.database.row_factory = sqlite3.Row
        self._place = step, rank, source

    def rows(self, condition: str, *values: Any) -> list[sqlite3.Row]:
        query = "SELECT * FROM tb_nodes WHERE step = ? AND rank = ? AND data_source = ?"
        return self.database.execute(f"{query} AND {condition} ORDER BY node_order", (*self._place, *values)).fetchall()

    @property
    def root(self) -> sqlite3.Row:
        (root,) = self.rows("up_node = ''")
        return root

    def children(self, name: str) -> list[str]:
        return [row["node_name"] for row in self.rows("up_node = ?", name)]

    def node(self, name: str) -> sqlite3.Row:
        query = "SELECT n.*, s.stack_info FROM tb_nodes n JOIN tb_stack s ON n.stack_id = s.id"
        condition = "n.step = ? AND n.rank = ? AND n.data_source = ? AND n.node_name = ?"
        (row,) = self.database.execute(f"{query} WHERE {condition}", (*self._place, name)).fetchall()
        return row

    def walk(self, name: str | None = None) -> Iterator[str]:
        name = self.root["node_name"] if name is None else name
        for child in self.children(name):
            yield from self.walk(child)
        yield name

    @property
    def config(self) -> sqlite3.Row:
        (config,) = self.database.execute("SELECT * FROM tb_config").fetchall()
        return config


def opened(folder: Path, *topologies: Topology) -> Path:
    (path,) = write(topologies, Naming(folder, "1"))
    assert [each.name for each in folder.iterdir()] == ["export_1.vis.db"]
    return path


def test_the_tree_is_walked_from_its_root(tmp_path: Path) -> None:
    viewer = Viewer(opened(tmp_path, alone(net())))
    assert viewer.root["node_name"] == "DefaultModel"
    assert viewer.children("DefaultModel") == [ROOT]
    block = "Cell.blocks.1.Block.forward.0"
    assert viewer.children(ROOT) == ["Cell.blocks.0.Block.forward.0", block]
    assert json.loads(viewer.node(block)["sub_nodes"]) == viewer.children(block) == [
        WRONG, "Cell.blocks.1.fc.Dense.forward.0",
    ]  # fmt: skip
    in_order = [row["node_name"] for row in viewer.rows("1")]
    assert in_order == list(viewer.walk())
    assert [row["node_order"] for row in viewer.rows("1")] == list(range(8))


def test_a_node_has_its_values_and_its_call_site(tmp_path: Path) -> None:
    node = Viewer(opened(tmp_path, alone(net()))).node(WRONG)
    assert json.loads(node["stack_info"]) == ["File net.py, line 1, in construct,", "x = self.norm(x)"]
    item = net().entries[WRONG].in_state("output")[0]
    (told,) = json.loads(node["output_data"]).values()
    assert (told["shape"], told["Max"], told["type"]) == ("[4, 8]", repr(item.maximum), "mindspore.Tensor")
    assert list(json.loads(node["input_data"])) == [f"{WRONG}.input.0"]
    assert (node["precision_index"], node["matched_node_link"], node["node_type"]) == (None, "[]", "0")


def test_colours_are_our_verdict(tmp_path: Path) -> None:
    path = opened(tmp_path, faulty())
    for source in ("NPU", "Bench"):
        viewer = Viewer(path, source)
        indexes = {row["node_name"]: row["precision_index"] for row in viewer.rows("1")}
        assert indexes[WRONG] == 1
        assert indexes["Cell.blocks.1.fc.Dense.forward.0"] == 0.5
        assert indexes["Cell.blocks.0.norm.LayerNorm.forward.0"] == 0
        assert indexes["DefaultModel"] == 1
        link = json.loads(viewer.node(WRONG)["matched_node_link"])
        assert link == ["DefaultModel", ROOT, "Cell.blocks.1.Block.forward.0", WRONG]
        (told,) = json.loads(viewer.node(WRONG)["output_data"]).values()
        assert told["Result"] == "origin" and float(told["Deviation"]) > 0.001
    config = viewer.config
    assert (config["graph_type"], config["task"], config["rank_list"], config["step_list"]) == (
        "compare", "summary", "[0]", "[0]",
    )  # fmt: skip
    colours = json.loads(config["node_colors"])
    assert {colour: each["value"] for colour, each in colours.items()} == {
        "#FFFCF3": [0, 0.3], "#FFDC7F": [0.3, 0.6], "#FF704D": [0.6, 1], "#C7C7C7": "unmatched",
    }  # fmt: skip
    assert set(told) - set(json.loads(config["tool_tip"])) <= {
        "type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "md5", "data_name",
    }  # fmt: skip


def test_what_has_no_counterpart_has_no_index(tmp_path: Path) -> None:
    target, golden = net(), net()
    del golden.entries["Cell.blocks.1.fc.Dense.forward.0"]
    node = Viewer(opened(tmp_path, compared(target, golden))).node("Cell.blocks.1.fc.Dense.forward.0")
    assert (node["precision_index"], node["matched_node_link"]) == (None, "[]")


def test_fused_modules_lead_to_the_one_that_they_are(tmp_path: Path) -> None:
    path = opened(tmp_path, fused())
    around = ["DefaultModel", "Cell.layer.Attention.forward.0"]
    link = json.loads(Viewer(path).node("Cell.layer.k.Dense.forward.0")["matched_node_link"])
    assert link == [*around, "Cell.layer.qkv.Dense.forward.0"]
    back = json.loads(Viewer(path, "Bench").node("Cell.layer.qkv.Dense.forward.0")["matched_node_link"])
    assert back == [*around, "Cell.layer.q.Dense.forward.0"]


def test_functions_between_modules_lie_together(tmp_path: Path) -> None:
    names = ["Functional.a.0.forward", "Mint.b.0.forward", "Cell.c.Dense.forward.0", "Distributed.all_reduce.0.forward"]
    viewer = Viewer(opened(tmp_path, alone(dump_of(*(recorded(name, None, [], []) for name in names)))))
    assert viewer.children("DefaultModel") == ["Apis_Between_Modules.0", names[2], "Apis_Between_Modules.1"]
    assert viewer.children("Apis_Between_Modules.0") == names[:2]
    assert viewer.node("Apis_Between_Modules.0")["node_type"] == "9"
    assert (viewer.node(names[0])["node_type"], viewer.node(names[0])["is_distributed"]) == ("1", 0)
    assert viewer.node(names[3])["is_distributed"] == 1


def test_dumps_of_functions_alone_are_a_list(tmp_path: Path) -> None:
    dump = read_dump(DATA / "golden" / "mindspore_lenet_L1_tensor" / "proc16362" / "dump.json")
    viewer = Viewer(opened(tmp_path, topology_of_dump(dump, Place(None, "proc16362"))))
    assert viewer.children("DefaultModel") == list(dump.entries)
    assert viewer.config["task"] == "all"


def test_gradients_of_parameters_are_given_out(tmp_path: Path) -> None:
    viewer = Viewer(opened(tmp_path, alone(dump_of(*module_calls("Cell", "fc", "Dense")))))
    name = "Cell.fc.Dense.parameters_grad.0"
    assert list(json.loads(viewer.node(name)["output_data"])) == [f"{name}.weight"]


def test_all_steps_and_ranks_are_in_one_file(tmp_path: Path) -> None:
    places = [Place(step, f"rank{rank}") for step in (0, 3) for rank in (0, 2)]
    path = opened(tmp_path, *(topology_of_dump(net(), place) for place in places))
    for place in places:
        assert Viewer(path, step=place.step or 0, rank=place.rank_number or 0).root["node_name"] == "DefaultModel"
    assert (Viewer(path).config["step_list"], Viewer(path).config["rank_list"]) == ("[0,3]", "[0,2]")


def test_processes_without_a_rank_do_not_collide(tmp_path: Path) -> None:
    path = opened(tmp_path, *(topology_of_dump(net(), Place(0, name)) for name in ("proc1", "proc2")))
    assert Viewer(path, rank=1).root["node_name"] == "DefaultModel"


def test_every_stack_joins_and_the_indexes_are_there(tmp_path: Path) -> None:
    database = Viewer(opened(tmp_path, faulty())).database
    lost = "SELECT count(*) FROM tb_nodes WHERE stack_id NOT IN (SELECT id FROM tb_stack)"
    assert database.execute(lost).fetchone()[0] == 0
    for name, columns in _INDEXES.items():
        assert [row["name"] for row in database.execute(f"PRAGMA index_info({name})")] == columns
    assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_hostile_names_are_text(tmp_path: Path) -> None:
    viewer = Viewer(opened(tmp_path, alone(hostile())))
    names = [row["node_name"] for row in viewer.rows("1")]
    assert viewer.root["node_name"] not in HOSTILE
    assert HOSTILE[2] in names and "DefaultModel" in names and len(set(names)) == len(names)
    assert list(viewer.walk()) == names


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        list(write([topology_of_dump(net(), PLACE)], Naming(tmp_path / "file", "1")))
