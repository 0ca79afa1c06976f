"""Halves of a step, in compiled graphs and outside of them, are one dump: in which order, under which names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_dumps import call, leaf, write_dump

from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart
from msprobe_ms.support.errors import DumpFormatError

#: Values of a network, each computed from the one before, and their gradients.
VALUES = [np.random.default_rng(number).normal(size=(4, 8)).astype(np.float32) for number in range(10)]
GRADIENTS = [value * np.float32(0.5) for value in VALUES]


def forward(given: int) -> dict[str, Any]:
    """The call that makes a value of the one before."""
    return call(VALUES[given], VALUES[given + 1])


def backward(given: int) -> dict[str, Any]:
    return {"input": [leaf(GRADIENTS[given + 1])], "output": [leaf(GRADIENTS[given])]}


def write_halves(
    root: Path,
    outside: Mapping[str, Any],
    graph: Mapping[str, Any],
    parents: Mapping[str, str] | None = None,
    *,
    task: str = "statistics",
) -> Path:
    for half, data in (("pynative", outside), ("graph", graph)):
        write_dump(root / half / "step0/rank0", dict(data), task=task)
        construct = {name: (parents or {}).get(f"{half} {name}") for name in data}
        (root / half / "step0/rank0/construct.json").write_text(json.dumps(construct))
    return root / "step0/rank0"


def test_what_ran_in_a_compiled_module_stands_in_its_call(tmp_path: Path) -> None:
    outside = {
        "Cell.a.Dense.forward.0": forward(0),
        "Jit.Block.0.forward": call(VALUES[1], VALUES[3]),
        "Cell.b.Block.forward.0": call(VALUES[1], VALUES[3]),
        "Cell.c.Dense.forward.0": forward(3),
        "Cell.c.Dense.backward.0": backward(3),
        "Jit.Block.0.backward": {"input": [leaf(GRADIENTS[3])], "output": [leaf(GRADIENTS[1])]},
        "Cell.b.Block.backward.0": {"input": [leaf(GRADIENTS[3])], "output": [leaf(GRADIENTS[1])]},
        "Cell.b.x.Dense.parameters_grad.0": {"weight": [leaf(VALUES[9])]},
        "Cell.a.Dense.backward.0": backward(0),
    }
    graph = {
        "Cell.b.x.Dense.forward.0": forward(1),
        "Cell.b.y.Dense.forward.0": forward(2),
        "Cell.b.Block.forward.0": call(VALUES[1], VALUES[3]),
        "Cell.b.y.Dense.backward.0": backward(2),
        "Cell.b.x.Dense.backward.0": backward(1),
        "Cell.b.Block.backward.0": {"input": [leaf(GRADIENTS[3])], "output": [leaf(GRADIENTS[1])]},
    }
    inside = {f"graph {name}": f"Cell.b.Block.{name.split('.')[-2]}.0" for name in graph if "Dense" in name}
    jitted = {f"pynative Jit.Block.0.{way}": f"Cell.b.Block.{way}.0" for way in ("forward", "backward")}
    dump = read_dump(write_halves(tmp_path, outside, graph, inside | jitted))
    assert list(dump.entries) == [
        "Cell.a.Dense.forward.0",
        "Cell.b.x.Dense.forward.0",
        "Cell.b.y.Dense.forward.0",
        "Jit.Block.0.forward",
        "Cell.b.Block.forward.0",
        "Cell.c.Dense.forward.0",
        "Cell.c.Dense.backward.0",
        "Cell.b.y.Dense.backward.0",
        "Cell.b.x.Dense.backward.0",
        "Jit.Block.0.backward",
        "Cell.b.Block.backward.0",
        "Cell.b.x.Dense.parameters_grad.0",
        "Cell.a.Dense.backward.0",
    ]
    assert dump.entries["Cell.b.x.Dense.forward.0"].parent == "Jit.Block.0.forward"
    assert dump.entries["Cell.b.x.Dense.backward.0"].parent == "Jit.Block.0.backward"
    assert dump.entries["Jit.Block.0.forward"].parent == "Cell.b.Block.forward.0"
    assert (dump.path, dump.damage) == (tmp_path / "step0/rank0/dump.json", "")


def test_without_entries_of_functions_values_tell_where_a_graph_ran(tmp_path: Path) -> None:
    """Level L0: a function that is compiled has no entry of its own."""
    outside = {
        "Cell.net.a.Dense.forward.0": forward(0),
        "Cell.net.d.Dense.forward.0": forward(3),
        "Cell.net.Net.forward.0": call(VALUES[0], VALUES[4]),
        "loss.0.debug": leaf(VALUES[8]),
        "Cell.net.d.Dense.backward.0": backward(3),
        "Cell.net.b.Dense.parameters_grad.0": {"weight": [leaf(VALUES[9])]},
        "Cell.net.a.Dense.backward.0": backward(0),
        "Cell.net.Net.backward.0": backward(0),
    }
    graph = {
        "Cell.net.b.Dense.forward.0": forward(1),
        "Cell.net.c.Dense.forward.0": forward(2),
        "Cell.net.c.Dense.backward.0": {"input": [leaf(VALUES[7])], "output": [leaf(VALUES[6])]},
        "Cell.net.b.Dense.backward.0": {"input": [leaf(VALUES[6])], "output": [leaf(VALUES[5])]},
    }
    entries = read_dump(write_halves(tmp_path, outside, graph)).entries
    order = [name.removeprefix("Cell.net.") for name in entries]
    assert order[:4] == [f"{name}.Dense.forward.0" for name in "abcd"]
    # Gradients of a sum of which one part came through the graph are met nowhere else.
    assert order.index("loss.0.debug") < order.index("c.Dense.backward.0") < order.index("b.Dense.backward.0")
    assert order.index("b.Dense.backward.0") < order.index("b.Dense.parameters_grad.0")
    assert entries["Cell.net.b.Dense.forward.0"].parent == "Cell.net.Net.forward.0"
    assert entries["Cell.net.b.Dense.backward.0"].parent == "Cell.net.Net.backward.0"


def test_calls_of_one_module_in_a_graph_and_outside_are_numbered_in_their_order(tmp_path: Path) -> None:
    """Each half counts from 0: ``norm(jitted(norm(x)))``, where ``jitted`` calls ``norm`` as well."""
    outside = {
        "Cell.norm.Norm.forward.0": forward(0),
        "Cell.norm.Norm.forward.1": forward(2),
        "Cell.norm.Norm.backward.1": backward(2),
        "Cell.norm.Norm.backward.0": backward(0),
        "Cell.norm.Norm.parameters_grad.0": {"weight": [leaf(VALUES[9])]},
    }
    graph = {"Cell.norm.Norm.forward.0": forward(1), "Cell.norm.Norm.backward.0": backward(1)}
    for name, body in outside.items():
        for each in body.get("output", []):
            each["data_name"] = f"{name}.npy"
    for name, body in graph.items():
        body["output"][0]["data_name"] = f"{name}.npy"
    folder = write_halves(tmp_path, outside, graph)
    for half, numbers in (("pynative", (0, 2)), ("graph", (1,))):
        (tensors := tmp_path / half / "step0/rank0/dump_tensor_data").mkdir()
        for call_number, given in enumerate(numbers):
            np.save(tensors / f"Cell.norm.Norm.forward.{call_number}.npy", VALUES[given + 1])
    dump = read_dump(folder)
    assert list(dump.entries) == [
        *(f"Cell.norm.Norm.forward.{number}" for number in (0, 1, 2)),
        *(f"Cell.norm.Norm.backward.{number}" for number in (2, 1, 0)),
        "Cell.norm.Norm.parameters_grad.0",
    ]
    for number in (0, 1, 2):
        entry = dump.entries[f"Cell.norm.Norm.forward.{number}"]
        (output,) = entry.in_state("output")
        assert output.name == f"Cell.norm.Norm.forward.{number}.output.0"
        assert np.array_equal(dump.tensors.load(output), VALUES[number + 1])
        half = "graph" if number == 1 else "pynative"
        assert f"/{half}/" in dump.tensors.where(output)


def test_a_call_of_a_compiled_module_is_told_once(tmp_path: Path) -> None:
    """As seen from outside; without values its number tells that it is the same."""
    bare: dict[str, Any] = {"input_args": [], "input_kwargs": {}, "output": []}
    graph = {"Cell.b.x.Dense.forward.0": bare, "Cell.b.Block.forward.0": bare}
    inside = {"graph Cell.b.x.Dense.forward.0": "Cell.b.Block.forward.0"}
    outside = {"Cell.b.Block.forward.0": {**bare, "input_args": [leaf(VALUES[0])]}}
    dump = read_dump(write_halves(tmp_path, outside, graph, inside, task="structure"))
    assert list(dump.entries) == ["Cell.b.x.Dense.forward.0", "Cell.b.Block.forward.0"]
    assert len(dump.entries["Cell.b.Block.forward.0"].items) == 1
    assert dump.entries["Cell.b.x.Dense.forward.0"].parent == "Cell.b.Block.forward.0"


@pytest.mark.parametrize("killed", ["pynative", "graph"])
def test_a_half_that_was_killed_is_said_and_the_other_read(tmp_path: Path, killed: str) -> None:
    folder = write_halves(tmp_path, {"Cell.a.Dense.forward.0": forward(0)}, {"Cell.b.Dense.forward.0": forward(1)})
    (tmp_path / killed / "step0/rank0/dump.json").unlink()
    store = DumpStore(
        tmp_path / killed / "step0/rank0", task="statistics", level="L0", framework="mindspore", tensors=False
    )
    store.entry(EntryPart("Cell.c.Dense.forward.0", []))
    del store
    assert list(find_places(tmp_path).values()) == [folder / "dump.json"]
    dump = read_dump(folder)
    assert list(dump.entries) == [f"Cell.{'b' if killed == 'pynative' else 'a'}.Dense.forward.0"]
    assert f"{killed}/step0/rank0: a journal but no dump.json" in dump.damage
    assert "the other half of the step is read" in dump.damage


def test_halves_of_which_none_can_be_read(tmp_path: Path) -> None:
    folder = write_halves(tmp_path, {}, {})
    for half in ("pynative", "graph"):
        (tmp_path / half / "step0/rank0/dump.json").write_text("{")
    with pytest.raises(DumpFormatError):
        read_dump(folder)
