"""Detect faults in a judged comparison, cause before consequence, and say what to do about each.

The detections are those of the expert system of Huawei's accuracy analyzer (fp16 overflow, inconsistent input, and the
consistency of the whole network: problem nodes, single-point errors, all well), over the origins found here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Comparison, Origin, OriginKind, Pair, Row
from msprobe_ms.comparison.statistics import non_finite_ends
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, beginnings, parse_entry

FP16_OVERFLOW = "fp16 overflow"
NON_FINITE = "NaN or infinity"
INCONSISTENT_INPUT = "inconsistent input"
PROBLEM_NODE = "problem node"
SINGLE_POINT = "single-point error"
CONSISTENCY = "whole-network consistency"

#: Origins that get advice of their own; mend the first, then compare again.
_TOLD = 3


class Finding(NamedTuple):
    """A detection; ``row`` is the suspect's line in the spreadsheet (titles are row 1), None where it has none."""

    detection: str
    row: int | None
    suspect: str
    advice: str


@dataclass
class _Survey:
    """What one pass over the table finds; rows are numbers of the spreadsheet."""

    #: The first value that is not finite where the golden's is, and how many there are: in float16, in other dtypes.
    half: tuple[int, str] | None = None
    halves: int = 0
    odd: tuple[int, str] | None = None
    odds: int = 0
    #: The first value beyond its tolerance, and how many there are.
    differing: tuple[int, str] | None = None
    differings: int = 0
    compared: int = 0
    #: Rows of the origins, and whether an output before each agreed.
    rows: dict[str, int] = field(default_factory=dict)
    after_agreement: dict[str, bool] = field(default_factory=dict)
    #: The last output of several elements that a forward call gave out, and whether any of that call's differ: a loss,
    #: one number, hides what its input shows.
    last: str = ""
    last_differs: bool = False
    gradients_differ: bool = False
    #: The entries that enclose the origins.
    enclosing: dict[str, str] = field(default_factory=dict)


def detect(comparison: Comparison) -> Iterator[Finding]:
    """Yield all detections in a judged comparison; the last is always about the network as a whole."""
    survey = _survey(comparison)
    if survey.half:
        yield Finding(FP16_OVERFLOW, *survey.half, f"{_first_of(survey.halves)}{OVERFLOW_ADVICE}")
    if survey.odd:
        yield Finding(NON_FINITE, *survey.odd, f"{_first_of(survey.odds)}{NON_FINITE_ADVICE}")
    for place, origin in enumerate(comparison.origins[:_TOLD]):
        found = _of_origin(origin, survey)
        perhaps = PERHAPS if place and origin.kind in (OriginKind.COMPUTATION, OriginKind.OUTSIDE) else ""
        yield found._replace(advice=f"{perhaps}{found.advice}")
    if survey.differing and survey.last and not survey.last_differs and not survey.gradients_differ:
        yield Finding(SINGLE_POINT, *survey.differing, _single_point(survey))
    yield _whole(comparison, survey)


def _survey(comparison: Comparison) -> _Survey:
    survey = _Survey()
    origins = {origin.target for origin in comparison.origins[:_TOLD]}
    entries = {beginning for name in origins for beginning in beginnings(name)}
    agreed, last_pair, last = False, None, None
    for number, (pair, row) in enumerate(_table(comparison), 2):
        differs, state = row.differs, row.state
        if _is_odd(row, TARGET) and not _is_odd(row, GOLDEN):
            _note_odd(survey, number, row)
        if differs:
            survey.differing, survey.differings = survey.differing or (number, _name(row)), survey.differings + 1
        if pair.target is not None and pair.target.name in entries:
            name = _name(row)
            if name in origins:
                survey.rows[name], survey.after_agreement[name] = number, agreed
                survey.enclosing[name] = pair.target.parent or ""
        if row.deviation is None:
            continue
        survey.compared += 1
        direction = _direction(pair)
        if direction in (BACKWARD, PARAMETERS_GRAD):
            survey.gradients_differ = survey.gradients_differ or differs
        elif state == "output" and direction == FORWARD:
            agreed = agreed or not differs
            if _has_elements(row):
                if pair is not last_pair:
                    last_pair, survey.last_differs = pair, False
                last, survey.last_differs = row, survey.last_differs or differs
    survey.last = _name(last) if last is not None else ""
    return survey


def _note_odd(survey: _Survey, number: int, row: Row) -> None:
    target = row.target
    if target is not None and parse_dtype(target.dtype).name == "float16":
        survey.half, survey.halves = survey.half or (number, target.name), survey.halves + 1
    elif target is not None:
        survey.odd, survey.odds = survey.odd or (number, target.name), survey.odds + 1


def _table(comparison: Comparison) -> Iterator[tuple[Pair, Row]]:
    """The lines of the table, as ``profiles.base.lines`` has them."""
    return ((pair, row) for pair in comparison.pairs for row in pair.rows if row.in_target)


def _name(row: Row) -> str:
    return row.target.name if row.target is not None else ""


