"""What to do about each kind of origin and of operation, in words."""

from __future__ import annotations

import re

from msprobe_ms.comparison.model import OriginKind
from msprobe_ms.support.translation import tr

OVERFLOW_ADVICE = tr(
    "Float16 ends at 65504. Compute this operation in float32 or bfloat16 (keep it off the list "
    "of what mixed precision casts), or scale its input down; of a gradient lower the loss "
    "scale, or let it adapt. Fix this first: everything computed from it is invalid."
)


NON_FINITE_ADVICE = tr(
    "Look at what goes in: a division by 0, a logarithm or root of what is not positive, an "
    "exponential of what is large, a row that is masked out wholly, memory that nothing wrote. "
    "Fix this first: everything computed from it is invalid."
)


INPUT_ADVICE = tr(
    "Give both the same data: save one batch and load it in both scripts, shuffling and "
    "augmentation off, the same dtype and scaling; seed both (seed_all) before the networks are "
    "built."
)


BETWEEN_ADVICE = tr(
    "What was recorded before agrees, so this comes from code that was not recorded, an in-place "
    "change, a weight, an argument or a constant: look at the lines just before this call, or "
    "dump at level mix to see them."
)


PARAMETER_ADVICE = tr(
    "Load one checkpoint into both networks, after building and before training, with names "
    "mapped and shapes checked (a weight may need transposing). In later steps compare "
    "optimizer, learning rate, weight decay and gradient clipping, and the gradients of the step "
    "before."
)


MISSING_GRADIENT_ADVICE = tr(
    "Compare which parameters are frozen (requires_grad), what is detached (stop_gradient), and "
    "which weights the optimizer or value_and_grad is given."
)


#: By the kind of an origin, where that says more than its place.
ADVICE_BY_KIND = {
    OriginKind.PRECISION: tr(
        "Give both the same dtype here: compare the lists of mixed precision, its level, and explicit casts."
    ),
    OriginKind.COLLECTIVE: tr(
        "What another rank gave differs: compare the ranks, beginning with the first that differs."
    ),
    OriginKind.DRIFT: tr(
        "No single node causes it. Compare the first step from one checkpoint, in one precision; "
        "then look at accumulation dtypes and at the optimizer."
    ),
    OriginKind.MISSING_GRADIENT: MISSING_GRADIENT_ADVICE,
    OriginKind.NOT_COMPARED: tr(
        "Compare its settings and its code with what the other side does in its place; where a "
        "module there does the same, map the two (-lm)."
    ),
}


PERHAPS = tr("Perhaps only a consequence of the origin above: fix that first. ")


#: What usually differs, by a pattern of the class or API name. The first that fits counts.
_OPERATIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        (
            "batch_?norm",
            tr(
                "Compare training or evaluation mode, epsilon, the running statistics, and momentum: 0.9 in "
                "MindSpore is 0.1 in PyTorch."
            ),
        ),
        (
            "(layer|rms|group|instance)_?norm",
            tr(
                "Compare epsilon (MindSpore's defaults differ from PyTorch's), the axes it works over, and "
                "weight and bias."
            ),
        ),
        ("gelu|silu|swish", tr("Compare the approximation: exact or by tanh.")),
        (
            "softmax|attention|masked_fill|sdpa",
            tr(
                "Compare the mask (sign, shape, fill value, dtype), the axis, the scale and the causal flag; "
                "switch dropout off."
            ),
        ),
        ("dropout", tr("Switch dropout off on both sides: seed_all(rm_dropout=True), p=0 or evaluation mode.")),
        (
            "cross_?entropy|nll|loss",
            tr(
                "Compare reduction, ignored index, label smoothing, class weights, and whether it expects "
                "logits or probabilities."
            ),
        ),
        (
            "conv",
            tr(
                "Compare padding and pad_mode (MindSpore pads to the same size by default), stride, "
                "dilation, groups and bias."
            ),
        ),
        ("pool", tr("Compare padding, stride, ceil_mode and whether padding counts in an average.")),
        (
            "lstm|gru|rnn",
            tr(
                "Compare the order of the gates, both biases, the directions, the initial state and the "
                "layout of the batch."
            ),
        ),
        ("embedding|gather", tr("Compare the indices and their offset, the padding index and the table.")),
        (
            "dense|linear|matmul|addmm|bmm|einsum",
            tr(
                "Compare whether the weight is transposed and a bias is there, and the precision of the "
                "product (HF32 or TF32, float16)."
            ),
        ),
        ("interpolate|resize|upsample|grid_sample", tr("Compare the mode and align_corners.")),
        (
            "all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|broadcast",
            tr("Compare the group, its ranks and the operation (sum or mean), and this step on the other ranks."),
        ),
        (r"sum|mean|reduce|\bnorm\b|std|var", tr("Compare the axis, whether it is kept, and the dtype it adds in.")),
        (r"cast|\bto\b|astype", tr("Compare the dtype it casts to.")),
    )
)


def operation_advice(name: str) -> str | None:
    """Return what usually differs in an operation whose class or API has this name; None for unknown ones."""
    return next((advice for pattern, advice in _OPERATIONS if pattern.search(name.lower())), None)


def random_advice(random: str) -> str:
    """Return what to do where random operations differ, the first of which is named."""
    return tr(
        " Random operations differ ({random}), so what follows them cannot be told: switch dropout off on both sides "
        "(seed_all with rm_dropout=True), or save the random tensor once and load it in both.",
        random=random,
    )
