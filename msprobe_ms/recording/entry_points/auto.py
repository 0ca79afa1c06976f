"""Record a training that knows nothing of it: start, stop and step a debugger as networks and optimizers run."""

from __future__ import annotations

import functools
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from msprobe_ms.config.vocabulary import MODULE_LEVELS
from msprobe_ms.frameworks.training import Listener, Networks
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.recording.debuggers import no_model, weakly
from msprobe_ms.support.errors import MsprobeError, UsageError
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr, tr_list


class StepRule:
    """When a step ends: when each of the script's optimizers has run.

    One that runs twice before another has run ends the step as well, and the other is not waited for again.
    """

    def __init__(self) -> None:
        self._expected: set[int] | None = None
        self._ran: set[int] = set()

    def ended_by(self, optimizer: Any, alive: Iterable[Any]) -> bool:
        """Whether the step is over now that ``optimizer`` has run; ``alive`` are the optimizers there are."""
        there = {id(each) for each in alive}
        expected = there if self._expected is None else self._expected & there
        again = id(optimizer) in self._ran
        self._ran.add(id(optimizer))
        if not again and id(optimizer) in expected and not expected <= self._ran:
            return False
        if again or self._expected is None:
            self._expected = set(self._ran)
        self._ran.clear()
        return True

    def awaited(self, alive: Iterable[Any]) -> Sequence[Any]:
        """Those of ``alive`` that have to run before a step is over."""
        return [each for each in alive if self._expected is None or id(each) in self._expected]


class Steps(Protocol):
    """Is driven through the steps of a training: a debugger, or what starts and stops one in some of them."""

    def start(self, model: Any) -> None:
        """Forward begins."""

    def stop(self) -> None:
        """Forward and backward are over."""

    def step(self) -> None:
        """The step is over."""

    def retire(self) -> None:
        """The training is over."""


#: Gives what is driven in place of a debugger of the training whose networks are known.
Drive = Callable[[BaseDebugger, Networks], Steps]


def drive_itself(debugger: BaseDebugger, find: Networks) -> Steps:
    """Return the debugger: all its steps are recorded."""
    return debugger


def _leaving_the_training_alone(method: Callable[..., None]) -> Callable[..., None]:
    """Record no more where a method fails: it asks the script's objects, whose methods may be the script's own.

    What interrupts the script arrives there, and recording goes on.
    """

    @functools.wraps(method)
    def guarded(self: TrainingRecorder, *arguments: Any) -> None:
        try:
            method(self, *arguments)
        except MsprobeError as error:
            self._refuse(error.message)
        except Exception as error:
            if interrupts(error):
                raise
            self._refuse(f"{type(error).__name__}: {error}")

    return guarded


