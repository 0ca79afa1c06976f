"""What a MindSpore script imports: ``PrecisionDebugger``, ``record``, the callbacks of ``Model``, ``seed_all``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.config.vocabulary import LevelName, TaskName
from msprobe_ms.frameworks import explain_missing
from msprobe_ms.frameworks.seeding import seed_mindspore, seed_process
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.support.errors import UsageError, told_briefly
from msprobe_ms.support.translation import tr

try:
    from msprobe_ms.frameworks import msadapter
    from msprobe_ms.frameworks.mindspore.callbacks import InitialStep, RecordedSteps
    from msprobe_ms.frameworks.mindspore.dropout import set_dropout
    from msprobe_ms.frameworks.mindspore.framework import MindSpore
except ModuleNotFoundError as error:
    raise explain_missing(error) from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from msprobe_ms.config.vocabulary import Selection
    from msprobe_ms.recording.entry_points.context_manager import Recording

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "record", "seed_all"]


def __dir__() -> list[str]:
    return __all__


class PrecisionDebugger(BaseDebugger):
    """Records a MindSpore network (dynamic graphs): ``start(net)``, one training step, ``stop()``, ``step()``.

    Where ``torch`` is MSAdapter's, PyTorch code on MindSpore, it records that: import torch before constructing it.
    """

    def _load_framework(self) -> MindSpore:
        return msadapter.MSAdapter() if msadapter.is_in_use() else MindSpore()


class MsprobeStep(RecordedSteps):
    """Records each step of ``Model.train``: ``model.train(epochs, data, callbacks=[MsprobeStep(debugger)])``.

    The network is the one given to ``debugger.start(model)`` before training, else the Model's own. A step that raises
    is ended too: its files are complete and every hook is gone when the exception leaves ``Model.train``. Raises
    UsageError for what is no PrecisionDebugger.
    """

    def __init__(self, debugger: BaseDebugger) -> None:
        _check_debugger(self, debugger)
        super().__init__(debugger)


class MsprobeInitStep(InitialStep):
    """Numbers steps from where a resumed training goes on: ``callbacks=[MsprobeInitStep(), MsprobeStep(debugger)]``.

    Without ``debugger`` it is the one constructed last. Raises UsageError for what is no PrecisionDebugger.
    """

    def __init__(self, debugger: BaseDebugger | None = None) -> None:
        if debugger is not None:
            _check_debugger(self, debugger)
        super().__init__(debugger or PrecisionDebugger)  # what is called on the class goes to the last


def _check_debugger(callback: object, debugger: object) -> None:
    if isinstance(debugger, BaseDebugger):
        return
    if isinstance(debugger, type):
        given = tr("the class {name}", name=debugger.__name__)
    else:
        given = f"{repr(debugger)[:100]}, a {type(debugger).__name__},"
    name = type(callback).__name__
    accepted = tr("give a PrecisionDebugger: {name}(PrecisionDebugger(config_path))", name=name)
    raise UsageError(tr("{name}: {given} is not accepted; {accepted}", name=name, given=given, accepted=accepted))


@told_briefly
def record(
    model: Any = None,
    *,
    level: LevelName = "mix",
    task: TaskName = "statistics",
    dump_path: str | Path = "./dump_path",
    **selection: Unpack[Selection],
) -> Recording:
    """Record one step in a ``with`` block::

        with record(net, task="tensor") as dump:
            loss, gradients = training_step(x, y)
        dump["Cell.fc1.Dense.forward.0"]["output.0"].numpy()

    Forward and backward belong into the block. ``model`` is the network or a list of them; L1 and L2 need none.
    Each recording gets a step folder of its own below ``dump_path``. What is raised inside passes, and what was
    recorded until then is there. ``selection`` are further keys of a configuration: ``list``, ``scope``, ``skip``,
    ``data_mode`` and the rest. Raises ConfigError or UsageError when an argument cannot work.
    """
    # Reads dumps, which a debugger does not.
    from msprobe_ms.recording.entry_points.context_manager import open_recording

    return open_recording(PrecisionDebugger, model, {**selection, "task": task, "dump_path": dump_path, "level": level})


@told_briefly
def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Seed Python, numpy and MindSpore.

    ``mode`` asks for deterministic kernels, ``rm_dropout`` makes every dropout of nn, ops and mint the identity in
    dynamic graphs, whenever its layer was made; a later call with ``rm_dropout=False`` gives dropout back. Raises
    UsageError for values that are not accepted.
    """
    seed_process(seed, mode)
    seed_mindspore(seed, mode)
    set_dropout(not rm_dropout)