def _has_elements(row: Row) -> bool:
    """Whether the target's tensor has several elements."""
    stored = row.stored(TARGET)
    shape = stored[0].sort(stored[1])[3] if stored else row.target.shape if row.target else None
    return isinstance(shape, tuple) and math.prod(shape) > 1


def _is_odd(row: Row, side: Side) -> bool:
    """Whether Max or Min of the item on one side is not finite."""
    stored = row.stored(side)
    if stored is not None and stored[1] not in stored[0].irregular:
        first = 4 * stored[1]
        return not all(map(math.isfinite, stored[0].statistics[first : first + 2]))
    item = row.golden if side else row.target
    return item is not None and bool(non_finite_ends(item))


def _direction(pair: Pair) -> str:
    parsed = pair.target.parsed if pair.target else None
    return parsed.direction if parsed else ""


def _first_of(count: int) -> str:
    return f"The first of {count} values. " if count > 1 else ""


def _of_origin(origin: Origin, survey: _Survey) -> Finding:
    number = survey.rows.get(origin.target)
    if origin.kind in ADVICE_BY_KIND:
        return Finding(PROBLEM_NODE, number, origin.target, f"{_told(origin)} {ADVICE_BY_KIND[origin.kind]}")
    if origin.state == "parameters":
        return Finding(INCONSISTENT_INPUT, number, origin.target, f"{_told(origin)} {PARAMETER_ADVICE}")
    if origin.state == "input":
        advice = BETWEEN_ADVICE if survey.after_agreement.get(origin.target) else INPUT_ADVICE
        return Finding(INCONSISTENT_INPUT, number, origin.target, f"{_told(origin)} {advice}")
    return Finding(PROBLEM_NODE, number, origin.target, f"{_told(origin)} {_by_operation(origin, survey)}")


def _told(origin: Origin) -> str:
    """Its reason and its details, each as a sentence."""
    return " ".join(map(_sentence, (origin.reason, *origin.details)))


def _by_operation(origin: Origin, survey: _Survey) -> str:
    """What usually differs in an operation of this name, else in the module that calls it."""
    for entry in (_entry_name(origin.target), survey.enclosing.get(origin.target, "")):
        parsed = parse_entry(entry) if entry else None
        if parsed is not None and parsed.direction in (BACKWARD, PARAMETERS_GRAD):
            return GRADIENT_ADVICE
        if parsed is not None and (advice := operation_advice(parsed.class_name or parsed.name)):
            return advice
    return GENERAL_ADVICE


def _entry_name(item: str) -> str:
    """The entry an item belongs to: the longest beginning of its name that is an entry's."""
    name = item
    while name and parse_entry(name) is None:
        name = name.rpartition(".")[0]
    return name


def _single_point(survey: _Survey) -> str:
    return (
        f"{_counted(survey.differings)}, yet the last output recorded, {survey.last}, agrees: the error does not "
        "reach the end of the forward pass, and no gradient differs. Look whether this value is used at all, or stored "
        "in another layout there. It can be left as it is where results are good."
    )


def _whole(comparison: Comparison, survey: _Survey) -> Finding:
    alone = sum(not row.matched for row in comparison.rows)
    alone_told = "1 value has no counterpart and was" if alone == 1 else f"{alone} values have no counterpart and were"
    without = f" {alone_told} not compared." if alone else ""
    if comparison.random:
        without += RANDOM_ADVICE.format(comparison.random[0].target)
    if survey.differing:
        if comparison.origins:
            advice = "Mend the first suspect above and compare again: most of the others inherit its error."
        else:
            advice = (
                "No node is the origin of an error: they drift, or switch at kinks (ReLU, pooling). Compare the first "
                "step from one checkpoint, in one precision, before anything else."
            )
        many = f"{_counted(survey.differings)}, of {survey.compared} compared; the first is named here."
        return Finding(CONSISTENCY, *survey.differing, f"{many}{without} {advice}")
    if comparison.origins:  # a gradient that one side has not
        return Finding(CONSISTENCY, None, "NA", f"All {survey.compared} values compared agree; see the suspects above.")
    if not survey.compared:
        return Finding(CONSISTENCY, None, "NA", f"Nothing was compared.{without} See docs/mapping.md to pair them.")
    advice = (
        "If the results still differ, look at what this step does not show: the optimizer and later steps, the order "
        "of the data, other ranks, and what comes after the network."
    )
    blank = sum(row.matched for row in comparison.rows) - survey.compared
    figures = f" that have figures ({blank} more have none on either side)" if blank > 0 else ""
    agree = f"All {survey.compared} values compared{figures} agree within their tolerances."
    return Finding(CONSISTENCY, None, "NA", f"{agree}{without} {advice}")


def _counted(count: int) -> str:
    return "1 value is beyond its tolerance" if count == 1 else f"{count} values are beyond their tolerances"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


