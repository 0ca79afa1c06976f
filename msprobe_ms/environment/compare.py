"""Set two collections side by side: what is equal, what may matter, and what changes its results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.environment.collect import SECTIONS, Collection
from msprobe_ms.environment.settings import canonical, same, together
from msprobe_ms.support.translation import tr
from msprobe_ms.weights.names import pair_names


class Status(Enum):
    """As in msprobe: a difference that changes results is an error, one that may is a warning."""

    PASS = "pass"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One thing of both sides; None where a side has none."""

    section: str
    name: str
    target: Any
    golden: Any
    status: Status
    note: str = ""


#: Packages whose version changes numbers.
_NUMERIC = re.compile(
    r"python|mindspore.*|torch.*|numpy|mindnlp|mindformers|mindspeed.*|megatron.*|transformers|accelerate|deepspeed|apex|"
    r"flash-attn|triton.*|diffusers|tokenizers|datasets|vllm.*|peft|timm|mindcv|mindone"
)
#: Variables that choose kernels, orders of sums, or precision.
_CHOOSING = re.compile(
    r".*(DETERMINISTIC|TF32|HF32|WORKSPACE_CONFIG|PYTHONHASHSEED|ALGO|CLOSE_MATMUL|ALLOW_.*PRECISION|JIT_COMPILE|"
    r"INF_NAN_MODE|WORLD_SIZE|RANK_SIZE).*"
)
#: Settings that say where files lie or what is told, and change no number.
_HARMLESS = re.compile(
    r".*(path|dir|folder|file|log|save|port|host|addr|interval|output|tensorboard|wandb).*|(.*[._])?out|"
    r"(.*[._])?dump([._].*)?|((.*[._])?(run|exp|experiment|project|job|task)_)?name",
    re.IGNORECASE,
)
#: Sections of settings, which have one name in several spellings.
_SETTINGS = ("hyperparameters", "random")
#: What a framework is told, not a training: a ``mode`` there is none of a script's.
_OF_FRAMEWORKS = ("context", "parallel")
#: A value that says where something lies.
_PATH = re.compile(r"(~|\.{1,2})?/.*|[A-Za-z]:\\.*")
#: Statistics that are further apart than this are another tensor: sums of another order, in float32, are not.
_RELATIVE = 1e-5


def section_title(section: str) -> str:
    """Return what a section is called."""
    titles = {
        "packages": tr("packages"),
        "environment": tr("environment"),
        "hyperparameters": tr("hyperparameters"),
        "random": tr("random"),
        "dataset": tr("dataset"),
        "weights": tr("weights"),
    }
    return titles[section]


def compare_collections(target: Collection, golden: Collection, mappings: Mappings | None = None) -> list[ConfigRow]:
    """Return every thing that either side has, section by section, those that differ first.

    ``mappings`` name weights of the target as the golden does.
    """
    rows = [row for section in SECTIONS for row in _section(section, target[section], golden[section], mappings)]
    order = {status: place for place, status in enumerate((Status.ERROR, Status.WARNING, Status.PASS))}
    return sorted(rows, key=lambda row: (SECTIONS.index(row.section), order[row.status]))


def _section(
    section: str, target: Mapping[str, Any], golden: Mapping[str, Any], mappings: Mappings | None
) -> Iterator[ConfigRow]:
    if section in _SETTINGS:
        target, golden = (
            together((canonical(name), value) for name, value in side.items()) for side in (target, golden)
        )
    pairs = {name: name for name in target if name in golden}
    if section in _SETTINGS:
        pairs |= _prefixed(target, golden)
    if section == "weights":
        found = pair_names(list(target), list(golden), mappings or Mappings(), warn=mappings is not None)
        pairs = {name: other for name, (other, _) in found.items()}
    taken = set(pairs.values())
    for name, value in target.items():
        if name in pairs:
            shown = max(name, pairs[name], key=len) if section in _SETTINGS else name
            yield _row(section, shown, value, golden[pairs[name]])
        else:
            yield ConfigRow(section, name, value, None, _lone(section, name), tr("only in the target"))
    for name, value in golden.items():
        if name not in taken:
            yield ConfigRow(section, name, None, value, _lone(section, name), tr("only in the golden"))


