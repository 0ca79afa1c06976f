"""Compare two dumps, from pairing to the report; ``msprobe_ms.compare(target, golden)`` does it from Python:

    compare(target, golden, *, layer_mapping=None, cell_mapping=None, api_mapping=None, data_mapping=None, fuzzy=False,
            profile="own", thresholds=None, algorithms=(), ranks=(), steps=(), executor=None)

It finds where the error begins; no framework is needed, no file is written.

``target``, ``golden``  the dump under suspicion and the one to trust: a path (a dump.json, a rank or step
                        folder, a dump root), what ``msprobe_ms.record`` gave, or a ``Dump``
``…_mapping``           a yaml file, or its content; True is the bare flag of the command: layers are found from
                        the dumps, Cells pair with Modules, functions by the built-in table
``fuzzy``               ignore call indices while pairing
``profile``             columns and rules of the table: ``own``, ``latest`` or ``v110``
``thresholds``          figures to measure and judge by, where not the usual: a yaml file, or its content
``algorithms``          metrics of your own, each ``"FILE.py:FUNCTION"``
``ranks``, ``steps``    the ones to compare, all when empty
``executor``            runs the comparisons where there are several ranks or steps; processes by default

Gives a ``Compared``, or for several ranks or steps a ``ComparedRanks`` of them. Raises MsprobeError: what
cannot be read or paired.

The package itself is called: ``compare`` is the name of both, and ``import msprobe_ms.compare.run`` must not hide one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Collection
    from concurrent.futures import Executor

    from msprobe_ms.compare.api import Compared
    from msprobe_ms.compare.api_ranks import ComparedRanks


class _Package(ModuleType):
    def __call__(
        self,
        target: Any,
        golden: Any,
        *,
        layer_mapping: str | Path | Mapping[str, Mapping[str, str]] | Literal[True] | None = None,
        cell_mapping: str | Path | Mapping[str, str] | Literal[True] | None = None,
        api_mapping: str | Path | Sequence[Mapping[str, Any]] | Literal[True] | None = None,
        data_mapping: str | Path | Mapping[str, str] | None = None,
        fuzzy: bool = False,
        profile: str = "own",
        thresholds: str | Path | Mapping[str, Any] | None = None,
        algorithms: Iterable[str] = (),
        ranks: Collection[int] = (),
        steps: Collection[int] = (),
        executor: Executor | None = None,
    ) -> Compared | ComparedRanks:
        """Compare two dumps and find where the error begins: ``help(msprobe_ms.compare)`` tells of every setting."""
        from msprobe_ms.compare.api import compared

        return compared(
            target,
            golden,
            layer_mapping=layer_mapping,
            cell_mapping=cell_mapping,
            api_mapping=api_mapping,
            data_mapping=data_mapping,
            fuzzy=fuzzy,
            profile=profile,
            thresholds=thresholds,
            algorithms=algorithms,
            ranks=ranks,
            steps=steps,
            executor=executor,
        )


_Package.__call__.__qualname__ = "compare"  # the name in the errors of wrong settings
sys.modules[__name__].__class__ = _Package
