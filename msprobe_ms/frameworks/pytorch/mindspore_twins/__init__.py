"""Twins of MindSpore's APIs: functions with a MindSpore API's signature that compute with torch.

They are references: they compute on the CPU, in the dtype of what they are given, float64 as a rule. What torch has
with the same signature is in ``same_signatures.yaml``; the modules here have the rest, by families.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
import yaml

from msprobe_ms.dump.dialects import PRIMITIVE
from msprobe_ms.frameworks.api_values import attribute
from msprobe_ms.frameworks.pytorch.mindspore_twins import (
    convolution,
    creation,
    elementwise,
    indexing,
    linear_algebra,
    losses,
    ordering,
    primitives,
    reductions,
    scattering,
    shapes,
    special_functions,
)
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import TWINS

__all__ = [
    "convolution",
    "creation",
    "elementwise",
    "find_twin",
    "indexing",
    "linear_algebra",
    "losses",
    "ordering",
    "primitives",
    "reductions",
    "scattering",
    "shapes",
    "special_functions",
]

_SAME = Path(__file__).with_name("same_signatures.yaml")
_RENAMED = "renamed"


def find_twin(prefix: str, api: str) -> Callable[..., Any] | None:
    """Return what computes with torch what MindSpore's entries ``{prefix}.{api}.{n}`` call; None where nothing does."""
    if prefix == PRIMITIVE:
        return _of_primitive(api.rpartition(".")[2])
    return TWINS.get(f"{prefix}.{api}") or _same().get(f"{prefix}.{api}")


@cache
def _same() -> Mapping[str, Callable[..., Any]]:
    """What torch has with the same signature, by ``{Prefix}.{api}``."""
    found: dict[str, Callable[..., Any]] = {}
    for prefix, places in yaml.safe_load(_SAME.read_text(encoding="utf-8")).items():
        renamed = places.pop(_RENAMED, {})
        twins = {api: (f"{place}.{api}", "") for place, apis in places.items() for api in apis}
        twins |= {api: text.partition(" ")[::2] for api, text in renamed.items()}
        for api, (path, names) in twins.items():
            function = attribute(torch, path.removeprefix("torch."))
            if callable(function):  # else a release of torch that lacks it
                found[f"{prefix}.{api}"] = _with_names(function, dict(each.split("=") for each in names.split()))
    return found


def _with_names(function: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    """The function, with keywords called by other names."""
    if not names:
        return function

    def renamed(*positional: Any, **keywords: Any) -> Any:
        return function(*positional, **{names.get(name, name): value for name, value in keywords.items()})

    return renamed


def _of_primitive(operator: str) -> Callable[..., Any] | None:
    """The primitive's own twin, or that of the function of its name, ``ReLU`` and ``relu``.

    Both take the same arguments in the same order.
    """
    return TWINS.get(f"{PRIMITIVE}.{operator}") or _functions().get(operator.lower())


@cache
def _functions() -> Mapping[str, Callable[..., Any]]:
    """Twins of functions of ``mindspore.ops``, by their names without underscores."""
    names = [name for name in (*_same(), *TWINS) if name.startswith("Functional.")]
    twins = {name.partition(".")[2]: TWINS.get(name) or _same()[name] for name in names}
    return {api.replace("_", ""): function for api, function in twins.items() if not api.endswith("_")}
