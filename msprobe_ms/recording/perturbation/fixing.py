"""Put the result of a repetition in the place of the call's own (``handler_type: fix``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from msprobe_ms.recording.perturbation.arguments import Leaves, NotRepeatableError, leaves
from msprobe_ms.recording.perturbation.repetition import Function, Repetition, Tools
from msprobe_ms.support.translation import tr


def fixed(tools: Tools, repetition: Repetition, function: Function, output: Any) -> Any:
    """Make the call again and return its result in the dtypes and on the devices of ``output``.

    Gradients flow through it. Raises `NotRepeatableError` where it cannot stand for the result, and what the call does.
    """
    framework, repeater, perturbation = tools.framework, tools.repeater, tools.perturbation
    assert perturbation.fix is not None
    own = leaves(output)
    held = {repeater.storage(each) for each in repetition.tensors}
    results = [each for each in own if framework.is_tensor(each)]
    if not any(repeater.float_name(each) for each in results):
        raise NotRepeatableError(tr("no result holds floating-point numbers"))
    if any(repeater.storage(each) in held for each in results):
        raise NotRepeatableError(tr("its result shares memory with an argument"))
    others = {}
    for tensor in repetition.tensors:
        if perturbation.all_tensors or repeater.float_name(tensor):
            changed = perturbation.fix(repeater, tensor)
            if changed is not None:
                others[id(tensor)] = changed
    args, kwargs = repetition.exchanged(others)
    with ExitStack() as around:
        around.enter_context(repetition.as_before())
        if perturbation.is_precision:
            around.enter_context(repeater.at_full_precision())
        again = function(*args, **kwargs)
    if len(leaves(again)) != len(own):
        raise NotRepeatableError(tr("it returned another number of results"))
    originals: Iterator[Any] = iter(own)

    def as_own(leaf: Any) -> Any:
        original = next(originals)
        both = framework.is_tensor(leaf) and framework.is_tensor(original)
        return repeater.like(leaf, original) if both else leaf

    return Leaves(as_own).of(again)
