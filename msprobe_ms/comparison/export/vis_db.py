"""The database that tb_graph_ascend, msprobe's plugin of TensorBoard, shows: two graphs beside each other, in colours.

The plugin colours by our verdict: 1 is where an error begins, 0.5 what differs otherwise, 0 what agrees. All steps and
ranks are in one file. Tables and columns are those of tb_graph_ascend 8.3.2: docs/export.md, "tb_graph_ascend".
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import orjson

from msprobe_ms.comparison.export.figures import EXPLANATIONS, STANDINGS, as_text, compared, figures
from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Graph, Topology
from msprobe_ms.comparison.export.tree import Node, children_of, free_name
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.reporting.colours import STANDINGS as COLOURS
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.terms import Mode, Standing
from msprobe_ms.dump.dialects import COLLECTIVE_PREFIXES
from msprobe_ms.dump.model import Entry
from msprobe_ms.support.errors import UsageError

_SCHEMA = """
CREATE TABLE tb_nodes (
    id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, node_order INTEGER NOT NULL, node_name TEXT NOT NULL,
    node_type TEXT NOT NULL, up_node TEXT, sub_nodes TEXT, precision_index INTEGER, overflow_level TEXT,
    micro_step_id INTEGER NOT NULL, matched_node_link TEXT, stack_id TEXT, parallel_merge_info TEXT,
    matched_distributed TEXT, modified INTEGER NOT NULL, input_data TEXT, output_data TEXT, data_source TEXT,
    dump_data_dir TEXT, step INTEGER NOT NULL, rank INTEGER NOT NULL, is_distributed INTEGER
);
CREATE TABLE tb_stack (id TEXT PRIMARY KEY, stack_info TEXT);
CREATE TABLE tb_config (
    id TEXT PRIMARY KEY, graph_type TEXT NOT NULL, task TEXT, tool_tip TEXT, micro_steps INTEGER,
    overflow_check INTEGER, node_colors TEXT NOT NULL, rank_list TEXT NOT NULL, step_list TEXT NOT NULL
);
"""
_INDEXES = """
CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order);
CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name);
CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order);
CREATE INDEX index4 ON tb_nodes (step, rank, node_order);
CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order);
CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link);
CREATE INDEX index7 ON tb_nodes (is_distributed);
"""
_NODE = f"INSERT INTO tb_nodes VALUES ({', '.join('?' * 22)})"
_STACK = "INSERT INTO tb_stack VALUES (?, ?)"
_CONFIG = f"INSERT INTO tb_config VALUES ({', '.join('?' * 9)})"

#: The plugin's names of the two sides; one dump alone has the target's.
_SOURCES = {"dump": "NPU", "target": "NPU", "golden": "Bench"}
_TASKS = {Mode.STATISTICS: "summary", Mode.MD5: "md5", Mode.TENSOR: "all"}
_MODULE, _API, _COLLECTION = "0", "1", "9"
_ROOT, _BETWEEN = "DefaultModel", "Apis_Between_Modules"
_PRECISION = {Standing.ORIGIN: 1, Standing.INHERITED: 0.5, Standing.AGREES: 0}
#: Of the colours: from which index on, up to which, and the plugin's name of it.
_LEVELS = {
    Standing.AGREES: ([0, 0.3], "pass"),
    Standing.INHERITED: ([0.3, 0.6], "warning"),
    Standing.ORIGIN: ([0.6, 1], "error"),
}


def write(topologies: Iterable[Topology], naming: Naming) -> Iterator[Path]:
    """Write all topologies into one ``….vis.db``.

    :raises UsageError: it cannot be written
    """
    path = naming.path("", ".vis.db")
    with writing(path) as file, tempfile.TemporaryDirectory(prefix=".export_", dir=path.parent) as folder:
        made = Path(folder) / "vis.db"
        try:
            with closing(sqlite3.connect(made)) as database:
                _fill(database, topologies)
        except sqlite3.Error as error:
            raise UsageError(f"{path}: the database cannot be written: {error}") from error
        with made.open("rb") as content:
            shutil.copyfileobj(content, file)
    yield path


def _fill(database: sqlite3.Connection, topologies: Iterable[Topology]) -> None:
    """One transaction a topology; the indexes last, as rows are added faster without."""
    database.executescript(_SCHEMA)
    places: dict[tuple[int, int], None] = {}
    task, graph_type = "summary", "build"
    for topology in topologies:
        step, rank = topology.place.step or 0, topology.place.rank_number or 0
        while (step, rank) in places:  # processes without a rank, halves of one run
            rank += 1
        places[step, rank] = None
        if topology.comparison is not None:
            graph_type = "compare"
        task = _task(topology)
        others = [_Tree(graph, step, rank) for graph in topology.graphs]
        with database:
            for tree, other in zip(others, others[::-1], strict=True):
                database.executemany(_STACK, tree.stacks())
                database.executemany(_NODE, tree.rows(other))
    with database:
        config = ("1", graph_type, task, _json(EXPLANATIONS), 1, 0, _json(_colours()))
        steps, ranks = (sorted({place[part] for place in places}) for part in (0, 1))
        database.execute(_CONFIG, (*config, _json(ranks), _json(steps)))
    database.executescript(_INDEXES)


def _task(topology: Topology) -> str:
    dump = topology.graphs[0].dump
    mode = topology.comparison.mode if topology.comparison is not None else Mode(dump.mode)
    return "structure" if dump.task == "structure" else _TASKS[mode]


def _colours() -> dict[str, object]:
    found: dict[str, object] = {
        COLOURS[standing]: {"value": span, "description": STANDINGS[standing], "accuracy_level": level}
        for standing, (span, level) in _LEVELS.items()
    }
    unmatched = COLOURS[Standing.UNMATCHED]
    return {**found, unmatched: {"value": "unmatched", "description": STANDINGS[Standing.UNMATCHED]}}


class _Tree:
    """The nodes of one graph below one root, as the plugin walks them."""

    def __init__(self, graph: Graph, step: int, rank: int) -> None:
        self._graph, self._step, self._rank = graph, step, rank
        self._source = _SOURCES[graph.title]
        self._id = f"{self._source}_{step}_{rank}"
        self._root = len(graph.nodes)
        self.nodes = _below_one_root(graph.nodes)
        self._children = children_of(self.nodes)
        self._order = {number: place for place, number in enumerate(self._post_order(self._root))}
        self._stack_numbers: dict[tuple[str, ...], int] = {(): 0}
        for node in graph.nodes:
            if node.entry is not None:
                self._stack_numbers.setdefault(node.entry.stack, len(self._stack_numbers))
        self._worst: dict[int, float | None] = {}

    def _post_order(self, number: int) -> Iterator[int]:
        """A node after those inside of it. Trees are not deep."""
        for child in self._children[number]:
            yield from self._post_order(child)
        yield number

    def path(self, number: int) -> list[str]:
        """The names of the nodes from the root to one."""
        names: list[str] = []
        up: int | None = number
        while up is not None:
            names.append(self.nodes[up].name)
            up = self.nodes[up].parent
        return names[::-1]

    def stacks(self) -> Iterator[tuple[str, str]]:
        for stack, number in self._stack_numbers.items():
            yield f"{self._id}_{number}", _json([as_text(frame) for frame in stack])

    def rows(self, other: _Tree) -> Iterator[tuple[object, ...]]:
        for number in self._order:
            yield self._row(number, other)

    def _row(self, number: int, other: _Tree) -> tuple[object, ...]:
        node, judged = self.nodes[number], self._graph.judged.get(number)
        entry, parent = node.entry, node.parent
        prefix = entry.parsed.prefix if entry is not None and entry.parsed is not None else ""
        counterpart = judged.counterparts[0] if judged is not None and judged.counterparts else None
        if number == self._root and other is not self:
            counterpart = other._root
        rows = judged.rows_by_name() if judged is not None else {}
        return (
            f"{self._id}_{node.name}",
            self._id,
            self._order[number],
            node.name,
            self._type(number),
            "" if parent is None else self.nodes[parent].name,
            _json([self.nodes[child].name for child in self._children[number]]),
            self._precision(number),
            None,
            0,
            _json([] if counterpart is None else other.path(counterpart)),
            f"{self._id}_{self._stack_numbers[entry.stack if entry is not None else ()]}",
            _json([]),
            _json({}),
            0,
            _values(entry, rows, given=False),
            _values(entry, rows, given=True),
            self._source,
            as_text(self._graph.dump.path.parent),
            self._step,
            self._rank,
            int(prefix in COLLECTIVE_PREFIXES),
        )

    def _type(self, number: int) -> str:
        if number > self._root:
            return _COLLECTION
        return _MODULE if _is_module(self.nodes[number]) else _API

    def _precision(self, number: int) -> float | None:
        """What was judged of a call; of what is no call the worst that lies in it, which comes first in the order."""
        judged = self._graph.judged.get(number)
        own = _PRECISION.get(judged.standing) if judged is not None else None
        known = [index for child in self._children[number] if (index := self._worst.pop(child)) is not None]
        self._worst[number] = max([*known, *([] if own is None else [own])], default=None)
        return own if self.nodes[number].entry is not None else self._worst[number]


def _below_one_root(nodes: Sequence[Node]) -> list[Node]:
    """The nodes below a root, which comes next; calls of functions between two outermost modules lie together."""
    taken = {node.name: 1 for node in nodes}
    root = len(nodes)
    found = [replace(node, parent=root if node.parent is None else node.parent) for node in nodes]
    found.append(Node(free_name(_ROOT, taken), _ROOT, ""))
    outermost = children_of(nodes)[-1]
    if any(_is_module(nodes[number]) for number in outermost):
        for is_module, group in groupby(outermost, lambda number: _is_module(nodes[number])):
            if not is_module:
                name = free_name(f"{_BETWEEN}.{len(found) - root - 1}", taken)
                for number in group:
                    found[number].parent = len(found)
                found.append(Node(name, name, "", parent=root))
    return found


def _is_module(node: Node) -> bool:
    """Whether a node is a call of a module, or stands for some that were not recorded."""
    return node.entry is None or (node.entry.parsed is not None and node.entry.parsed.is_module)


def _values(entry: Entry | None, rows: dict[str, Row], *, given: bool) -> str:
    """What a call took in, parameters included, or what it gave out."""
    told: dict[str, dict[str, str]] = {}
    for item in entry.items if entry is not None else ():
        if (item.state in ("input", "parameters")) != given:
            row = rows.get(item.name)
            told[as_text(item.name)] = figures(item) | (compared(row, item) if row is not None else {})
    return _json(told)


def _json(value: dict[str, object] | dict[str, str] | dict[str, dict[str, str]] | Sequence[object]) -> str:
    return orjson.dumps(value).decode("utf-8")
