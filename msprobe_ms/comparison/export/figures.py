"""What exports tell of a value, in text: what it is, its statistics, and how it compares."""

from __future__ import annotations

from collections.abc import Iterator

from msprobe_ms.comparison.export.topology import Judged
from msprobe_ms.comparison.export.tree import Node, as_utf8
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.terms import Standing
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.model import Item
from msprobe_ms.support.translation import tr

#: What the figures of a comparison mean.
EXPLANATIONS = {
    "Result": tr(
        "origin: the error begins here; inherited: it began elsewhere; differs, agrees, unmatched, not compared"
    ),
    "Deviation": tr("relative difference from the counterpart as one number"),
    "Tolerance": tr("the deviation up to which the two are held to agree"),
    "Reason": tr("why the result is what it is"),
    "Inherited From": tr("the call where the difference began"),
    "Counterpart": tr("the value of the other dump that it was compared with"),
}
#: What the standing of a call means.
STANDINGS = {
    Standing.ORIGIN: tr("the error begins here"),
    Standing.INHERITED: tr("it differs, and the error began elsewhere"),
    Standing.AGREES: tr("all values agree within rounding error"),
    Standing.NOT_COMPARED: tr("it has a counterpart, and nothing of the two could be compared"),
    Standing.UNMATCHED: tr("it has no counterpart"),
}
_LONGEST = 2_000


def figures(item: Item) -> dict[str, str]:
    """Return what was recorded of a value by the names that a dump has for it."""
    found: dict[str, object] = {"type": item.type, "dtype": item.dtype, "shape": _shape(item.shape)}
    if item.kind == "tensor":
        found.update(Max=item.maximum, Min=item.minimum, Mean=item.mean, Norm=item.norm)
    else:
        found.update(value=item.maximum)
    found.update(md5=item.md5, data_name=item.data_name)
    return {name: as_text(value) for name, value in found.items() if value not in (None, "")}


def compared(row: Row, item: Item) -> dict[str, str]:
    """Return what a comparison says of a value; the keys are those of ``EXPLANATIONS``."""
    other = row.golden if item is row.target else row.target
    found = {
        "Result": row.result,
        "Deviation": row.deviation,
        "Tolerance": row.held_to,
        "Reason": row.reason,
        "Inherited From": row.inherited_from,
        "Counterpart": other.name if other is not None else None,
    }
    return {name: as_text(value) for name, value in found.items() if value not in (None, "")}


def about(node: Node, judged: Judged | None) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a call, as names and texts."""
    if node.entry is None:
        return
    yield "entry", node.name
    if node.kind:
        yield tr("class or operation"), node.kind
    if node.direction:
        yield "direction", node.direction
    if judged is not None:
        yield "verdict", f"{judged.standing}: {STANDINGS[judged.standing]}"
        if judged.counterparts:
            yield "error ratio", as_text(judged.ratio)
        if judged.how:
            yield "paired by", str(judged.how)
        if judged.reason:
            yield "reason", as_text(judged.reason)
    if node.entry.recomputed:
        yield "recomputed", "true"
    if node.entry.scope:
        yield "scope", as_text(node.entry.scope)
    if node.entry.stack:
        yield "called at", as_text(outside_frameworks(node.entry.stack)[0])


def in_one_line(told: dict[str, str]) -> str:
    """Return figures as one line."""
    return ", ".join(
        value if name in ("Result", "type", "dtype") else f"{name} {value}" for name, value in told.items()
    )


def as_text(value: object) -> str:
    """Return a figure as text that can be written as UTF-8; floats with all their digits."""
    text = repr(value) if isinstance(value, float) else str(value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return as_utf8(text)


def _shape(shape: tuple[int, ...] | str | None) -> str | None:
    return str(list(shape)) if isinstance(shape, tuple) else shape
