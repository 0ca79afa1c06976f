"""Sentences about rows and nodes, for the reasons of origins."""

from __future__ import annotations

import math

from msprobe_ms.comparison.model import Metrics, Origin, OriginKind, Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.statistics import describe_non_finite
from msprobe_ms.dump.model import Item


def describe_difference(row: Row) -> str:
    """Say how a row differs, in values, shapes or its deviation beside what it is held to."""
    item = row.target or row.golden
    # What a save holds may be the tensor itself, with no place of its own.
    suffix = (item.suffix if item is not None else "") or "it"
    target, golden = row.target, row.golden
    if target is not None and golden is not None and "value" in (target.kind, golden.kind):
        return f"{suffix} is {target.maximum} against {golden.maximum}"
    if target is not None and golden is not None and target.shape != golden.shape:
        return f"{suffix} has shape {_shape(target.shape)} against {_shape(golden.shape)}"
    if row.deviation is None:
        return f"{suffix} could not be compared"
    if row.deviation == math.inf and target is not None and golden is not None:
        return _beyond_measure(suffix, target, golden)
    return f"{suffix} deviates by {row.deviation:.3g} (tolerance {row.held_to:.3g})"


def _beyond_measure(suffix: str, target: Item, golden: Item) -> str:
    mine, theirs = describe_non_finite(target), describe_non_finite(golden)
    if mine and not theirs:
        return f"{suffix} holds {mine}, the golden's is finite"
    if theirs and not mine:
        return f"{suffix} is finite, the golden's holds {theirs}"
    if target.md5 != golden.md5 and None not in (target.md5, golden.md5):
        return f"the checksums of {suffix} differ"
    return f"{suffix} differs beyond measure"


def describe_required(required: float, tolerance: float | None) -> str:
    """Name the bound on its deviation that a value agrees under, and how many times its tolerance that is.

    "" where that is no more than its tolerance.
    """
    if tolerance is not None and required <= tolerance:
        return ""
    times = f", {_rounded_up(required / tolerance)} times its tolerance" if tolerance else ""
    return f"this value agrees under a bound of {_rounded_up(required)} on its deviation{times}"


def _rounded_up(value: float) -> str:
    """Three digits, never less than the value."""
    text = f"{value:.2e}"
    if float(text) < value:
        text = f"{value * 1.005:.2e}"
    return f"{float(text):.3g}"


def _shape(shape: object) -> str:
    return str(list(shape)) if isinstance(shape, tuple) else str(shape)


def describe_caller(node: Node) -> str:
    """Name the call around a function or kernel; "" of modules."""
    # A dump of functions or kernels names modules that have no entries in it.
    target = node.pair.target
    around = node.parent.name if node.parent is not None else target.parent if target is not None else None
    if around is None or (node.parsed is not None and node.parsed.is_module):
        return ""
    return f"; called in {around}"


def origin_at(row: Row, reason: str, kind: OriginKind = OriginKind.COMPUTATION) -> Origin:
    """Make the origin that ``row`` is.

    Its ``required_tolerance`` is what the row deviates by: up to there it would have been held to agree.
    """
    assert row.target is not None and row.golden is not None
    metrics: Metrics = dict(row.metrics)
    metrics["deviation"], metrics["tolerance"] = row.deviation, row.held_to
    return Origin(row.target.name, row.golden.name, row.target.state, reason, metrics, kind, row.deviation)
