"""Details of made-up pre-checks: six APIs, both directions, on devices as exact as asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from msprobe_ms.accuracy.judging.judge import judge_outputs
from msprobe_ms.accuracy.judging.model import ApiKey, ApiResult, Profile, api_status
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.accuracy.tables import write_tables
from msprobe_ms.arrays.typed import TypedArray

APIS = ("exp", "relu", "add", "matmul", "conv2d", "softmax")
DRAWN = np.random.default_rng(3)
BENCH = {api: DRAWN.standard_normal((20, 20)) for api in APIS}


def details(
    folder: Path, noise: dict[str, float], profile: Profile = "own", framework: str = "pytorch", seed: int = 0
) -> Path:
    """The details of a device whose results are off by a share of themselves."""
    drawn = np.random.default_rng(seed)
    results = []
    for api, bench in BENCH.items():
        rows = []
        for direction in ("forward", "backward"):
            off = bench * (1 + noise.get(api, 0.0) * drawn.standard_normal(bench.shape))
            key = ApiKey(framework, "Torch", api, direction)
            values = [TypedArray("float64", bench)], [TypedArray("float32", off.astype(np.float32))]
            rows += judge_outputs(key, f"Torch.{api}.0.{direction}", *values, load_thresholds(), profile=profile)
        results.append(ApiResult(f"Torch.{api}.0", api_status(rows), None, "", tuple(rows)))
    return write_tables(folder, "20260101000000", results, profile, framework)[1]
