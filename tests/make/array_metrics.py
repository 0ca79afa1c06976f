"""Definitions of metrics that cancel, in long doubles and without blocks."""

from __future__ import annotations

import numpy as np


def plain_divergence(target: np.ndarray, golden: np.ndarray) -> float:
    t, g = target.astype(np.longdouble).ravel(), golden.astype(np.longdouble).ravel()
    p, q = np.exp(g - g.max()), np.exp(t - t.max())
    log_ratio = (g - g.max() - np.log(p.sum())) - (t - t.max() - np.log(q.sum()))
    return float((p / p.sum() * log_ratio).sum())