OVERFLOW_ADVICE = (
    "Float16 ends at 65504. Compute this operation in float32 or bfloat16 (keep it off the list of what mixed "
    "precision casts), or scale its input down; of a gradient lower the loss scale, or let it adapt. Mend this first: "
    "all that is computed from it is lost."
)
NON_FINITE_ADVICE = (
    "Look at what goes in: a division by 0, a logarithm or root of what is not positive, an exponential of what is "
    "large, a row that is masked out wholly, memory that nothing wrote. Mend this first: all that is computed from it "
    "is lost."
)
INPUT_ADVICE = (
    "Give both the same data: save one batch and load it in both scripts, shuffling and augmentation off, the same "
    "dtype and scaling; seed both (seed_all) before the networks are built."
)
BETWEEN_ADVICE = (
    "What was recorded before agrees, so this comes from code that was not recorded, an in-place change, a weight, an "
    "argument or a constant: look at the lines just before this call, or dump at level mix to see them."
)
PARAMETER_ADVICE = (
    "Load one checkpoint into both networks, after building and before training, with names mapped and shapes checked "
    "(a weight may need transposing). In later steps compare optimizer, learning rate, weight decay and gradient "
    "clipping, and the gradients of the step before."
)
MISSING_GRADIENT_ADVICE = (
    "Compare which parameters are frozen (requires_grad), what is detached (stop_gradient), and which weights the "
    "optimizer or value_and_grad is given."
)
#: By the kind of an origin, where that says more than its place.
ADVICE_BY_KIND = {
    OriginKind.PRECISION: "Give both the same dtype here: compare the lists of mixed precision, its "
    "level, and explicit casts.",
    OriginKind.COLLECTIVE: "What another rank gave differs: compare the ranks, beginning with the first that differs.",
    OriginKind.DRIFT: "No node is to blame alone. Compare the first step from one checkpoint, in one precision; then "
    "look at accumulation dtypes and at the optimizer.",
    OriginKind.MISSING_GRADIENT: MISSING_GRADIENT_ADVICE,
    OriginKind.NOT_COMPARED: "Compare its settings and its code with what the other side does in its place; where a "
    "module there does the same, map the two (-lm).",
}
RANDOM_ADVICE = (
    " Random operations differ ({}), so what follows them cannot be told: switch dropout off on both sides "
    "(seed_all with rm_dropout=True), or save the random tensor once and load it in both."
)
GRADIENT_ADVICE = (
    "Its forward call agrees, so look at backward: a backward of one's own (bprop, autograd.Function), what is "
    "detached or frozen, accumulation, clipping and the loss scale."
)
PERHAPS = "Perhaps only a consequence of the suspect above: mend that first. "
GENERAL_ADVICE = (
    "Compare the arguments and attributes of this call in both scripts, then run it alone on its dumped inputs (task "
    "tensor)."
)

#: What usually differs, by a pattern of the class or API name. The first that fits counts.
_OPERATIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        ("batch_?norm", "Compare training or evaluation mode, epsilon, the running statistics, and momentum: 0.9 in "
         "MindSpore is 0.1 in PyTorch."),
        ("(layer|rms|group|instance)_?norm", "Compare epsilon (MindSpore's defaults differ from PyTorch's), the axes "
         "it works over, and weight and bias."),
        ("gelu|silu|swish", "Compare the approximation: exact or by tanh."),
        ("softmax|attention|masked_fill|sdpa", "Compare the mask (sign, shape, fill value, dtype), the axis, the scale "
         "and the causal flag; switch dropout off."),
        ("dropout", "Switch dropout off on both sides: seed_all(rm_dropout=True), p=0 or evaluation mode."),
        ("cross_?entropy|nll|loss", "Compare reduction, ignored index, label smoothing, class weights, and whether it "
         "expects logits or probabilities."),
        ("conv", "Compare padding and pad_mode (MindSpore pads to the same size by default), stride, dilation, groups "
         "and bias."),
        ("pool", "Compare padding, stride, ceil_mode and whether padding counts in an average."),
        ("lstm|gru|rnn", "Compare the order of the gates, both biases, the directions, the initial state and the "
         "layout of the batch."),
        ("embedding|gather", "Compare the indices and their offset, the padding index and the table."),
        ("dense|linear|matmul|addmm|bmm|einsum", "Compare whether the weight is transposed and a bias is there, and "
         "the precision of the product (HF32 or TF32, float16)."),
        ("interpolate|resize|upsample|grid_sample", "Compare the mode and align_corners."),
        ("all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|broadcast", "Compare the group, its ranks and the "
         "operation (sum or mean), and this step on the other ranks."),
        (r"sum|mean|reduce|\bnorm\b|std|var", "Compare the axis, whether it is kept, and the dtype it adds in."),
        (r"cast|\bto\b|astype", "Compare the dtype it casts to."),
    )
)  # fmt: skip


def operation_advice(name: str) -> str | None:
    """Return what usually differs in an operation whose class or API has this name; None for unknown ones."""
    return next((advice for pattern, advice in _OPERATIONS if pattern.search(name.lower())), None)
