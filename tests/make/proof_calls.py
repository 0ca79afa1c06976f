"""Calls to prove, made by hand: of functions of PyTorch whose references are formulae, so that nothing is imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.operation import Operation, Workshop
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments

SHAPE = (4, 6, 8)


def floats(*shape: int, seed: int = 0) -> TypedArray:
    return TypedArray("float32", np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32))


def made(api: str, title: str = "", framework: str = "mindspore", **keywords: Any) -> Call:
    """A module that computes as a function of PyTorch does, with the outputs that float32 would give."""
    operation = Operation(Workshop(), "pytorch", "Functional", api)
    arguments = Arguments((), keywords)
    entry = f"Cell.a.{title or api}.forward.0"
    call = Call(entry, title or api, framework, Path("dump.json"), operation, arguments, is_module=True)
    return with_outputs(call, operation.in_double(arguments).outputs)


def with_outputs(call: Call, outputs: Sequence[Any]) -> Call:
    rounded = tuple(TypedArray("float32", out.values.astype(np.float32)) for out in outputs)
    return replace(call, outputs=rounded)


def layer_norm(epsilon: float = 1e-5, framework: str = "mindspore", **changes: Any) -> Call:
    given = {"input": floats(*SHAPE), "weight": floats(8), "bias": floats(8, seed=1), **changes}
    return made("layer_norm", "LayerNorm", framework, **given, normalized_shape=(8,), eps=epsilon)
