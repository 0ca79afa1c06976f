"""Recording under ``mindspore.train.Model``: ``MsprobeStep`` starts and ends steps, ``MsprobeInitStep`` counts them."""

from __future__ import annotations

from typing import Any, Protocol

from mindspore.train import Callback

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger


class Debugger(Protocol):
    """What a callback asks of a ``PrecisionDebugger``."""

    def start(self, model: Any = None) -> None: ...

    def stop(self) -> None: ...

    def step(self) -> None: ...

    def set_init_step(self, step: int) -> None: ...

    def forget_model(self) -> None: ...

    def model(self) -> Any: ...


class MsprobeStep(Callback):
    """Records each step of ``Model.train``: ``model.train(epochs, data, callbacks=[MsprobeStep(debugger)])``.

    The network is the one given to ``debugger.start(model)`` before training, else the Model's own. A step that raises
    is ended too: its files are complete and every hook is gone when the exception leaves ``Model.train``. Raises
    UsageError for what is no PrecisionDebugger.
    """

    def __init__(self, debugger: Debugger) -> None:
        _check(self, debugger)
        super().__init__()
        self.debugger = debugger
        self._given: Any = None
        #: How often entered: Model.fit enters again for each evaluation.
        self._depth = 0
        self._trains = self._open = self._said = False

    def __enter__(self) -> MsprobeStep:
        self._depth += 1
        super().__enter__()
        return self

    def on_train_begin(self, run_context: Any) -> None:
        self._trains = True
        self._given = self.debugger.model()

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
                "MsprobeStep records the steps of Model.train, nothing of Model.eval; to record an evaluation, call "
                "start(network) of the PrecisionDebugger before it, stop() and step() after it"
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
    """Numbers steps from where a resumed training goes on.

    Without ``debugger`` it is `latest_debugger`. Raises UsageError for what is no PrecisionDebugger.
    """

    def __init__(self, debugger: Debugger | None = None) -> None:
        if debugger is not None:
            _check(self, debugger)
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
        (self._debugger or self.latest_debugger()).set_init_step(steps)

    def latest_debugger(self) -> Any:
        """The debugger that was constructed or started last."""
        raise NotImplementedError


def _check(callback: Callback, debugger: object) -> None:
    # Not isinstance: asked of a protocol, it leaves annotations in Python's own ABC.
    asked = (name for name in vars(Debugger) if not name.startswith("_"))
    if not isinstance(debugger, type) and all(callable(getattr(debugger, name, None)) for name in asked):
        return
    name = type(callback).__name__
    if isinstance(debugger, type):
        given = f"the class {debugger.__name__}"
    else:
        given = f"{repr(debugger)[:100]}, a {type(debugger).__name__},"
    accepted = f"give a PrecisionDebugger: {name}(PrecisionDebugger(config_path))"
    raise UsageError(f"{name}: {given} is not accepted; {accepted}")
