"""Whether a script ends its steps itself, as its source says, before it has done so once."""

from __future__ import annotations

import ast
from pathlib import Path

from msprobe_ms.support.files import open_regular

#: Longer sources are not read.
_LONGEST = 4 << 20

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def calls_step(file: str, line: int, other: str) -> bool:
    """Whether source calls ``step`` on what it calls ``start`` on in ``line`` of ``file``, or on ``other``.

    It is looked for in the function or class around that line, the outermost one, or else in the whole file. What
    something is, its last name says: ``debugger`` is ``self.debugger``. False where the source cannot be read.
    """
    started, stepped = {other}, set[str]()
    for call in _methods_called(_source(file), line):
        if call.attr == "step":
            stepped.add(_last_name(call.value))
        elif call.attr == "start" and call.lineno <= line <= (call.end_lineno or line):
            started.add(_last_name(call.value))
    return not started.isdisjoint(stepped - {""})


def _source(file: str) -> ast.Module:
    try:
        with open_regular(Path(file)) as opened:
            text = opened.read(_LONGEST + 1)
        return ast.parse(text if len(text) <= _LONGEST else "")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _methods_called(source: ast.Module, line: int) -> list[ast.Attribute]:
    outermost = [each for each in source.body if each.lineno <= line <= (each.end_lineno or line)]
    within = next((each for each in outermost if isinstance(each, _DEFINITIONS)), source)
    functions = [node.func for node in ast.walk(within) if isinstance(node, ast.Call)]
    return [function for function in functions if isinstance(function, ast.Attribute)]


def _last_name(value: ast.expr) -> str:
    return value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