class TrainingRecorder(Listener):
    """Starts, stops and steps a debugger as the training goes. Whatever fails here leaves the training alone."""

    def __init__(
        self,
        debugger_class: type[BaseDebugger],
        make_debugger: Callable[[], BaseDebugger],
        find: Networks,
        drive: Drive = drive_itself,
        *,
        alone: bool = True,
    ) -> None:
        self._debugger_class = debugger_class
        self._make_debugger = make_debugger
        self._find = find
        self._drive = drive
        self._alone = alone
        self._begin_anew()

    def _begin_anew(self) -> None:
        #: A forked child records nothing, unless it trains: makes an optimizer itself.
        self._process = ThisProcess()
        self._debugger: BaseDebugger | None = None
        self._steps: Steps | None = None
        self._networks: list[weakref.ref[Any]] = []
        #: Identities of their modules and trainable parameters.
        self._covered: set[int] = set()
        #: Modules that were called and are not recorded: no optimizer trains them.
        self._left_out: set[int] = set()
        self._optimizers: list[weakref.ref[Any]] = []
        self._rule = StepRule()
        self._running = False
        self._began = False
        #: Identity and class of a network → how often it was called in this step.
        self._calls: Counter[tuple[int, str]] = Counter()
        #: Gives the network whose gradients are written.
        self._monitored: Callable[[], Any] = no_model
        self._refused = False
        self._said: set[str] = set()

    # -- what the training does ------------------------------------------------------------------------------------

    @_leaving_the_training_alone
    def optimizer_made(self, optimizer: Any) -> None:
        if not self._process.is_mine:
            self._debugger_class.forget_current()  # the parent's
            self._begin_anew()
        first = not self._alive()
        self._optimizers.append(weakref.ref(optimizer))
        if first and self._debugger is not None and not self._refused:
            self._end_step()
            self._networks = []
            self._debugger.set_init_step(0)
            self._say(tr("training begins: there is an optimizer now, and steps are counted from 0 again"))

    @_leaving_the_training_alone
    def computes(self, networks: Sequence[Any], found: str) -> None:
        if self._refused or not self._process.is_mine:
            return
        self._compute(networks, found)

    def _compute(self, called: Sequence[Any], found: str) -> None:
        if self._debugger_class.current() not in (None, self._debugger):
            return self._give_way()
        if self._debugger is None or self._steps is None:
            self._debugger = self._make_debugger()
            self._steps = self._drive(self._debugger, self._find)
            self._debugger.starts_again = self._debugger.steps_are_called = True  # an optimizer ends the step
        if self._began and not self._alive() and all(id(network) in self._covered for network in called):
            self._end_step()
        if not self._began and not self._are_covered(called):
            self._choose(called, found)
        self._warn_of_left_out(called)
        self._calls.update((id(network), type(network).__name__) for network in called)
        if self._running:
            return
        networks = [network for reference in self._networks if (network := reference()) is not None]
        if not networks and self._debugger.config.level in MODULE_LEVELS:
            return self._refuse(tr("no network was found in what is {found}; level L1 needs none", found=found))
        if self._debugger.writes_gradients:
            self._watch_gradients(self._debugger, networks)
        self._began = True
        self._steps.start(networks[0] if len(networks) == 1 else networks or None)
        self._running = True  # where the start was interrupted, the next call starts again

    def _watch_gradients(self, debugger: BaseDebugger, networks: Sequence[Any]) -> None:
        """Task grad_probe: its steps are the calls of the optimizer, and `start` does nothing."""
        if len(networks) != 1:
            raise UsageError(
                tr(
                    "task grad_probe watches one network, the script has {count}; call debugger.monitor in the script",
                    count=len(networks),
                )
            )
        if self._monitored() is not networks[0]:
            self._monitored = weakly(networks[0])
            debugger.monitor(networks[0])

    @_leaving_the_training_alone
    def pauses(self) -> None:
        if self._running and self._steps is not None and self._process.is_mine:
            self._running = False
            self._steps.stop()

    @_leaving_the_training_alone
    def optimizer_ran(self, optimizer: Any) -> None:
        if not self._began or self._refused or self._debugger is None or not self._process.is_mine:
            return
        self._debugger.optimizer_ran(optimizer)
        self.pauses()
        alive = self._alive()
        awaited = self._rule.awaited(alive)
        if not self._rule.ended_by(optimizer, alive):
            return
        names = [type(each).__name__ for each in self._rule.awaited(alive)]
        is_awaited = any(optimizer is each for each in awaited)  # they may have an equality of their own
        if is_awaited and len(names) < len(awaited):
            name = type(optimizer).__name__
            self._say(tr("the optimizer {name} ran twice before others did: they are waited for no more", name=name))
        if len(names) > 1 and is_awaited:
            self._say(tr("a step ends when each of the optimizers {names} has run", names=tr_list(names)))
        else:
            self._say(tr("a step ends with each call of the optimizer {name}", name=type(optimizer).__name__))
        (_, name), times = max(self._calls.items(), key=lambda each: each[1], default=((0, ""), 0))
        if times > 1:
            self._say_once(
                "calls",
                tr(
                    "a step holds all calls until then: {name} is called {times} times in this one",
                    name=name,
                    times=times,
                ),
            )
        self._end_step()

    @property
    def has_recording(self) -> bool:
        """Whether it records, or the script does so itself."""
        return self._steps is not None or self._debugger_class.current() is not None

    def finish(self, *, others_recorded: bool = False) -> None:
        """The script is over; ``others_recorded``: its training was in another framework."""
        if not self._process.is_mine:
            return
        if self._steps is not None:
            self._steps.retire()
        elif self._refused:
            return
        elif self._debugger_class.current() is not None:
            self._give_way()
        elif self._alone and not others_recorded:
            logger.warning(
                tr(
                    "msprobe run: nothing is recorded: the script called no network and computed no gradients of "
                    "one in MindSpore or PyTorch, in this process, that could be seen"
                )
            )

    # -- which networks --------------------------------------------------------------------------------------------

    def _choose(self, called: Sequence[Any], found: str) -> None:
        """Settle which networks are recorded, from here on; say so."""
        networks = self._find.trained(called, self._alive())
        self._networks = [weakref.ref(network) for network in networks]
        modules = [module for network in networks for module in self._find.modules(network)]
        parameters = [parameter for network in networks for parameter in self._find.trainable(network)]
        self._covered = {id(each) for each in (*modules, *parameters)}
        names = [f"{type(network).__name__} ({_source(network)})" for network in networks]
        if len(names) > 1:
            numbered = tr_list(f"{number}: {name}" for number, name in enumerate(names))
            self._say(
                tr("the networks are {numbered}; names of their entries begin with the number", numbered=numbered)
            )
        else:
            around = len(networks) == 1 and not any(network is networks[0] for network in called)
            how = tr("whose parts are called") if around else found
            self._say(tr("the network is {names}, {how}", names=names[0] if names else tr("not known"), how=how))
        if not self._alive():
            self._say(tr("there is no optimizer: a step ends when the network is called again"))

    def _are_covered(self, called: Sequence[Any]) -> bool:
        """Whether what is called is recorded, or known not to be."""
        return bool(self._networks) and all(self._is_covered(network) for network in called)

    def _is_covered(self, network: Any) -> bool:
        if id(network) in self._covered or id(network) in self._left_out:
            return True
        parameters = [id(parameter) for parameter in self._find.trainable(network)]
        return bool(parameters) and self._covered.issuperset(parameters)

    def _warn_of_left_out(self, called: Sequence[Any]) -> None:
        for network in called:
            if not self._is_covered(network):
                self._left_out.add(id(network))
                advice = tr("give a list of networks to PrecisionDebugger.start")
                why = tr("no optimizer trains it") if self._alive() else advice
                self._say(
                    tr(
                        "{name} ({source}) is called too and not recorded: {why}",
                        name=type(network).__name__,
                        source=_source(network),
                        why=why,
                    )
                )

    # -- the rest --------------------------------------------------------------------------------------------------

    def _alive(self) -> list[Any]:
        return [optimizer for reference in self._optimizers if (optimizer := reference()) is not None]

    def _end_step(self) -> None:
        self.pauses()
        if self._began and self._steps is not None:
            self._began = False
            self._calls.clear()
            self._steps.step()

    def _give_way(self) -> None:
        """The script records itself; one recording at a time."""
        if self._debugger is not None:
            self._debugger.retire()  # at once; what is driven in its place may have to wait for something at the end
        self._refused, self._running = True, False
        logger.warning(
            tr("msprobe run: the script uses a PrecisionDebugger of its own: it alone records, as without msprobe run")
        )

    def _refuse(self, why: str) -> None:
        self._refused = True
        logger.warning(tr("msprobe run: nothing is recorded: {why}; the script goes on", why=why))

    def _say(self, text: str) -> None:
        self._say_once(text, text)

    def _say_once(self, key: str, text: str) -> None:
        if key not in self._said and (self._debugger is None or self._debugger.speaks):
            logger.info(tr("msprobe run: {text}", text=text))
        self._said.add(key)


def _source(network: Any) -> str:
    """Where the network's class stands; the script by the path that it was given by."""
    name = type(network).__module__
    file = str(getattr(sys.modules.get(name), "__file__", None) or name)
    given = sys.argv[0] if sys.argv else ""
    return given if name == "__main__" and given and file.endswith(given) else file
