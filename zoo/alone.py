"""Call a function in a process in which nothing else was trained."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def alone(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What the function returns or raises, called in a copy of this process.

    What an operation leaves behind in a framework does not reach the next one: MindSpore's gradients depend on what
    was trained before in the same process. Modules are imported but once.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(function, *arguments, **named).result()
