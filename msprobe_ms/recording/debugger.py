"""``PrecisionDebugger``: what a training script holds. Start, stop and step a recording."""

from __future__ import annotations

import logging
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from msprobe_ms.config.reload import FileChanges, accept_changes
from msprobe_ms.config.values import unknown_arguments
from msprobe_ms.config.vocabulary import GRADIENT_TASK, MODULE_LEVELS, LevelName, TaskName
from msprobe_ms.dump.reading.locate import dump_at
from msprobe_ms.dump.writing.writer import process_folder
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.debuggers import Debuggers, MethodOfCurrent, no_model, weakly
from msprobe_ms.recording.graphs.run_steps import RunSteps
from msprobe_ms.recording.guarded_actions import GuardedActions
from msprobe_ms.recording.hooks.custom_apis import CustomApis
from msprobe_ms.recording.modes import Dumpers, api_hooks
from msprobe_ms.recording.monitoring.gradient_probe import GradientProbe
from msprobe_ms.recording.monitoring.monitor import Monitoring
from msprobe_ms.recording.parts_of_a_step import PartsOfAStep
from msprobe_ms.recording.progress import say_last_step_ended, say_nothing_recorded, say_what_is_ignored, speaks
from msprobe_ms.recording.quotas import Quotas
from msprobe_ms.recording.saved_values import SavesValues
from msprobe_ms.recording.selection.process_rank import ProcessRank
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.recording.start_arguments import TokenRange, check_start
from msprobe_ms.recording.step import Step
from msprobe_ms.recording.travelling import Travelling
from msprobe_ms.support.errors import UsageError, told_briefly
from msprobe_ms.support.log import LogOnce
from msprobe_ms.support.process import no_garbage_collection
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class BaseDebugger(CustomApis, Monitoring, PartsOfAStep, SavesValues, Travelling, GuardedActions):
    """The debugger of one framework; ``PrecisionDebugger`` of ``msprobe_ms`` and ``msprobe_ms.pytorch`` derive from it.

    Only one records at a time: `start` ends the step of another, whatever its framework.
    """

    #: One for all classes.
    _debuggers = Debuggers()
    #: Whether there is nothing to end: not yet, or not any more.
    _ended = True

    @told_briefly
    def __init__(
        self,
        config_path: str | Path | None = None,
        task: TaskName | None = None,
        dump_path: str | Path | None = None,
        level: LevelName | None = None,
        step: Sequence[int | str] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **unknown: NoReturn,
    ) -> None:
        """Read the configuration; arguments that are given override the file, ``settings`` any key of it.

        Raises ConfigError, which names the file, the key, the value and what is accepted; UsageError for an unknown
        argument.
        """
        if unknown:
            raise UsageError(unknown_arguments(unknown))
        with no_garbage_collection():  # what validates takes as long to import as all the rest
            from msprobe_ms.config import load_config

        given: dict[str, Any] = {"task": task, "dump_path": dump_path, "level": level, "step": step}
        self._read_config = partial(load_config, config_path, settings=settings, **given)
        self._changes = FileChanges(Path(config_path) if isinstance(config_path, (str, os.PathLike)) else None)
        self.config: Config = self._read_config()
        self._framework = self._load_framework()
        self._apis = api_hooks(self.config, self._framework)
        #: Gives the network given to `start` last, while its user holds it.
        self.model: Callable[[], Any] = no_model
        #: What `start` records where it is given no network.
        self._usual_model: Callable[[], Any] = no_model
        self.quotas = Quotas.of(self.config)
        self._dumpers = Dumpers(self.config, self._framework, self._apis, self.quotas)
        self._say_once = LogOnce()
        self._rank = ProcessRank(self._framework, self._say_once)
        #: Whether `start` was called since the last `step`, whether one has ever succeeded, whether a folder was told.
        self._started = self._was_started = self._announced = False
        if self.config.task == GRADIENT_TASK:
            self._gradients = GradientProbe(self.config, self._framework, self._rank, self._guarded)
        else:
            self._dumper = self._dumpers.now("PrecisionDebugger")
        #: Whether `start` (or `save`) came in a step that is selected; None while it has not come at all.
        self._reached: bool | None = None
        #: Whether a step that was recorded holds something.
        self._holds_something = False
        #: Whether the disk did not let this step be recorded: what comes of it later is no whole step.
        self._refused = False
        #: Which step it is, and how many are over.
        self._step = self._steps = 0
        #: Set by who starts several times a step and knows it, and by who calls `step`.
        self.starts_again = self.steps_are_called = False
        self._runs = RunSteps(self._framework, self._step_of_run)
        self._open_step: Step | None = None
        self._unused = UnusedSettings()
        say_what_is_ignored(self.config)
        self._debuggers.add(self)
        self._ended = False

    def __del__(self) -> None:
        if not self._ended:
            with suppress(Exception):
                self.end()

    @classmethod
    def current(cls) -> BaseDebugger | None:
        """The debugger that calls on the class go to: the one constructed or started last."""
        return cls._debuggers.current_of(cls)

    @classmethod
    def forget_current(cls) -> None:
        """Have calls on the class go to no debugger: in a forked child it is the parent's."""
        if (current := cls.current()) is not None:
            cls._debuggers.forget(current)

    @abstractmethod
    def _load_framework(self) -> Framework:
        """The framework's side of things; imported only now."""

    @MethodOfCurrent
    def start(self, model: Any = None, token_range: TokenRange | None = None, rank_id: int | None = None) -> None:
        """Record from here to ``stop``.

        ``model`` is the network (a module, or a list or tuple of them); levels L0 and mix need it. ``token_range``
        ``[first, last]``, or a set of numbers, records only those of the model's calls within the step, for inference.
        ``rank_id`` names the dump's folder where the framework does not know the rank.

        Raises UsageError when the call cannot work; after one that did, logs that instead and records nothing.
        """
        starting = partial(self._start, model, token_range, rank_id, sys._getframe(1))
        self._one_by_one("start", partial(self._start_or_say, starting))

    def _start_or_say(self, start: Callable[[], None]) -> None:
        """A training that has begun to be recorded goes on, whatever cannot be recorded of it later."""
        try:
            start()
        except UsageError as error:
            if not self._was_started:
                raise
            self._pause()
            self._started = True
            self._say_once(
                logging.WARNING,
                tr("cannot record: {error}; training goes on, such steps are not recorded", error=error),
            )
        else:
            self._was_started = True

    def _start(self, model: Any, token_range: TokenRange | None, rank_id: int | None, caller: FrameType) -> None:
        self._end_interrupted_step()
        self._reread_config()
        model = self._usual_model() if model is None else model
        check_start(self._framework, self.config.level, model, token_range, rank_id)
        self._follow_mode()
        self._started = True
        self._note_step()
        if self._open_step is not None and self._open_step.saw_backward and not self.starts_again:
            again = tr(
                "start: called again before step(), so that step {step} goes on; call step() after each training step",
                step=self._step,
            )
            self._say_once(logging.WARNING, again)
        self.model = weakly(model)
        self._rank.given = rank_id
        self._dumper.announce(model if isinstance(model, (list, tuple)) else [] if model is None else [model])
        self._begin(model, token_range)
        if self._dumper.in_graphs and not self.steps_are_called:
            self._runs.install(caller, type(self).__name__)
        else:
            self._runs.remove()

    def _begin(self, model: Any, token_range: TokenRange | None = None) -> None:
        opened = self._open()
        if opened is not None and self.config.level != "debug":
            # A thousand objects come and go; the search for cycles would begin several times, and find nothing.
            with no_garbage_collection():
                opened.start(model, token_range)

    def _step_of_run(self) -> None:
        """A graph runs again, and nobody has ever called `step`: that is another step."""
        model = self.model()
        self._end_step()
        self._reread_config()
        self._note_step()
        if self.config.step and self._step > max(self.config.step):
            self._runs.remove()
        elif model is not None or self.config.level not in MODULE_LEVELS:
            self._begin(model)

    def forget_model(self) -> None:
        """As if `start` had never been given a network."""
        self.model = no_model

    def _open(self) -> Step | None:
        """Open the step where this step and rank are recorded, else None; the step of another debugger is over then."""
        debuggers = self._debuggers
        debuggers.current[type(self)] = self
        if debuggers.recording is not None and debuggers.recording is not self:
            self._say_once(
                logging.WARNING, tr("start: ends the step of another PrecisionDebugger: one records at a time")
            )
            debuggers.recording._give_way()
        self._rank.say_unselected(self.config.rank)
        if self._refused or not self._selected() or (self._open_step is None and self._is_off()):
            return None
        if self._open_step is None:
            self._open_step = self._dumper.open(self.config, self._step, self._rank.known)
            self._refused = self._open_step is None
            if self._open_step is not None and not self._announced:
                self._open_step.status.begin(self._open_step.folder)
                self._announced = True
        if self._open_step is not None:
            debuggers.recording = self
        return self._open_step

    def _step_to_save_in(self) -> Step | None:
        self._end_interrupted_step()
        self._reread_config()
        self._note_step()
        return self._open()

    def _note_step(self) -> None:
        self._reached = self._reached or not self.config.step or self._step in self.config.step

    def _follow_mode(self) -> None:
        """A script may change the execution mode at any time; what cannot be recorded in it is refused."""
        dumper = self._dumpers.now("start")
        if dumper is not self._dumper and self._open_step is not None:
            changed = tr("the execution mode changed in the middle of step {step}", step=self._step)
            raise UsageError(tr("start: {changed}; call step() before start()", changed=changed))
        self._dumper = dumper

    def _reread_config(self) -> None:
        """Between steps: what the user wrote into the file since it was read last."""
        if self._open_step is None and self.config.dump_enable is not None and self._changes.happened():
            self.config = accept_changes(self.config, self._read_config)

    def _is_off(self) -> bool:
        """Whether no step is begun: recording is switched off, or as much has overflowed as is recorded."""
        return self.config.dump_enable is False or self.quotas.spent(self.config.task)

    def _selected(self) -> bool:
        return (not self.config.step or self._step in self.config.step) and self._rank.is_selected(self.config.rank)

    @MethodOfCurrent
    def stop(self) -> None:
        """Pause recording: every hook is gone until ``start``. Gradients of recorded calls still come in."""
        try:
            self._one_by_one("stop", self._stop)
        except BaseException:  # which may have come before anything was done
            with suppress(Exception):
                self._pause()
            raise

    def _pause(self) -> None:
        """Take off whatever is put on; may be repeated."""
        self._runs.remove()
        self._end_interrupted_step()
        if self._open_step is not None:
            with no_garbage_collection():
                self._open_step.stop()

    def _stop(self) -> None:
        self._pause()
        if not self._started and self.config.level != "debug":
            self._say_once(logging.WARNING, tr("stop: nothing to stop, start was not called since the last step()"))

    @MethodOfCurrent
    def step(self) -> None:
        """End the step: its files are complete when this returns. The next ``start`` belongs to the next step."""
        before: list[int] = []
        for _ in range(2):  # again where an error kept the first from coming to its end
            self._one_by_one("step", partial(self._end_step_once, before))

    def _end_step_once(self, before: list[int]) -> None:
        """End the step, unless an earlier try did. ``before``: how many were over when the first began."""
        if not before:
            before.append(self._steps)
        if self._steps == before[0]:
            self._end_called_step()

    def _end_called_step(self) -> None:
        self._runs.remove()
        self._end_step()
        self._started, self.steps_are_called = False, True
        self._step -= self._runs.take_back(self._step - 1)

    def _end_step(self) -> None:
        step, refused = self._step, self._refused
        self._refused = False
        self._finish(steps=1)
        self._dumpers.step_ended(step)
        if self._reached and not refused and step == max(self.config.step, default=None) and self.speaks:
            say_last_step_ended(self.config, nothing=not self._holds_something)

    def _end_interrupted_step(self) -> None:
        """Do what an interrupted call of `step` did not come to."""
        if self._open_step is not None and self._open_step.ending:
            self._started = False
            self._end_step()

    @MethodOfCurrent
    def set_init_step(self, step: int) -> None:
        """Count steps from ``step``, for a training that was resumed."""
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise UsageError(tr("set_init_step: {step} is not accepted; give an integer from 0 up", step=repr(step)))
        self._step = step
        if self._gradients is not None:
            self._gradients.step = step

    @property
    def speaks(self) -> bool:
        """Whether this process tells the user how it goes, for all ranks."""
        return speaks(self.config, self._rank.known)

    @property
    def folder(self) -> Path:
        """Where this process's dump of the current step lies, or will."""
        return process_folder(self.config.dump_path, self._step, self._framework.rank())

    def optimizer_ran(self, optimizer: Any) -> None:
        """Complete what is recorded of an optimizer's call, where `step` comes before the hooks on it say so."""
        if self._open_step is not None:
            self._open_step.optimizer_ran(optimizer)

    def begin_unused_step(self) -> None:
        """Count on to the first step that has no dump of this process yet."""
        while self.folder.exists() or dump_at(self.folder) is not None:
            self._step += 1

    def retire(self) -> None:
        """End the step, and with it this debugger: it records no more, and nothing remembers it."""
        self.end()
        self._debuggers.forget(self)

    def end(self) -> None:
        """End the step, put back what was changed in the process, and say it where nothing was recorded at all."""
        self._runs.remove()
        if not self._ended and not self.steps_are_called:
            self._runs.warn_of_repetition()
        self._finish()
        self._dumpers.close()
        ended, self._ended = self._ended, True
        if ended:
            return
        if self._gradients is not None:
            return self._gradients.end()
        if not self._reached and self.speaks:
            say_nothing_recorded(self.config, self._steps, step_was_reached=self._reached is not False)

    def _give_way(self) -> None:
        """End the step, as another debugger starts."""
        self._runs.remove()
        if self._open_step is not None:
            self._open_step.gave_way = True
        self._finish()

    def _finish(self, steps: int = 0) -> None:
        """End the step that is open, again where that was interrupted, and count ``steps``."""
        if (opened := self._open_step) is not None:
            if self.config.level == "debug" and opened.is_empty:
                nothing = tr(
                    "save: nothing was recorded: level debug records what save is given, and it was not called"
                )
                self._say_once(
                    logging.WARNING,
                    tr("{nothing} in step {step}: debugger.save(tensor, name)", nothing=nothing, step=self._step),
                )
            with no_garbage_collection():
                self._guarded("step", partial(opened.finish, self._unused))
            self._holds_something |= not opened.left_nothing
        if self._debuggers.recording is self:
            self._debuggers.recording = None
        self._step, self._steps, self._open_step = self._step + steps, self._steps + steps, None
