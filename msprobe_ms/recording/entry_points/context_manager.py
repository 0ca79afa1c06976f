"""Record one step in a ``with`` block, without a configuration file, and read what was recorded as values."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from msprobe_ms.config.vocabulary import GRADIENT_TASK
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.opened.step import RecordedStep
from msprobe_ms.dump.reading.locate import dump_at
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.page.template import escaped
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr


class Recording(RecordedStep):
    """One step while it is recorded, and then what ``load`` gives of it. Complete when the ``with`` block has ended."""

    def __init__(self, debugger: BaseDebugger, model: Any) -> None:
        super().__init__(None, None)
        self._debugger = debugger
        self._model = model
        self._running = False

    def __enter__(self) -> Recording:
        if self._folder is not None:
            raise UsageError(tr("record: a recording holds one step; call record again for another"))
        self._debugger.begin_unused_step()
        self._debugger.steps_are_called = True  # the block is one step
        self._folder = self._debugger.folder
        try:
            self._debugger.start(self._model)
        except UsageError:
            self._debugger.retire()
            raise
        self._running = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._debugger.stop()
        self._debugger.retire()
        self._running, self._model = False, None

    def _read(self) -> Dump | None:
        if self._dump is None:
            folder = self.path
            if self._running:
                raise UsageError(tr("record: the step is still being recorded; read it after the with block"))
            self._dump = None if dump_at(folder) is None else read_dump(folder)
        return self._dump

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self._is_there else f"<pre>{escaped(repr(self))}</pre>"

    def __repr__(self) -> str:
        return super().__repr__() if self._is_there else f"<recording to {self._folder or 'nowhere yet'}>"

    @property
    def _is_there(self) -> bool:
        return self._folder is not None and not self._running


#: Keys of a configuration that choose among steps, or change while a job runs: a recording is one step.
_OF_MANY_STEPS = ("step", "dump_enable")


def open_recording(debugger: type[BaseDebugger], model: Any, settings: Mapping[str, Any]) -> Recording:
    """Return the recording of ``model`` that ``settings``, keys of a configuration, ask for.

    Raises ConfigError or UsageError for what cannot work.
    """
    for key in _OF_MANY_STEPS:
        if key in settings:
            raise UsageError(
                tr("record: {key} is not accepted: a recording holds one step; use a PrecisionDebugger", key=key)
            )
    if settings["task"] == GRADIENT_TASK:
        raise UsageError(
            tr(
                "record: task {gradient_task} writes no dump; use a PrecisionDebugger and its monitor",
                gradient_task=GRADIENT_TASK,
            )
        )
    return Recording(debugger(settings=settings), model)
