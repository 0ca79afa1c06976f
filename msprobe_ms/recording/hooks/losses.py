"""Hooks on what computes gradients, put on at start, gone after stop: they record the loss, whatever made it."""

from __future__ import annotations

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.support.patching import Patch, PatchHooks


class LossHooks(PatchHooks):
    """Between ``install`` and ``remove`` each scalar that gradients are computed of is an entry, ``loss.{n}.debug``."""

    def __init__(self, framework: Framework, recorder: Recorder) -> None:
        calls = framework.gradient_calls(recorder.losses)
        super().__init__(Patch(holder, name, wrap) for holder, name, wrap in calls)
