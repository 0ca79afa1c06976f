"""Operators described by one line: the signature that their documents have, and the formula's names beside it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msprobe_ms.accuracy.references.reference import Formula, FusedReference

#: In the place of the formula's name: the argument changes no number; nothing is known of it but its default.
UNREAD, DEFAULT_ONLY = "unread", "default_only"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def operator(name: str, formula: Formula, signature: str, constants: Mapping[str, Any] = _NOTHING) -> FusedReference:
    """Describe one operator. In its signature the formula's name of an argument follows a colon where it is another:
    ``self: x, gamma, eps: epsilon = 1e-6, sync: unread = False``.

    >>> described = operator("scale", lambda x, factor: None, "self: x, factor=1.0, *, sync: unread = False")
    >>> str(described.signature), dict(described.names)
    ('(self, factor=1.0, *, sync=False)', {'self': 'x', 'factor': 'factor'})
    """
    (function,) = ast.parse(f"def operator({signature}): ...").body
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    optional = [None] * (len(given.args) - len(given.defaults))
    parameters = [
        *map(_parameter, given.args, [*optional, *given.defaults], [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 99),
        *map(_parameter, given.kwonlyargs, given.kw_defaults, [inspect.Parameter.KEYWORD_ONLY] * 99),
    ]
    names = {
        each.arg: each.annotation.id if isinstance(each.annotation, ast.Name) else each.arg
        for each in (*given.args, *given.kwonlyargs)
    }
    return FusedReference(
        name,
        formula,
        inspect.Signature(parameters),
        {own: read for own, read in names.items() if read not in (UNREAD, DEFAULT_ONLY)},
        frozenset(own for own, read in names.items() if read == DEFAULT_ONLY),
        constants,
    )


def _parameter(argument: ast.arg, default: ast.expr | None, kind: Any) -> inspect.Parameter:
    value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
    return inspect.Parameter(argument.arg, kind, default=value)
