"""The language of Graphviz: a cluster for every module, the calls in it, and what flows between them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from msprobe_ms.comparison.export.edges import given_by
from msprobe_ms.comparison.export.figures import as_text
from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Graph, Judged, Topology
from msprobe_ms.comparison.export.tree import Node, children_of
from msprobe_ms.comparison.reporting.colours import STANDINGS as COLOURS
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.terms import Standing
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import FORWARD
from msprobe_ms.support.text import printable

_HEAD = """\
  graph [fontname="sans-serif", labeljust=l, color="#888888", style=rounded]
  node [fontname="sans-serif", fontsize=11, shape=box, style="rounded,filled", fillcolor="#FFFFFF"]
  edge [fontname="sans-serif", fontsize=9, color="#555555"]
"""


def write(topologies: Iterable[Topology], naming: Naming) -> Iterator[Path]:
    """Write ``….dot`` of each dump, ``….target.dot`` and ``….golden.dot`` of each comparison.

    :raises UsageError: a file cannot be written
    """
    for topology in topologies:
        for graph in topology.graphs:
            side = f".{graph.title}" if len(topology.graphs) > 1 else ""
            path = naming.path(topology.suffix, f"{side}.dot")
            with writing(path) as file:
                write_graph(file, graph)
            yield path


def write_graph(file: BinaryIO, graph: Graph) -> None:
    """Write one graph; a dashed edge leads to what only follows, as far as is known."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
    text.write(f"digraph {quoted(graph.title)} {{\n{_HEAD}")
    text.writelines(_Clusters(graph).lines(None, "  "))
    for edge in graph.edges:
        if edge.is_known:
            given = given_by(graph.nodes[edge.source].entry)[edge.output]  # type: ignore[arg-type]
            text.write(f"  n{edge.source} -> n{edge.target} [label={quoted(_shape(given))}]\n")
        else:
            text.write(f"  n{edge.source} -> n{edge.target} [style=dashed]\n")
    text.write("}\n")
    text.detach()


class _Clusters:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._children = children_of(graph.nodes)

    def lines(self, around: int | None, indent: str) -> Iterator[str]:
        """The nodes inside of one; those that enclose others as clusters."""
        for number in self._children[-1 if around is None else around]:
            node = self._graph.nodes[number]
            if not self._children[number]:
                yield f"{indent}{self._node(number)}"
                continue
            yield f"{indent}subgraph cluster_{number} {{\n{indent}  label={quoted(_title(node))}\n"
            if node.entry is not None:
                yield f"{indent}  {self._node(number)}"
            yield from self.lines(number, f"{indent}  ")
            yield f"{indent}}}\n"

    def _node(self, number: int) -> str:
        node, judged = self._graph.nodes[number], self._graph.judged.get(number)
        title = f"{_title(node)} (result)" if self._children[number] else _title(node)
        lines = [title, *([] if judged is None else [_verdict(judged)])]
        shown = [f"label={quoted(*lines)}", f"tooltip={quoted(node.name)}"]
        if judged is not None:
            shown.append(f'fillcolor="{COLOURS[judged.standing]}"')
            if judged.standing == Standing.ORIGIN:
                shown.append("penwidth=3")
        return f"n{number} [{', '.join(shown)}]\n"


def quoted(*lines: str) -> str:
    """Return lines as one text of the language, in which nothing of them means anything but itself."""
    return '"' + "\\n".join(map(_escaped, lines)) + '"'


def _escaped(text: str) -> str:
    return printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def _title(node: Node) -> str:
    return node.title if node.direction in (FORWARD, "") else f"{node.title} ({node.direction})"


def _verdict(judged: Judged) -> str:
    compared = judged.counterparts and judged.standing != Standing.NOT_COMPARED
    return f"{judged.standing}, error ratio {judged.ratio:.3g}" if compared else str(judged.standing)


def _shape(item: Item) -> str:
    return as_text(list(item.shape)) if isinstance(item.shape, tuple) else ""
