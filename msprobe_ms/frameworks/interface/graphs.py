"""How compiled graphs are recognised and observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msprobe_ms.frameworks.compiled_call import CompiledCall, CompilerCall, GraphRun
from msprobe_ms.frameworks.graph_observer import GraphTaps, Tapped
from msprobe_ms.support.files import DEFAULT, Permissions
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.translation import tr


class GraphInterface:
    """Calls that compile user code or run it compiled, and what is seen inside."""

    def compiler_calls(self) -> Sequence[CompilerCall]:
        """Calls that compile user code: module namespaces must be genuine inside them.

        There may be more once one of them was made, where the framework imports its compiler only then.
        """
        return ()

    def graph_calls(self) -> Sequence[tuple[Any, str]]:
        """Return ``(class, attribute)`` of methods that run user code as one compiled graph."""
        return ()

    def describe_graph(self, executor: Any, args: Sequence[Any]) -> CompiledCall | None:
        """Describe what ``executor`` runs when called with ``args``; None where that is no call of a graph."""
        return None

    def watch_graph_runs(self, before: Callable[[GraphRun], None]) -> Hooks | None:
        """Return what tells ``before`` of each compiled graph that the script runs; None where there are no such."""
        return None

    def dynamic_instead(self) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        """Return ``(holder, attribute, wrap)`` of replacements under which compiled code runs as plain Python again."""
        return ()

    #: Why modules inside compiled graphs cannot be recorded here, a sentence; meaningful where `graph_taps` gives None.
    no_graph_taps: str = tr("modules inside compiled graphs are not recorded here")

    def graph_taps(self, tapped: Tapped, folder: Path, permissions: Permissions = DEFAULT) -> GraphTaps | None:
        """What observes modules inside compiled graphs, files of its own below ``folder``, which is made with these
        ``permissions``; None where nothing can."""
        return None

    #: What a user may do to see inside a compiled graph, a sentence.
    how_to_uncompile: str = ""
