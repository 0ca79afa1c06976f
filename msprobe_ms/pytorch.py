"""What a PyTorch script imports: ``PrecisionDebugger``, ``record``, ``seed_all``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msprobe_ms.config.vocabulary import LevelName, TaskName
from msprobe_ms.frameworks import explain_missing
from msprobe_ms.frameworks.seeding import seed_process, seed_pytorch
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.recording.debuggers import weakly
from msprobe_ms.recording.entry_points.context_manager import Recording, open_recording
from msprobe_ms.recording.start_arguments import check_models
from msprobe_ms.support.errors import told_briefly

try:
    from msprobe_ms.frameworks.pytorch.dropout import set_dropout
    from msprobe_ms.frameworks.pytorch.framework import PyTorch
except ModuleNotFoundError as error:
    raise explain_missing(error) from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from msprobe_ms.config.vocabulary import Selection

__all__ = ["PrecisionDebugger", "record", "seed_all"]


def __dir__() -> list[str]:
    return __all__


class PrecisionDebugger(BaseDebugger):
    """Records a PyTorch network (eager mode): ``start(net)``, one training step, ``stop()``, ``step()``.

    Modules compiled by torch.compile or scripted run untouched and are not recorded. A *function* compiled with
    ``fullgraph=True`` that calls recorded modules or APIs cannot be called while recording: PyTorch raises.
    """

    @told_briefly
    def __init__(
        self,
        config_path: str | Path | None = None,
        task: TaskName | None = None,
        dump_path: str | Path | None = None,
        level: LevelName | None = None,
        step: Sequence[int | str] | None = None,
        *,
        model: Any = None,
        settings: Mapping[str, Any] | None = None,
        **unknown: NoReturn,
    ) -> None:
        """Read the configuration; arguments that are given override the file, ``settings`` any key of it.

        ``model`` is the network (or a list of them) that ``start()`` records where it is given none. Raises
        ConfigError, which names the file, the key, the value and what is accepted; UsageError for what is no network,
        and for an unknown argument.
        """
        super().__init__(config_path, task, dump_path, level, step, settings=settings, **unknown)
        check_models(self._framework, "PrecisionDebugger", model)
        self._usual_model = weakly(model)

    def _load_framework(self) -> PyTorch:
        return PyTorch()


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
        dump["Module.fc1.Linear.forward.0"]["output.0"].numpy()

    Forward and backward belong into the block. ``model`` is the network or a list of them; level ``L1`` needs none.
    Each recording gets a step folder of its own below ``dump_path``. What is raised inside passes, and what was
    recorded until then is there. ``selection`` are further keys of a configuration: ``list``, ``scope``, ``skip``,
    ``data_mode`` and the rest. Raises ConfigError or UsageError when an argument cannot work.
    """
    return open_recording(PrecisionDebugger, model, {**selection, "task": task, "dump_path": dump_path, "level": level})


@told_briefly
def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Seed Python, numpy and PyTorch; ``mode`` asks PyTorch, cuDNN and cuBLAS for deterministic kernels.

    ``rm_dropout`` gives every dropout the probability 0, that of attention and of recurrent layers too, whenever its
    module was made; a later call with ``rm_dropout=False`` gives dropout back. Raises UsageError for values that are
    not accepted.
    """
    seed_process(seed, mode)
    seed_pytorch(seed, mode)
    set_dropout(not rm_dropout)
