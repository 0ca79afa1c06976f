"""Google's Model Explorer: a graph, the error ratios of its nodes, and which nodes of the two sides belong together.

Modules are layers that open and close; what such a module gives out itself is a node in its layer. Forward and backward
are layers of their own. The formats are those of Model Explorer 0.1.34: docs/export.md, "Model Explorer".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from msprobe_ms.comparison.export.edges import Edge, given_by, taken_by
from msprobe_ms.comparison.export.figures import about, as_text, compared, figures, in_one_line
from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Graph, Judged, Topology
from msprobe_ms.comparison.export.tree import children_of, enclosing, free_name
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.reporting.colours import STANDINGS as COLOURS
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.terms import Standing
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD
from msprobe_ms.support.translation import tr

#: The outermost layer of calls in each direction.
_DIRECTIONS = {FORWARD: "forward", BACKWARD: "backward", PARAMETERS_GRAD: "backward"}
#: Stands for an output or an input of which it is not known which it is.
_FOLLOWS = "follows"
#: JSON has no infinity.
_LARGEST = 1e300

_Json = dict[str, object]


def write(topologies: Iterable[Topology], naming: Naming) -> Iterator[Path]:
    """Write ``….graph.json`` of each topology, of a comparison ``….deviation.json`` and ``….sync.json`` as well.

    :raises UsageError: a file cannot be written
    """
    for topology in topologies:
        parts = {".graph.json": _graphs(topology, naming)}
        if topology.comparison is not None:
            parts[".deviation.json"] = _deviations(topology)
            parts[".sync.json"] = _couples(topology)
        for ending, content in parts.items():
            path = naming.path(topology.suffix, ending)
            with writing(path) as file:
                file.write(orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS))
            yield path


def _graphs(topology: Topology, naming: Naming) -> _Json:
    label = f"export{topology.suffix}_{naming.timestamp}"
    return {"label": label, "graphs": [_graph(graph) for graph in topology.graphs]}


def _graph(graph: Graph) -> _Json:
    layers = _Layers(graph)
    incoming: dict[int, list[Edge]] = {}
    for edge in graph.edges:
        incoming.setdefault(edge.target, []).append(edge)
    nodes = [
        _node(graph, number, layers, incoming.get(number, [])) for number, node in enumerate(graph.nodes) if node.entry
    ]
    about_layers = {
        layers.of(number): dict(about(node, graph.judged.get(number)))
        for number, node in enumerate(graph.nodes)
        if number in layers.opened and node.entry is not None
    }
    return {"id": graph.title, "nodes": nodes, "groupNodeAttributes": about_layers}


class _Layers:
    """The layer of every node, as a path with slashes; ``opened``: the nodes that are layers themselves."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes
        children = children_of(graph.nodes)
        self.opened = {number for number in range(len(graph.nodes)) if children[number]}
        self._segments: dict[int, str] = {}
        for inside in children:
            taken: dict[str, int] = {}
            for number in inside:
                if number in self.opened:
                    label = graph.nodes[number].label.replace("/", "∕")
                    direction = _DIRECTIONS.get(graph.nodes[number].direction, "")
                    self._segments[number] = free_name(f"{direction}/{label}", taken).partition("/")[2]

    def of(self, number: int) -> str:
        around = enclosing(self._nodes, number)
        outermost = self._nodes[around[0] if around else number]
        direction = _DIRECTIONS.get(outermost.direction)
        own = [number] if number in self.opened else []
        return "/".join([*([direction] if direction else []), *(self._segments[each] for each in (*around, *own))])


def _node(graph: Graph, number: int, layers: _Layers, incoming: list[Edge]) -> _Json:
    node, judged = graph.nodes[number], graph.judged.get(number)
    entry = node.entry
    assert entry is not None
    rows = judged.rows_by_name() if judged is not None else {}
    attributes = [*about(node, judged), *_values(entry, rows)]
    return {
        "id": node.name,
        "label": tr("{title} (result)", title=node.title) if number in layers.opened else node.title,
        "namespace": layers.of(number),
        "attrs": [{"key": key, "value": value} for key, value in attributes],
        "incomingEdges": [_edge(graph, edge) for edge in incoming],
        "inputsMetadata": [_metadata(place, item, statistics=False) for place, item in enumerate(taken_by(entry))],
        "outputsMetadata": [_metadata(place, item, statistics=True) for place, item in enumerate(given_by(entry))],
    }


def _values(entry: Entry, rows: dict[str, Row]) -> Iterator[tuple[str, str]]:
    """The values of a call, each in one line."""
    for item in entry.items:
        if item.kind == "null":
            continue
        row = rows.get(item.name)
        told = (compared(row, item) if row is not None else {}) | figures(item)
        for less in ("type", "Counterpart"):
            told.pop(less, None)
        yield as_text(item.suffix or item.state), in_one_line(told)


def _edge(graph: Graph, edge: Edge) -> _Json:
    return {
        "sourceNodeId": graph.nodes[edge.source].name,
        "sourceNodeOutputId": str(edge.output) if edge.is_known else _FOLLOWS,
        "targetNodeInputId": str(edge.input) if edge.is_known and edge.input >= 0 else _FOLLOWS,
    }


def _metadata(place: int, item: Item, *, statistics: bool) -> _Json:
    """What the viewer shows of a value at its edges; all figures are among the attributes, also where no edge leads."""
    known = figures(item)
    told = {"name": as_text(item.suffix or item.state)}
    told["tensor_shape"] = " ".join(known[name] for name in ("dtype", "shape") if name in known)
    if statistics:
        told |= {name: known[name] for name in ("Max", "Min", "Mean", "Norm") if name in known}
    return {"id": str(place), "attrs": [{"key": key, "value": value} for key, value in told.items()]}


def _deviations(topology: Topology) -> _Json:
    return {graph.title: _deviation(graph) for graph in topology.graphs}


def _deviation(graph: Graph) -> _Json:
    """The error ratio of every call, in the colour of its standing; thresholds for viewers that colour by numbers."""
    results = {graph.nodes[number].name: _result(judged) for number, judged in graph.judged.items()}
    agrees, differs = COLOURS[Standing.AGREES], COLOURS[Standing.INHERITED]
    return {
        "results": results,
        "thresholds": [{"value": 1.0, "bgColor": agrees}, {"value": _LARGEST, "bgColor": differs}],
    }


def _result(judged: Judged) -> _Json:
    colour = {"bgColor": COLOURS[judged.standing], "textColor": "#000000"}
    if not judged.counterparts or judged.standing == Standing.NOT_COMPARED:
        return {"value": str(judged.standing), **colour}
    ratio = judged.ratio if math.isfinite(judged.ratio) else _LARGEST
    return {"value": float(f"{ratio:.4g}"), **colour}


def _couples(topology: Topology) -> _Json:
    """Which nodes belong together: one beside one, or several where one side has fused what is several on the other."""
    left, right = (graph.nodes for graph in topology.graphs)
    couples = [
        ([left[each].name for each in ours], [right[each].name for each in theirs]) for ours, theirs in topology.couples
    ]
    return {
        "type": "sync_navigation",
        "mappingEntries": [{"leftNodeIds": ours, "rightNodeIds": theirs} for ours, theirs in couples],
    }
