"""Makes ``msprobe_ms/comparison/pairing/signatures.yaml`` from the installed MindSpore and PyTorch.

``python tools/signatures.py > FILE``. Taken over: what functions that may be paired take, in order,
with plain defaults.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from msprobe_ms.comparison.pairing.operations import tables

HEADER = """\
# What functions of MindSpore and PyTorch that are paired take, in order, with their plain defaults; in the words of
# dump.json. Made by tools/signatures.py."""

#: Where the functions of a prefix of dump.json live.
_PLACES = {
    "mindspore": {
        "Functional": "mindspore.ops",
        "Mint": "mindspore.mint",
        "MintFunctional": "mindspore.mint.nn.functional",
        "Tensor": "mindspore.Tensor",
    },
    "pytorch": {"Functional": "torch.nn.functional", "Torch": "torch", "Tensor": "torch.Tensor"},
}


def main() -> None:
    """Print the table."""
    print(HEADER)
    ours, theirs = tables().apis.keys() | tables().mindspore.keys(), set(tables().apis.values())
    last = {name.rpartition(".")[2] for name in ours | theirs} | set.intersection(
        *({name for place in places.values() for name in dir(_found(place))} for places in _PLACES.values())
    )
    for framework, places in _PLACES.items():
        print(f"{framework}:")
        for prefix, place in places.items():
            holder = _found(place)
            names = sorted(name for name in dir(holder) if name in last and not name.startswith("_"))
            for name in names:
                told = _told(getattr(holder, name), bound=prefix == "Tensor")
                if told is not None and any("=" in each for each in told):
                    print(f"  {prefix}.{name}: {', '.join(told)!r}" if "'" not in ", ".join(told) else
                          f"  {prefix}.{name}: \"{', '.join(told)}\"")  # fmt: skip


def _found(place: str) -> Any:
    with suppress(ImportError):
        return importlib.import_module(place)
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _told(function: Any, *, bound: bool) -> list[str] | None:
    """What a function takes, by its signature or the first line of its documentation; None where neither tells."""
    with suppress(TypeError, ValueError):
        parameters = inspect.signature(function).parameters.values()
        if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters):
            return [_text(each.name, each.default is not each.empty, each.default) for each in parameters]
    first = next(iter((inspect.getdoc(function) or "").strip().splitlines()), "").partition("->")[0].strip()
    name, _, rest = first.partition("(")
    with suppress(SyntaxError, ValueError):
        (made,) = ast.parse(f"def {name}({rest.rstrip()}: ...").body
        assert isinstance(made, ast.FunctionDef)
        return [*(["self"] if bound else []), *_of(made.args)]
    return None


def _of(given: ast.arguments) -> Iterator[str]:
    optional: Iterable[ast.expr | None] = [None] * (len(given.args) - len(given.defaults))
    for each, default in zip(
        (*given.args, *given.kwonlyargs), (*optional, *given.defaults, *given.kw_defaults), strict=True
    ):
        plain = default is not None
        yield _text(each.arg, plain, ast.literal_eval(default) if default is not None else None)


def _text(name: str, has_default: bool, default: Any) -> str:
    is_plain = has_default and (default is None or isinstance(default, (bool, int, float, str)))
    return f"{name}={default!r}" if is_plain else name


if __name__ == "__main__":
    main()
