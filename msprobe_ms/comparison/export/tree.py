"""The calls of a dump as a tree: what encloses what, also where not every module was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msprobe_ms.dump.kernels.scope_path import parse_scope
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, EntryName, parse_entry

#: Levels of a tree. What lies deeper is put into the last of them: no viewer shows so many, and names of places that
#: hold all that encloses them would take the square of their number.
DEEPEST = 64
#: The same of groups that are made of the parts of one name.
_DEEPEST_GROUP = 24
_LONGEST_LABEL = 200


@dataclass(slots=True)
class Node:
    """A call, or a group of calls: a module that was not recorded itself, a scope of a compiled graph.

    ``name``    the entry's, or the group's; no two nodes of a tree share one, and it can be written as UTF-8
    ``label``   what it is called inside of what encloses it: ``norm1``, ``relu.2``
    ``kind``    its class or operation: ``LayerNorm``, ``relu``; "" of a group that is known by its path alone
    ``parent``  number of the node that encloses it, in the list of nodes; None where none does
    ``direction``  ``forward``, ``backward``, …; "" where that is not known
    """

    name: str
    label: str
    kind: str
    entry: Entry | None = None
    parent: int | None = None
    direction: str = ""

    @property
    def title(self) -> str:
        """Its label and, where that does not say it, its kind."""
        return self.label if not self.kind or self.kind in self.label else f"{self.label}: {self.kind}"


def tree_of(dump: Dump) -> list[Node]:
    """Return the nodes of a dump: its calls in their order, then groups.

    A call lies in the one that enclosed it; where that was not recorded, in a group of its name; a compiled kernel that
    is in no known Cell in groups by its scope. Where nothing at all is known of what encloses what, modules lie in each
    other as their paths say.
    """
    tree = _Growing(dump)
    _settle(tree.nodes)
    tree.name_nodes()
    return tree.nodes


def children_of(nodes: Sequence[Node]) -> list[list[int]]:
    """Return the numbers of the nodes that each node encloses, by their first calls; last those of the outermost."""
    children: list[list[int]] = [[] for _ in range(len(nodes) + 1)]
    placed = [False] * len(nodes)
    for number in range(len(nodes)):
        up: int | None = number
        while up is not None and not placed[up]:
            placed[up] = True
            parent = nodes[up].parent
            children[-1 if parent is None else parent].append(up)
            up = parent
    return children


class _Growing:
    def __init__(self, dump: Dump) -> None:
        self.entries = list(dump.entries.values())
        self.nodes = [
            Node(entry.name, "", "", entry, None, entry.parsed.direction if entry.parsed is not None else "")
            for entry in self.entries
        ]
        self._numbers = {entry.name: number for number, entry in enumerate(self.entries)}
        self._modules = {
            _place(parsed): number
            for number, entry in enumerate(self.entries)
            if (parsed := entry.parsed) is not None and parsed.is_module
        }
        self._groups: dict[tuple[object, ...], int] = {}
        self._known: dict[str, int | None] = {}
        if any(entry.parent or entry.scope for entry in self.entries):
            for number, entry in enumerate(self.entries):
                self.nodes[number].parent = self._enclosing(entry)
        else:
            self._nest_by_path()
        self._place_gradients()

    def _enclosing(self, entry: Entry) -> int | None:
        around = entry.parent or entry.scope
        if not around:
            return None
        if entry.parent in self._numbers:
            return self._numbers[entry.parent]
        if around not in self._known:
            self._known[around] = self._unrecorded(around) if entry.parent else self._scope(around)
        return self._known[around]

    def _unrecorded(self, name: str) -> int | None:
        """The group of a call that was not recorded, inside of the modules that its path names."""
        parsed = parse_entry(name)
        if parsed is None or not parsed.is_module:
            return self._group(("", 0), [name])
        parts = parsed.name.split(".") if parsed.name else [parsed.class_name]
        return self._group((parsed.direction, parsed.index), parts, parsed.class_name)

    def _scope(self, scope: str) -> int | None:
        found = parse_scope(scope)
        parts = [component.attribute for component in found.components]
        return self._group((found.direction, "scope"), parts, found.components[-1].class_name) if parts else None

    def _group(self, begin: tuple[object, ...], parts: Sequence[str], kind: str = "") -> int | None:
        """The group of a path, made together with those around it that are not there."""
        parent = self._modules.get((*begin, ""))
        for depth in range(1, min(len(parts), _DEEPEST_GROUP) + 1):
            path = ".".join(parts[:depth])
            key = (*begin, path)
            number = self._modules.get(key, self._groups.get(key))
            if number is None:
                number = self._groups[key] = len(self.nodes)
                group = Node(f"{begin[0]} {path}".strip(), parts[depth - 1], "", None, parent, str(begin[0]))
                self.nodes.append(group)
            parent = number
        if parent is not None and len(parts) <= _DEEPEST_GROUP and self.nodes[parent].entry is None:
            self.nodes[parent].kind = kind
        return parent

    def _nest_by_path(self) -> None:
        """A call ends before the one around it does: from the end on, the last that was met encloses it."""
        met: dict[tuple[str, str], int] = {}
        for number in range(len(self.entries) - 1, -1, -1):
            parsed = self.entries[number].parsed
            if parsed is None or not parsed.is_module or parsed.direction not in (FORWARD, BACKWARD):
                continue
            parts = parsed.name.split(".")[:_DEEPEST_GROUP] if parsed.name else []
            above = (".".join(parts[:depth]) for depth in range(len(parts) - 1, -1, -1))
            found = (met[key] for path in above if (key := (parsed.direction, path)) in met)
            self.nodes[number].parent = next(found, None)
            met[parsed.direction, parsed.name] = number

    def _place_gradients(self) -> None:
        """The gradients of a module's parameters lie beside its backward call."""
        for node in self.nodes[: len(self.entries)]:
            if node.direction == PARAMETERS_GRAD and node.parent is None and node.entry and node.entry.parsed:
                made = self._numbers.get(str(node.entry.parsed.in_direction(BACKWARD)))
                node.parent = None if made is None else self.nodes[made].parent

    def name_nodes(self) -> None:
        """Give every node a name of its own and its label."""
        taken: dict[str, int] = {}
        for node in self.nodes:
            if node.entry is not None:
                node.label, node.kind = _called(node.entry, self._path_around(node))
            node.label = as_utf8(node.label[:_LONGEST_LABEL]) or "?"
            node.kind = as_utf8(node.kind[:_LONGEST_LABEL])
            node.name = free_name(as_utf8(node.name), taken)

    def _path_around(self, node: Node) -> str:
        """The path of the nearest module that encloses a call."""
        while node.parent is not None:
            node = self.nodes[node.parent]
            if node.entry is not None and (parsed := node.entry.parsed) is not None and parsed.is_module:
                return parsed.name
            if node.entry is None and " " in node.name:
                return node.name.partition(" ")[2]
        return ""


