"""What a cause found at a node."""

from __future__ import annotations

from typing import NamedTuple

from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.nodes import Node


class Found(NamedTuple):
    """A node where error begins.

    ``node``          the node; None where the one that was asked about is told as another
    ``origin``        what is told of it; None where it, or a call inside it, was told already
    ``whole_module``  whether further calls of its module add nothing
    """

    node: Node | None
    origin: Origin | None = None
    whole_module: bool = False
