"""Hooks on what computes gradients, put on at start, gone after stop: they record the loss, whatever made it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.support.patching import Patch, Patches, taken_off


class LossHooks:
    """Between ``install`` and ``remove`` each scalar that gradients are computed of is an entry, ``loss.{n}.debug``."""

    def __init__(self, framework: Framework, recorder: Recorder) -> None:
        calls = framework.gradient_calls(recorder.losses)
        self._patches = Patches(Patch(holder, name, wrap) for holder, name, wrap in calls)

    def install(self) -> None:
        self._patches.apply()

    def remove(self) -> None:
        self._patches.undo()

    def suspended(self) -> AbstractContextManager[None]:
        return taken_off(self, installed=self._patches.applied)
