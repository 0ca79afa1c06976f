"""Compare two dumps, from pairing to the report; ``msprobe_ms.compare(target, golden)`` does it from Python.

The package itself is called: ``compare`` is the name of both, and ``import msprobe_ms.compare.run`` must not hide one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
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
        layer_mapping: str | Path | Mapping[str, Mapping[str, str]] | None = None,
        cell_mapping: str | Path | Mapping[str, str] | Literal[True] | None = None,
        data_mapping: str | Path | Mapping[str, str] | None = None,
        fuzzy: bool = False,
        profile: str = "latest",
        ranks: Collection[int] = (),
        steps: Collection[int] = (),
        executor: Executor | None = None,
    ) -> Compared | ComparedRanks:
        """Compare two dumps and find where the error begins; no framework is needed, no file is written.

        ``target``, ``golden``  the dump under suspicion and the one to trust: a path (a dump.json, a rank or step
                                folder, a dump root), what ``msprobe_ms.record`` gave, or a ``Dump``
        ``…_mapping``           a yaml file, or its content as a dict; ``cell_mapping=True`` is Cell → Module alone
        ``fuzzy``               ignore call indices while pairing
        ``profile``             columns and thresholds of the table
        ``ranks``, ``steps``    the ones to compare, all when empty
        ``executor``            runs the comparisons where there are several ranks or steps; processes by default

        Gives a ``Compared``, or for several ranks or steps a ``ComparedRanks`` of them. Raises MsprobeError: what
        cannot be read or paired.
        """
        from msprobe_ms.compare.api import compared

        return compared(
            target,
            golden,
            layer_mapping=layer_mapping,
            cell_mapping=cell_mapping,
            data_mapping=data_mapping,
            fuzzy=fuzzy,
            profile=profile,
            ranks=ranks,
            steps=steps,
            executor=executor,
        )


sys.modules[__name__].__class__ = _Package