def _place(parsed: EntryName) -> tuple[object, ...]:
    return parsed.direction, parsed.index, parsed.name


def _called(entry: Entry, around: str) -> tuple[str, str]:
    """What a call is called inside of the module at the path ``around``, and its class or operation."""
    parsed = entry.parsed
    if parsed is None:
        return entry.name, ""
    number = "" if parsed.index is None else f".{parsed.index}"
    if not parsed.is_module:
        return f"{parsed.name}{number}", parsed.name.rpartition(".")[2]
    path = parsed.name.removeprefix(f"{around}.") if around else parsed.name
    gradients = f" {PARAMETERS_GRAD}" if parsed.direction == PARAMETERS_GRAD else ""
    return f"{path or parsed.class_name}{number if parsed.index else ''}{gradients}", parsed.class_name


def _settle(nodes: Sequence[Node]) -> None:
    """Open the rings of nodes that enclose each other, as a damaged construct.json says, and level what is too deep."""
    depths: dict[int, int] = {}
    for number in range(len(nodes)):
        path: dict[int, None] = {}
        up: int | None = number
        while up is not None and up not in depths and up not in path:
            path[up] = None
            up = nodes[up].parent
        if up is not None and up in path:
            nodes[next(reversed(path))].parent = None
        for each in reversed(path):
            parent = nodes[each].parent
            depth = 0 if parent is None else depths[parent] + 1
            if parent is not None and depth > DEEPEST:
                nodes[each].parent, depth = nodes[parent].parent, DEEPEST
            depths[each] = depth


def free_name(name: str, taken: dict[str, int]) -> str:
    """Return ``name``, with a number behind it where ``taken`` has it; ``taken``: names → how often they were asked."""
    wanted = name
    while name in taken:
        taken[wanted] += 1
        name = f"{wanted} ({taken[wanted]})"
    taken[name] = 1
    return name


def as_utf8(text: str) -> str:
    """Return text that can be written as UTF-8: half characters, which names from files may hold, become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def enclosing(nodes: Sequence[Node], number: int) -> list[int]:
    """Return the nodes around one, from the outside in."""
    around: list[int] = []
    parent = nodes[number].parent
    while parent is not None:
        around.append(parent)
        parent = nodes[parent].parent
    return around[::-1]
