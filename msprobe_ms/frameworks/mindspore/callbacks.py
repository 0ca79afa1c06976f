"""Callbacks of ``mindspore.train.Model`` that start, end and count the steps of a debugger."""

from __future__ import annotations

from typing import Any

from mindspore.train import Callback

from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr


class RecordedSteps(Callback):
    """Starts a debugger at the beginning of each step of ``Model.train``, and ends its step with that."""

    def __init__(self, debugger: Any) -> None:
        super().__init__()
        self.debugger = debugger
        self._given: Any = None
        #: How often entered: Model.fit enters again for each evaluation.
        self._depth = 0
        self._trains = self._open = self._said = False

    def __enter__(self) -> RecordedSteps:
        self._depth += 1
        super().__enter__()
        return self

    def on_train_begin(self, run_context: Any) -> None:
        self._trains = self.debugger.steps_are_called = True
        self._given = self.debugger.model()
        if self.debugger.writes_gradients:
            self._watch(run_context.original_args())

    def _watch(self, training: Any) -> None:
        """Watch the Model's optimizer, or that of a network that trains itself."""
        found = (training.optimizer, getattr(training.network, "optimizer", None))
        optimizer = next((each for each in found if each is not None), None)
        if optimizer is not None:
            self.debugger.monitor(optimizer)
        else:
            logger.warning(
                tr("MsprobeStep: the Model has no optimizer; call monitor(optimizer) of the PrecisionDebugger")
            )

    def on_train_step_begin(self, run_context: Any) -> None:
        network = run_context.original_args().network if self._given is None else self._given
        self._open = True
        self.debugger.start(network)

    def on_train_step_end(self, run_context: Any) -> None:
        self._end_step()

    def on_eval_begin(self, run_context: Any) -> None:
        if not self._trains and not self._said:
            self._said = True
            logger.warning(
                tr(
                    "MsprobeStep records the steps of Model.train, nothing of Model.eval; to record an evaluation, "
                    "call start(network) of the PrecisionDebugger before it, stop() and step() after it"
                )
            )

    def __exit__(self, *error: Any) -> Any:
        # Model.train leaves its callbacks this way whether it returns or raises.
        self._end_step()
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            if self._given is None:
                self.debugger.forget_model()  # the next Model may have another network
            self._given = None
            self._trains = False
        return super().__exit__(*error)

    def _end_step(self) -> None:
        if self._open:
            self._open = False
            self.debugger.stop()
            self.debugger.step()


class InitialStep(Callback):
    """Numbers the steps of a debugger from where a resumed training goes on."""

    def __init__(self, debugger: Any) -> None:
        super().__init__()
        self._debugger = debugger
        self._done = False

    def on_train_begin(self, run_context: Any) -> None:
        self._done = False

    def on_train_epoch_begin(self, run_context: Any) -> None:
        if self._done:
            return
        self._done = True
        progress = run_context.original_args()
        # ``Model.train(initial_epoch=…)`` counts epochs on but steps from 0; callbacks that load a checkpoint set both.
        steps = max(progress.cur_step_num, (progress.cur_epoch_num - 1) * progress.batch_num)
        self._debugger.set_init_step(steps)
