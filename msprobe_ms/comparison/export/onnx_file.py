"""ONNX: the structure of a dump, as Netron shows it; no weights, and operators that no runtime knows.

Each call is a node whose type is its class or operation; what flows between calls are the values. What was judged and
the figures are attributes. The package ``onnx`` is needed: docs/dependencies.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.export.edges import UNKNOWN, given_by, taken_by
from msprobe_ms.comparison.export.figures import about, as_text, figures, in_one_line
from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Graph, Topology
from msprobe_ms.comparison.export.tree import free_name
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import PARAMETERS_GRAD
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

#: Operators of this domain are in no standard.
_DOMAIN = "msprobe"
_IR_VERSION, _OPSET = 8, 17


def write(topologies: Iterable[Topology], naming: Naming) -> Iterator[Path]:
    """Write ``….onnx`` of each dump, ``….target.onnx`` and ``….golden.onnx`` of each comparison.

    :raises UsageError: ``onnx`` is not installed, or a file cannot be written
    """
    onnx = _onnx()
    for topology in topologies:
        for graph in topology.graphs:
            side = f".{graph.title}" if len(topology.graphs) > 1 else ""
            path = naming.path(topology.suffix, f"{side}.onnx")
            model = _model(onnx, graph)
            with writing(path) as file:
                file.write(model.SerializeToString())
            yield path


def _onnx() -> Any:
    try:
        import onnx  # here, as it is an extra
    except ImportError as error:
        raise UsageError(
            tr(
                'onnx is not installed, and --to onnx needs it: pip install "msprobe-ms[onnx]"; with '
                'MindSpore "msprobe-ms[mindspore,onnx]"'
            )
        ) from error
    return onnx


def _model(onnx: Any, graph: Graph) -> Any:
    values = _Values(onnx, graph)
    nodes = [values.node(number, graph.nodes[number].entry) for number in values.order]
    made = onnx.helper.make_graph(
        nodes, as_text(graph.dump.path), values.inputs, values.outputs(), value_info=values.between()
    )
    return onnx.helper.make_model(
        made,
        producer_name="msprobe_ms",
        ir_version=_IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid(_DOMAIN, 1)],
    )


class _Values:
    """The values of a graph: one for each tensor that a call gives out, and one for each that came from outside."""

    def __init__(self, onnx: Any, graph: Graph) -> None:
        self._onnx, self._graph = onnx, graph
        entries = [node.entry for node in graph.nodes if node.entry is not None]
        #: Gradients of parameters may be recorded before the call that made them; all else comes after its sources.
        self.order = sorted(range(len(entries)), key=lambda number: graph.nodes[number].direction == PARAMETERS_GRAD)
        self._taken_names: dict[str, int] = {}
        self._given = [[self._name(item) for item in given_by(entry)] for entry in entries]
        self._items = [given_by(entry) for entry in entries]
        self.inputs: list[Any] = []
        self._used: set[str] = set()
        self._follows: dict[int, str] = {}
        self._sources: dict[int, dict[int, str]] = {}
        self._more: dict[int, list[str]] = {}
        for edge in graph.edges:
            if edge.is_known:
                value = self._given[edge.source][edge.output]
            else:
                value = self._following(edge.source)
            self._used.add(value)
            if edge.is_known and edge.input != UNKNOWN:
                self._sources.setdefault(edge.target, {})[edge.input] = value
            else:
                self._more.setdefault(edge.target, []).append(value)

    def _name(self, item: Item) -> str:
        return free_name(as_text(item.name), self._taken_names)

    def _following(self, source: int) -> str:
        """What stands for a tensor of which it is not known what became of it."""
        if source not in self._follows:
            # The first that it gives out, where there is one: what follows most likely takes that in.
            given = self._given[source]
            name = given[0] if given else free_name(f"{self._graph.nodes[source].name} …", self._taken_names)
            self._follows[source] = name
        return self._follows[source]

    def node(self, number: int, entry: Entry | None) -> Any:
        assert entry is not None
        node, judged = self._graph.nodes[number], self._graph.judged.get(number)
        told = {key.replace(" ", "_"): value for key, value in about(node, judged)}
        for item in entry.items:
            if item.kind != "null":
                told.setdefault(as_text(item.suffix or item.state), in_one_line(figures(item)))
        given = self._given[number] or ([self._follows[number]] if number in self._follows else [])
        made = self._onnx.helper.make_node(
            node.kind or node.label, self._taken(number, entry), given, name=node.name, domain=_DOMAIN
        )
        made.attribute.extend(self._onnx.helper.make_attribute(key, value) for key, value in told.items())
        return made

    def _taken(self, number: int, entry: Entry) -> list[str]:
        sources = self._sources.get(number, {})
        more = self._more.get(number, [])
        taken = []
        for place, item in enumerate(taken_by(entry)):
            if place in sources:
                taken.append(sources[place])
            elif item.kind == "tensor" and not more:
                self.inputs.append(self._info(self._name(item), item))
                taken.append(self.inputs[-1].name)
        return [*taken, *dict.fromkeys(more)]

    def outputs(self) -> list[Any]:
        """What nothing that was recorded takes in."""
        return [self._info(name, item) for name, item in self._all() if name not in self._used]

    def between(self) -> list[Any]:
        return [self._info(name, item) for name, item in self._all() if name in self._used]

    def _all(self) -> Iterator[tuple[str, Item]]:
        for names, items in zip(self._given, self._items, strict=True):
            yield from zip(names, items, strict=True)

    def _info(self, name: str, item: Item) -> Any:
        unknown = ["unknown"] if item.kind == "tensor" else []  # ONNX wants the shape of what goes in and comes out
        shape = list(item.shape) if isinstance(item.shape, tuple) else unknown
        return self._onnx.helper.make_tensor_value_info(name, self._type(item), shape)

    def _type(self, item: Item) -> int:
        """The number of a dtype; that of float, which a value must have one of, where ONNX has none."""
        name = parse_dtype(item.dtype).name.replace("float8_", "float8").upper()
        types = self._onnx.TensorProto.DataType
        aliases = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}
        found = aliases.get(name, name)
        return int(types.Value(found)) if found in types.keys() else int(types.Value("FLOAT"))  # noqa: SIM118
