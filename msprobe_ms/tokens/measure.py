"""Two vectors of logits: which token each chooses, how close that was, and how far apart they are.

Formulae of cosine, KL, l1_norm and ULP are those of msit's logitscmp: KL = Σ p·(log p − log q) with p the golden's
softmax and q the target's; l1_norm = Σ|t|/Σ|g| − 1; the ULP of the largest logit is 2^floor(log2 |max|) · ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from msprobe_ms.support.translation import tr

#: Limits of a row that passes: cosine above, KL and |l1_norm| below (msit logitscmp). Logarithms of probabilities that
#: are off by two ULP of the largest logit make a KL of half their square, which passes, too: in bfloat16 that is more.
LEAST_COSINE, MOST_KL, MOST_L1 = 0.999, 1e-4, 0.01
#: How many of the likeliest tokens are held against each other.
TOP = 5
#: Roundings of the largest logit within which two logits are a tie: the sum of a last layer rounds some times.
_ROUNDINGS = 4


@dataclass(slots=True)
class TokenFigures:
    """What two calls of a model say of the next token of one sequence.

    ``margin`` and ``target_margin`` are probabilities: of the likeliest token less the second's, on each side.
    ``gap`` is how much more likely, in logarithms, the golden holds its own token than the target's; ``noise`` is how
    large a gap rounding may turn over. ``rank``: the place of the target's token in the golden's order, 1 is first.
    """

    golden_token: int
    target_token: int
    rank: int
    margin: float
    target_margin: float
    gap: float
    noise: float
    kl: float
    error: float
    cosine: float
    l1_norm: float
    overlap: int
    ulp_difference: float
    ulp: float
    passed: bool
    reason: str = ""

    @property
    def equal(self) -> bool:
        return self.golden_token == self.target_token


def last_position(logits: np.ndarray) -> np.ndarray:
    """Return the logits of the next token of each sequence, (B, V) in float64, of (V,), (B, V) or (B, S, V).

    :raises ValueError: the array has no such shape, or is complex
    """
    if logits.ndim not in (1, 2, 3) or logits.size == 0 or logits.dtype.kind not in "fiu":
        raise ValueError(
            tr(
                "shape {shape} of {dtype} holds no logits; accepted are (B, S, V), (B, V), (V,)",
                shape=list(logits.shape),
                dtype=logits.dtype,
            )
        )
    found = logits[:, -1, :] if logits.ndim == 3 else np.atleast_2d(logits)
    return np.asarray(found, np.float64)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return the logarithms of the probabilities of a vector of logits, in float64."""
    shifted = logits - logits.max()
    result: np.ndarray = shifted - np.log(np.exp(shifted).sum())
    return result


def measure(target: np.ndarray, golden: np.ndarray, epsilon: float) -> TokenFigures:
    """Compare the logits of one token: two vectors of one length; ``epsilon`` is the spacing of their dtype at 1.0."""
    finite = bool(np.isfinite(target).all()), bool(np.isfinite(golden).all())
    golden_token, target_token = (int(np.argmax(np.nan_to_num(each, nan=-np.inf))) for each in (golden, target))
    if not all(finite):
        sides = tr("both sides") if not any(finite) else tr("the target") if not finite[0] else tr("the golden")
        reason = tr("NaN or infinity in the logits of {sides}", sides=sides)
        nothing = math.nan
        return TokenFigures(
            golden_token, target_token, 0, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, 0,
            nothing, nothing, passed=bool(np.array_equal(target, golden, equal_nan=True)), reason=reason,
        )  # fmt: skip
    ours, theirs = log_softmax(target), log_softmax(golden)
    order = np.argsort(-golden, kind="stable")
    kl = float((np.exp(theirs) * (theirs - ours)).sum())
    # Of vectors that are made smaller alike: squares of the largest numbers overflow.
    scale = max(float(np.abs(target).max()), float(np.abs(golden).max())) or 1.0
    one, other = target / scale, golden / scale
    cosine = float(one @ other / max(np.linalg.norm(one) * np.linalg.norm(other), np.finfo(np.float64).tiny))
    l1_norm = float(np.abs(one).sum() / max(np.abs(other).sum(), np.finfo(np.float64).tiny) - 1)
    largest = float(np.abs(target).max())
    ulp = 2.0 ** math.floor(math.log2(largest)) * epsilon if largest else 0.0
    # Of the maxima alone, as msit has it: one number says little of a vector, so it passes none by itself here.
    difference = abs(float(golden.max()) - float(target.max()))
    passed = cosine > LEAST_COSINE and kl < max(MOST_KL, (2 * ulp) ** 2 / 2) and abs(l1_norm) < MOST_L1
    return TokenFigures(
        golden_token, target_token, int(np.flatnonzero(order == target_token)[0]) + 1, _margin(theirs), _margin(ours),
        float(theirs[golden_token] - theirs[target_token]), _ROUNDINGS * ulp, kl, float(np.abs(ours - theirs).max()),
        cosine, l1_norm, len(set(order[:TOP]) & set(np.argsort(-target, kind="stable")[:TOP])), difference, ulp, passed,
    )  # fmt: skip


def _margin(logarithms: np.ndarray) -> float:
    if logarithms.size < 2:
        return 1.0
    second, first = np.partition(logarithms, -2)[-2:]
    return float(np.exp(first) - np.exp(second))
