"""``MsprobeStep``: start, stop and step for ``mindspore.train.Model``."""

from __future__ import annotations

from typing import Any

from mindspore.train import Callback


class MsprobeStep(Callback):
    """Records each step of ``Model.train``: ``model.train(epochs, data, callbacks=[MsprobeStep(debugger)])``."""

    def __init__(self, debugger: Any) -> None:
        super().__init__()
        self.debugger = debugger

    def on_train_step_begin(self, run_context: Any) -> None:
        self.debugger.start(run_context.original_args().network)

    def on_train_step_end(self, run_context: Any) -> None:
        self.debugger.stop()
        self.debugger.step()
