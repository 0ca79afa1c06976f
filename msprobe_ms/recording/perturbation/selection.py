"""Which APIs task free_benchmark repeats: those that are recorded, or those that the key ``list`` names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.recording.hooks.api_list import ApiList
from msprobe_ms.recording.hooks.operators import PREFIX as PRIMITIVE
from msprobe_ms.recording.hooks.operators import left_out
from msprobe_ms.support.text import suggestion
from msprobe_ms.support.translation import tr

#: Where MindSpore's users find the classes of operators.
OPERATORS = "mindspore.ops"


class ChosenApis(ApiList):
    """The APIs to wrap, and what of ``list`` names none.

    A name is that of an API with its module, ``mindspore.ops.matmul``; as entries of dumps begin,
    ``Functional.matmul``; or the last part alone, which stands for every API of that name.
    """

    def __init__(self, framework: Framework, extra: Path | None, names: Iterable[str]) -> None:
        """Read the lists. Raises ConfigError for what is wrong with ``extra``."""
        super().__init__(framework, extra)
        self._framework = framework
        wanted = list(dict.fromkeys(names))
        #: Names of operator classes that are repeated; None for all.
        self.operators: frozenset[str] | None = None
        #: Names that stand for nothing → why.
        self.unknown: dict[str, str] = {}
        if not wanted:
            return
        chosen: dict[Namespace, list[str]] = {}
        operators: set[str] = set()
        for name in wanted:
            apis, operator = self._named(name)
            for space, api in apis:
                if api not in chosen.setdefault(space, []):
                    chosen[space].append(api)
            operators.update(operator)
            if not apis and not operator:
                self.unknown[name] = tr(
                    "no API of this framework is called so{suggestion}", suggestion=suggestion(name, self._known())
                )
        self.apis, self.operators = chosen, frozenset(operators)

    def _named(self, name: str) -> tuple[list[tuple[Namespace, str]], set[str]]:
        path, _, last = name.rpartition(".")
        apis, operators = [], set[str]()
        for space in {**dict.fromkeys(self._namespaces.values()), **dict.fromkeys(self.apis)}:
            known = last in self.apis.get(space, ())
            if path in (space.path, space.prefix) or (not path and known):
                found = getattr(space.holder, last, None)
                if callable(found) and not isinstance(found, type):
                    apis.append((space, last))
        if path in (OPERATORS, PRIMITIVE, f"{PRIMITIVE}.{last}", "") and last in self._operator_names():
            operators.add(last)
        return apis, operators

    def _operator_names(self) -> set[str]:
        held = self._namespaces.get(OPERATORS)
        if held is None or self._framework.operators_left_out is None:
            return set()
        classes = {name for name, value in vars(held.holder).items() if isinstance(value, type)}
        return classes - left_out(self._framework)

    def _known(self) -> list[str]:
        return [f"{space.path}.{name}" for space, names in self.apis.items() for name in names]


def api_names(framework: Framework) -> dict[str, str]:
    """Return the module that users write by the prefix that entries of its APIs begin with."""
    return {space.prefix: space.path for space in reversed(framework.namespaces())} | {PRIMITIVE: OPERATORS}
