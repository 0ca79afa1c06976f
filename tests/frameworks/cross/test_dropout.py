"""Dropout of both frameworks is told from faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from msprobe_ms.comparison.origin.explanations.dropout import are_masked_alike


def test_frameworks_own_dropouts_are_told(ms: Any) -> None:
    values = np.random.standard_normal((8, 12, 32)).astype(np.float32)
    ours = ms.ops.dropout(ms.Tensor(values), p=0.1, training=True).asnumpy()
    theirs = torch.nn.functional.dropout(torch.from_numpy(values), 0.1).numpy()
    assert are_masked_alike(ours.ravel().astype(np.float64), theirs.ravel().astype(np.float64), 1e-5)
