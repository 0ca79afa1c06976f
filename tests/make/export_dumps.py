"""Dumps of a small residual net that numpy computes, for what is exported of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from compare_parts import tensor

from msprobe_ms.comparison.export.topology import Topology, topology_of_comparison, topology_of_dump
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import parse_entry
from msprobe_ms.dump.reading.items import TensorSource
from msprobe_ms.dump.reading.locate import Place

PLACE = Place(0, "rank0")
ROOT = "Cell.Net.forward.0"
#: The call in which the error of ``net(scale=…)`` begins.
WRONG = "Cell.blocks.1.norm.LayerNorm.forward.0"
#: A layer mapping of ``net`` to ``fused_net``.
FUSED = Mappings(layer={"Attention": {"q + k + v": "qkv"}})


def recorded(name: str, parent: str | None, taken: Sequence[Any], given: Sequence[Any], **more: Any) -> Entry:
    """An entry of a call that took in and gave out these arrays."""
    items: list[Item] = []
    for state, values in (("input", taken), ("output", given)):
        items += [tensor(f"{state}.{place}", array, name) for place, array in enumerate(values)]
    return Entry(name, parse_entry(name), items, parent, **more)


def dump_of(*entries: Entry, framework: str = "mindspore", path: Path = Path("nowhere/step0/rank0")) -> Dump:
    by_name = {entry.name: entry for entry in entries}
    return Dump(path / "dump.json", "statistics", "mix", framework, "statistics", "latest", by_name, TensorSource(path))


def net(scale: float = 1.0, prefix: str = "Cell", framework: str = "mindspore") -> Dump:
    """Two blocks ``x + fc(norm(x))`` in a net, forward; of the second the norm multiplies by ``scale``."""
    random = np.random.default_rng(0)
    root = f"{prefix}.Net.forward.0"
    x = first = random.normal(size=(4, 8)).astype(np.float32)
    entries: list[Entry] = []
    for block in range(2):
        around = f"{prefix}.blocks.{block}.Block.forward.0"
        norm = (x / np.abs(x).max() * (scale if block else 1.0)).astype(np.float32)
        dense = (norm @ random.normal(size=(8, 8))).astype(np.float32)
        stack = (f"File net.py, line {block}, in construct,", "x = self.norm(x)")
        entries += [
            recorded(f"{prefix}.blocks.{block}.norm.LayerNorm.forward.0", around, [x], [norm], stack=stack),
            recorded(f"{prefix}.blocks.{block}.fc.Dense.forward.0", around, [norm], [dense]),
            recorded(around, root, [x], [x + dense]),
        ]
        x = x + dense
    entries.append(recorded(root, None, [first], [x]))
    return dump_of(*entries, framework=framework)


def attention(*parts: str, prefix: str = "Cell", framework: str = "mindspore") -> Dump:
    """An attention whose projections ``parts`` are what one, ``qkv``, gives out; each is 4 wide."""
    random = np.random.default_rng(1)
    x = random.normal(size=(2, 4)).astype(np.float32)
    whole = (x @ random.normal(size=(4, 12))).astype(np.float32)
    outputs = [whole] if len(parts) == 1 else np.split(whole, len(parts), axis=1)
    around = f"{prefix}.layer.Attention.forward.0"
    entries = [
        recorded(f"{prefix}.layer.{part}.Dense.forward.0", around, [x], [output])
        for part, output in zip(parts, outputs, strict=True)
    ]
    entries.append(recorded(around, None, [x], [whole[:, :4] + whole[:, 4:8]]))
    return dump_of(*entries, framework=framework)


def compared(target: Dump, golden: Dump, options: Options | None = None, suffix: str = "") -> Topology:
    comparison = compare_dumps(target, golden, options or Options())
    return topology_of_comparison(target, golden, comparison, PLACE, suffix)


def faulty() -> Topology:
    """A net one of whose norms is wrong beside the good one."""
    return compared(net(1.01), net())


def fused() -> Topology:
    """Three projections beside one that is all of them."""
    return compared(attention("q", "k", "v"), attention("qkv"), Options(mappings=FUSED))


def alone(dump: Dump) -> Topology:
    return topology_of_dump(dump, PLACE)


def number_of(topology: Topology, name: str, side: int = 0) -> int:
    """The number of the node of this name."""
    return [node.name for node in topology.graphs[side].nodes].index(name)


#: Names that a file may hold: of markup, of the languages that are written, of terminals, half characters, long ones.
HOSTILE = (
    "Functional.<script>alert(1)</script>.0.forward",
    'Functional.a"];b[label="\\.0.forward',
    "Functional.'); DROP TABLE tb_nodes; --.0.forward",
    "Functional.a/b\\N\n\x1b[31m\u202e&lt;.0.forward",
    "Functional.\ud800.0.forward",
    "Functional.\\ud800.0.forward",
    f"Functional.{'x' * 3000}.0.forward",
    "DefaultModel",
    "Apis_Between_Modules.0",
    "no grammar at all",
)


def hostile() -> Dump:
    """Calls of such names, one after the other, in a Cell of such a name."""
    x = np.arange(6, dtype=np.float32)
    around = 'Cell.a/b"\\.Block.forward.0'
    entries = [recorded(name, around, [x + place], [x + place + 1]) for place, name in enumerate(HOSTILE)]
    return dump_of(*entries, recorded(around, "Cell.gone.Net.forward.0", [x], [x + len(HOSTILE)]))
