"""Weights and batches, the same for both frameworks: drawn by name and seed, never handed over."""

from __future__ import annotations

import zlib

import numpy as np

#: MindSpore's names of parameters → PyTorch's.
_LEAVES = {
    "gamma": "weight",
    "beta": "bias",
    "embedding_table": "weight",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}

BATCH, LENGTH = 4, 12


def canonical(parameter: str) -> str:
    """The name PyTorch gives a parameter of MindSpore.

    >>> canonical("layers.0.norm1.gamma")
    'layers.0.norm1.weight'
    """
    path, dot, leaf = parameter.rpartition(".")
    return path + dot + _LEAVES.get(leaf, leaf)


def weight(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Values of the parameter of that canonical name, such that a net's activations keep about their size."""
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    noise = generator.standard_normal(shape).astype(np.float32)
    leaf = name.rpartition(".")[2]
    if leaf == "running_var":
        return 1 + np.abs(noise) * np.float32(0.2)
    if len(shape) > 1:
        return noise / np.float32(np.sqrt(np.prod(shape[1:])))
    return np.float32(leaf == "weight") + noise * np.float32(0.2)


def batch(kind: str, classes: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Inputs of a net that takes ``kind``, and a label for each row it gives."""
    generator = np.random.default_rng([seed, 7])
    keep = np.ones((BATCH, LENGTH), np.float32)
    for row, length in enumerate(generator.integers(LENGTH // 2, LENGTH + 1, BATCH)):
        keep[row, length:] = 0
    floats = {"vector": (8, 16), "digit": (BATCH, 1, 28, 28), "thumb": (BATCH, 3, 12, 12), "image": (BATCH, 3, 16, 16)}
    rows = {"vector": 8, "tokens": BATCH * LENGTH, "pixels": BATCH * 256}.get(kind, BATCH)
    labels = generator.integers(0, classes, rows)
    if kind in ("tokens", "padded_tokens"):
        inputs = [generator.integers(0, 30, (BATCH, LENGTH))]
    elif kind == "padded_series":
        inputs = [generator.standard_normal((BATCH, LENGTH, 8)).astype(np.float32)]
    else:
        inputs = [generator.standard_normal(floats[{"pixels": "image"}.get(kind, kind)]).astype(np.float32)]
    return ([*inputs, keep] if kind.startswith("padded") else inputs), labels
