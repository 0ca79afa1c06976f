"""Find the names of a script whose values reach nothing but msprobe: they set up recording, and not the training.

A value counts as one of the training unless every use of it lies in a call of msprobe or of its debugger, or in an
assignment to a name of which the same holds, or decides only whether such statements run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence

#: Packages whose calls set up recording.
_PACKAGES = ("msprobe_ms", "msprobe")


def told_to_msprobe(tree: ast.Module, sets_training: Callable[[str], bool]) -> set[str]:
    """Return names of variables that only msprobe is told, and of attributes with a dot: ``.level`` of ``args.level``.

    ``sets_training``: whether a function of this name sets up the training, though msprobe has it (``seed_all``)
    """
    uses = _Uses(tree, sets_training)
    found: set[str] = set()
    while more := {name for name, nodes in uses.loads.items() if name not in found and uses.are_told(nodes, found)}:
        found |= more
    return found


class _Uses:
    """Where names of a script are used: of variables, and of attributes, which have a dot in front."""

    def __init__(self, tree: ast.Module, sets_training: Callable[[str], bool]) -> None:
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._sets_training = sets_training
        self._callees = set(_imported(tree))
        assigned = _assigned(tree)
        self._callees |= {name for name, values in assigned.items() if self._is_debugger(values)}
        self.loads: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not self._is_filled(node):
                self.loads.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.loads.setdefault(f".{node.attr}", []).append(node)

    def are_told(self, nodes: Collection[ast.expr], found: Collection[str]) -> bool:
        """Whether each of these uses tells msprobe something, if each use of what is in ``found`` does."""
        return all(self._is_told(node, found) for node in nodes)

    def _is_told(self, node: ast.AST, found: Collection[str]) -> bool:
        inner, outer = node, self._parents.get(node)
        while outer is not None and not isinstance(outer, ast.stmt):
            if isinstance(outer, ast.Call) and inner is not outer.func and self._tells(outer):
                return True
            inner, outer = outer, self._parents.get(outer)
        if isinstance(outer, ast.If) and inner is outer.test:
            return self._only_tells(outer, found)
        return _fills(outer, found)

    def _only_tells(self, statement: ast.stmt, found: Collection[str]) -> bool:
        """Whether a statement does nothing but tell msprobe something."""
        if isinstance(statement, ast.If):
            return all(self._only_tells(each, found) for each in (*statement.body, *statement.orelse))
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return self._tells(statement.value)
        return _fills(statement, found)

    def _tells(self, call: ast.Call) -> bool:
        names = _path(call.func)
        return bool(names) and names[0] in self._callees and not self._sets_training(names[-1])

    def _is_debugger(self, values: Sequence[ast.expr]) -> bool:
        """Whether a name is given nothing but what msprobe's calls make, or None."""
        made = [each for each in values if not (isinstance(each, ast.Constant) and each.value is None)]
        return bool(made) and all(isinstance(each, ast.Call) and self._tells(each) for each in made)

    def _is_filled(self, node: ast.Name) -> bool:
        """Whether this is the ``settings`` of ``settings["list"] = …``."""
        outer = self._parents[node]
        return isinstance(outer, ast.Subscript) and outer.value is node and isinstance(outer.ctx, ast.Store)


def _fills(statement: ast.AST | None, found: Collection[str]) -> bool:
    """Whether a statement assigns to names in ``found``, or to entries of what they hold."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    bases = [each.value if isinstance(each, ast.Subscript) else each for each in targets]
    return bool(bases) and all(isinstance(each, ast.Name) and each.id in found for each in bases)


def _imported(tree: ast.Module) -> Iterator[str]:
    """The names that a script has from msprobe."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.asname or each.name.split(".")[0] for each in node.names if _is_ours(each.name))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and _is_ours(node.module or ""):
            yield from (each.asname or each.name for each in node.names)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in _PACKAGES


def _assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """The values that each name is given in an assignment, both of a choice between two."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            values = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).extend(values)
    return found


def _path(node: ast.expr) -> list[str]:
    """``a.b.c`` as its names; [] of something else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []
