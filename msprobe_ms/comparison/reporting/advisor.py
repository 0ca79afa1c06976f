"""Write advice files: that of 1.1.0 (the first suspect row and what its place usually means), that of MindStudio's
analyzer, and our own."""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.reporting.detections import (
    CONSISTENCY,
    FP16_OVERFLOW,
    INCONSISTENT_INPUT,
    PROBLEM_NODE,
    SINGLE_POINT,
    Finding,
    detect,
)
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.reporting.profiles.base import lines
from msprobe_ms.comparison.reporting.profiles.v110 import entry_item_name
from msprobe_ms.support.text import printable, printable_lines
from msprobe_ms.support.translation import tr, translated

#: Results that make a row suspect, by the three modes of 1.1.0.
_FAILING = ("No", "Different", "Warning")
#: APIs whose kernels may add in another order each run; their outputs can differ without a fault.
_NOT_DETERMINISTIC = ("conv2d", "conv3d", "matmul", "nll_loss", "layer_norm", "lstm")

_ALL_GOOD = "All data in comparison result meets the accuracy requirements."
_DETERMINISTIC = (
    "The kernel of this API can add in another order each time.\nTurn deterministic computing on and dump both again."
)
_BATCH_NORM = (
    "The running statistics of batch_norm are not fixed between the two dumps.\n"
    "Put the layer into evaluation mode, or fix its running mean and variance, and dump both again."
)
_ADVICE = {
    ("forward", "input"): "1. Analyze the model to view the input source.\n"
    "2. Check whether an inplace API causes the output result to overwrite the input result. "
    "That is, the fault is actually caused by a computation error.\n"
    "3. The fault may be caused by memory corruption and further analysis is required.",
    ("forward", "output"): "This is a forward API computation error. Check the computation implementation.",
    ("backward", "input"): "Check whether the forward computation result is affected.",
    ("backward", "output"): "This is a backward API computation error. Check the computation implementation.",
}
_GLOBAL = "global consistency"
_MINDSTUDIO_GOOD = "All data in the comparison result meets the accuracy requirements."
#: Detection → its name and advice in the documentation of MindStudio's accuracy analyzer.
_MINDSTUDIO = {
    FP16_OVERFLOW: ("FP16 overflow", "Float16 data overflow occurs. Rectify the fault and perform comparison again."),
    INCONSISTENT_INPUT: (
        "Input inconsistent",
        "The input data of NPUDump is inconsistent with that of GroundTruth. "
        "Use the same data or check the data preprocessing process.",
    ),
    PROBLEM_NODE: (
        _GLOBAL,
        "The accuracy of some tensors is low, resulting in an unqualified final accuracy. "
        "This may be caused by quantization. Calibrate the data or contact Huawei for further diagnosis.",
    ),
    SINGLE_POINT: (
        _GLOBAL,
        "The accuracy of some tensors is low, while the final accuracy is qualified. "
        "This may be caused by Ascend internal optimization. Ignore or contact Huawei for further diagnosis.",
    ),
}


def write_advice(
    comparison: Comparison,
    folder: Path,
    timestamp: str,
    name_suffix: str = "",
    *,
    profile: str = "v110",
    form: str | None = None,
) -> Path:
    """Write ``advisor{suffix}_{timestamp}.txt`` on a comparison judged by this profile; 1.1.0 has its own text.

    ``form`` "mindstudio" is that of MindStudio's analyzer, whatever the profile.

    :raises UsageError: the folder cannot be written
    """
    path = folder / f"advisor{name_suffix}_{timestamp}.txt"
    with writing(path) as file:
        if form == "mindstudio":
            text = mindstudio_advice(comparison)
        else:
            text = advice(comparison) if profile == "v110" else own_advice(comparison)
        file.write(text.encode())
    return path


def own_advice(comparison: Comparison) -> str:
    """Return our advice in the language of the user, four lines for each detection.

    Rows are counted as a spreadsheet does, titles are row 1.
    """
    return "\n".join(map(_own_text, detect(comparison)))


def _own_text(found: Finding) -> str:
    told = (
        tr("Detection Type: {detection}", detection=found.detection),
        tr("Row in compare_result: {row}", row=found.row or "NA"),
        tr("Suspect Nodes: {suspect}", suspect=printable(found.suspect)),
        tr("Expert Advice: {advice}", advice=printable_lines(translated(found.advice))),
    )
    return "".join(f"{translated(line)}\n" for line in told)


def mindstudio_advice(comparison: Comparison) -> str:
    """Return our detections in the three lines and the words of MindStudio's analyzer; operators are rows, from 0.

    What it does not detect keeps our words.
    """
    found = list(detect(comparison))
    # What our last one says of the whole network, its problem nodes and single-point errors say already.
    told = [each for each in found if each.detection != CONSISTENCY] or found
    return "\n".join(_mindstudio_text(each) for each in told)


def _mindstudio_text(found: Finding) -> str:
    name, expert = _MINDSTUDIO.get(found.detection, (found.detection, found.advice))
    if found.detection == CONSISTENCY and found.row is None:
        name, expert = _GLOBAL, f"{_MINDSTUDIO_GOOD} {found.advice}"
    elif found.detection == CONSISTENCY:
        name = _GLOBAL
    index = "NA" if found.row is None else found.row - 2
    return f"Detection Type: {name}\nOperator Index: {index}\nExpert Advice: {printable_lines(expert)}\n"


def advice(comparison: Comparison) -> str:
    """Return the advice of 1.1.0: the first suspect row's number in the table (from 0), its name, what to do."""
    for number, line in enumerate(lines(comparison)):
        if line.row.result in _FAILING:
            name = entry_item_name(line.target, comparison.mode)
            parsed = line.pair.target.parsed if line.pair.target else None
            direction = parsed.direction if parsed else "forward"
            return _text(str(number), name, _advice(name, direction, line.target.state))
    return _text("NA", "NA", _ALL_GOOD)


def _text(number: str, suspect: str, expert: str) -> str:
    return f"Line: {number}\n{_suspect(suspect, expert)}"


def _suspect(suspect: str, expert: str) -> str:
    return f"Suspect Nodes: {printable(suspect)}\nExpert Advice: {printable_lines(expert)}\n"


def _advice(name: str, direction: str, state: str) -> str:
    if name.startswith("Functional.batch_norm.") and ".forward.input.1" in name:
        return _BATCH_NORM
    if state == "output" and any(f".{api}." in name for api in _NOT_DETERMINISTIC):
        return _DETERMINISTIC
    return _ADVICE.get((direction, "output" if state == "output" else "input"), _ADVICE["forward", "input"])