def _prefixed(target: Mapping[str, Any], golden: Mapping[str, Any]) -> dict[str, str]:
    """Pair ``learning_rate``, as an option has it, with ``optimizer.learning_rate``, as a call that uses it has it.

    Each side must have one setting with this last part of its name; a framework's own settings are none of a script's.
    """
    sides = [_by_last_part(side) for side in (target, golden)]
    both = {last: (sides[0][last], names) for last, names in sides[1].items() if last in sides[0]}
    single = [(ours[0], theirs[0]) for ours, theirs in both.values() if len(ours) == len(theirs) == 1]
    return {one: other for one, other in single if ("." in one) != ("." in other)}


def _by_last_part(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        head, _, last = name.rpartition(".")
        if head not in _OF_FRAMEWORKS:
            found.setdefault(last, []).append(name)
    return found


def _lone(section: str, name: str) -> Status:
    """What one side alone has."""
    if section == "packages":
        return Status.WARNING if _NUMERIC.fullmatch(name) else Status.PASS
    if section == "environment":
        return Status.ERROR if _CHOOSING.fullmatch(name) else Status.WARNING
    return Status.PASS if section == "hyperparameters" and _HARMLESS.fullmatch(name) else Status.WARNING


def _are_paths(target: Any, golden: Any) -> bool:
    """Whether both sides are places of files, whatever the setting is called."""
    return all(isinstance(each, str) and _PATH.fullmatch(each) for each in (target, golden))


def _row(section: str, name: str, target: Any, golden: Any) -> ConfigRow:
    if section in ("dataset", "weights"):
        note = _tensors_differ(target, golden)
        return ConfigRow(section, name, target, golden, Status.ERROR if note else Status.PASS, note)
    if target == golden if section == "packages" else same(target, golden):  # version 2.10 is not 2.1
        return ConfigRow(section, name, target, golden, Status.PASS)
    status = Status.ERROR
    if section == "packages":
        status = Status.ERROR if _NUMERIC.fullmatch(name) else Status.WARNING
    elif section == "environment":
        status = Status.ERROR if _CHOOSING.fullmatch(name) else Status.WARNING
    elif section == "hyperparameters" and (_HARMLESS.fullmatch(name) or _are_paths(target, golden)):
        status = Status.PASS
    return ConfigRow(section, name, target, golden, status, tr("differs"))


def _tensors_differ(target: Any, golden: Any) -> str:
    """What is different in the figures of two tensors; "" for nothing."""
    if not isinstance(target, dict) or not isinstance(golden, dict):
        return "" if target == golden else tr("differs")
    shapes = target.get("shape"), golden.get("shape")
    if shapes[0] != shapes[1] and _squeezed(shapes[0]) != _squeezed(shapes[1]):
        return tr("shapes {shapes} and {other_shapes}", shapes=shapes[0], other_shapes=shapes[1])
    checksums = target.get("md5"), golden.get("md5")
    if checksums[0] and checksums[0] == checksums[1]:
        return ""
    compared = False
    for name in ("maximum", "minimum", "mean", "norm"):
        one, other = _figure(target, name), _figure(golden, name)
        if one is None or other is None:
            continue
        compared = True
        size = max(abs(_figure(side, "norm") or 0.0) for side in (target, golden)) if name == "mean" else 0.0
        if one != other and not (math.isnan(one) and math.isnan(other)):
            finite = math.isfinite(one) and math.isfinite(other)
            if not finite or abs(one - other) > _RELATIVE * max(size, abs(one), abs(other)):
                return tr("{name} {one:.7g} and {other:.7g}", name=tr(name), one=one, other=other)
    return "" if compared or checksums[0] == checksums[1] else tr("checksums differ")


def _figure(side: Mapping[str, Any], name: str) -> float | None:
    try:
        return float(side[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _squeezed(shape: Any) -> Any:
    """A shape without its axes of length 1, which layouts of the two frameworks differ in."""
    return [size for size in shape if size != 1] if isinstance(shape, list) else shape
