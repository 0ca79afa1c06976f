"""Take the calls of one step: make each once more with arguments a little different, and compare.

The call of the training comes first, and its result is what the training gets, but for ``handler_type: fix``. What
comes after, its errors included, leaves no trace in the training: arguments that a call writes to are copied before,
and random generators are put back.
"""

from __future__ import annotations

import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from msprobe_ms.dump.names import FORWARD
from msprobe_ms.dump.writing.memory_budget import MIB
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.calls import CallSites, Subject
from msprobe_ms.recording.hooks.operators import PREFIX as PRIMITIVE
from msprobe_ms.recording.perturbation.api_kinds import ApiKind, kind_of
from msprobe_ms.recording.perturbation.arguments import NotRepeatableError
from msprobe_ms.recording.perturbation.fixing import fixed
from msprobe_ms.recording.perturbation.gradients import GradientCheck
from msprobe_ms.recording.perturbation.perturbations import PERTURBATIONS, unjudged
from msprobe_ms.recording.perturbation.preheat import Preheat
from msprobe_ms.recording.perturbation.repetition import Function, Repetition, Result, Tools
from msprobe_ms.recording.perturbation.report import Report
from msprobe_ms.recording.selection.filters import Scope
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class _Thread(threading.local):
    """Whether this thread is inside of an API, and whether that has drawn what cannot be drawn again."""

    def __init__(self) -> None:
        self.busy = self.drew = False


class _Untold:
    """What wrappers of APIs tell of memory that was used up: nothing is lost by it here."""

    untold = False


class CheckedCall:
    """One call of the training that is to be checked."""

    __slots__ = ("api", "entry", "gradients", "repetition", "site", "subject")

    def __init__(self, api: str, entry: str, subject: Subject, repetition: Repetition) -> None:
        self.api, self.entry, self.subject, self.repetition = api, entry, subject, repetition
        self.gradients: GradientCheck | None = None
        #: Where it was made; looked for when it is wanted.
        self.site: Sequence[tuple[CodeType, int]] = ()


class PerturbingRecorder:
    """The calls of one step; wrappers of APIs bring them to ``run``."""

    def __init__(
        self,
        config: Config,
        framework: Framework,
        report: Report,
        names: Mapping[str, str],
        operators: frozenset[str] | None,
        preheat: Preheat | None,
        step: int,
        rank: int | None,
    ) -> None:
        """``names``: what a module is called whose APIs' entries begin with a prefix; ``operators``: those that are
        checked, None for all."""
        self._config, self._framework, self._report = config, framework, report
        self._names, self._operators, self._preheat = names, operators, preheat
        self._step, self._rank = step, rank
        perturbation = PERTURBATIONS[config.pert_mode]
        repeater = framework.repeater()
        self._tools = Tools(framework, repeater, perturbation, config.fuzz_args == "all")
        self._cpu = Tools(framework, repeater, PERTURBATIONS["to_cpu"], everywhere=True)
        self._scope = Scope(config.scope)
        self._sites = CallSites(framework.machinery, framework.plumbing, framework.tracers, keep_frames=True)
        self._calls: Counter[str] = Counter()
        #: APIs that were seen to change an argument.
        self._writing: set[str] = set()
        #: Checks whose gradients have not come, which their graphs hold; their number by API.
        self._waiting: WeakSet[GradientCheck] = WeakSet()
        self._awaited: Counter[str] = Counter()
        #: Those whose gradients wait for the backward to end; their bytes.
        self._ready: list[tuple[CheckedCall, GradientCheck]] = []
        self._held = 0
        self._thread, self._process = _Thread(), ThisProcess()
        self._closed = False
        self.errors = _Untold()

    # -- the call --------------------------------------------------------------------------------------------------

    def run(
        self,
        subject: Subject,
        function: Function,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        parameters: Callable[[], Any] = tuple,
    ) -> Any:
        """Call ``function`` and check it; its result, or exception."""
        thread = self._thread
        was_busy, call = thread.busy, None
        try:
            try:
                call = self._begin(subject, args, kwargs)
            except Exception as error:  # of ours: nothing of the script's has been called
                self._failed(subject, error)
            try:
                output = function(*args, **kwargs)
            except BaseException:
                if thread.busy and not was_busy:
                    self._abandon(subject, call)
                raise
            try:
                if thread.busy and not was_busy:
                    self._scope_ends(subject)
                return output if call is None else self._end(call, function, output)
            except Exception as error:
                self._failed(subject, error)
                return output
        finally:
            thread.busy = was_busy

    def _failed(self, subject: Subject, error: Exception) -> None:
        """Report an error of ours. Raises what must arrive at the script."""
        with suppress(MemoryError, RecursionError):
            prefix, _, rest = subject.base.partition(".")
            self._report.failed(self._api(prefix, rest), error)

    def _abandon(self, subject: Subject, call: CheckedCall | None) -> None:
        """The call raised: it is not checked."""
        try:
            if call is not None:
                self._report.summary.of(call.api).left_out["it raised"] += 1
                self._settle(call)
            self._scope_ends(subject)
        except Exception as error:
            self._failed(subject, error)

    def _api(self, prefix: str, name: str) -> str:
        return f"{self._names.get(prefix, prefix)}.{name}"

    def _draws(self, subject: Subject) -> bool:
        prefix, _, rest = subject.base.partition(".")
        return self._tools.repeater.draws(prefix, rest.rpartition(".")[2])

    def _scope_ends(self, subject: Subject) -> None:
        number = self._calls[subject.base] - 1
        if number >= 0:
            self._scope.ends(subject.entry(FORWARD, number))

    def _begin(self, subject: Subject, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CheckedCall | None:
        """Count the call, and take what its check needs of before it; None where it is not to be checked."""
        thread = self._thread
        if thread.busy:
            thread.drew = thread.drew or self._draws(subject)
            return None
        if self._closed or not self._process.is_mine or self._framework.is_tracing():
            return None
        thread.busy, thread.drew = True, self._draws(subject)
        prefix, _, name = subject.base.partition(".")
        if prefix == PRIMITIVE:
            name = name.rpartition(".")[2]
            if self._operators is not None and name not in self._operators:
                return None
        api = self._api(prefix, name)
        number = self._calls[subject.base]
        self._calls[subject.base] += 1
        counts = self._report.summary.of(api)
        counts.calls += 1
        entry = subject.entry(FORWARD, number)
        kind = kind_of(name)
        if reason := self._reason(api, entry, subject, kind):
            counts.left_out[reason] += 1
            return None
        writes = _writes(subject, kwargs) or subject.base in self._writing

        def begin() -> CheckedCall:
            if writes and (self._config.handler_type == "fix" or self._config.fuzz_stage == "backward"):
                raise NotRepeatableError(tr("it changes its arguments"))
            repetition = Repetition(self._tools, kind, args, kwargs, writes=writes, scratch=subject.scratch)
            made = CheckedCall(api, entry, subject, repetition)
            if self._config.fuzz_stage == "backward":
                made.gradients = GradientCheck(self._tools, repetition, partial(self._gradients_came, made))
                made.site = self._site()
            return made

        # A context without gradients would hide which of them flow.
        call: CheckedCall | None = self._guarded(api, begin, quiet=self._config.fuzz_stage == "forward")
        return call

    def _reason(self, api: str, entry: str, subject: Subject, kind: ApiKind) -> str:
        """Why a call is not checked, as far as its API tells; "" where it may be."""
        if not self._scope.begins(entry):
            return tr("outside of the scope")
        if self._preheat is not None and not self._preheat.takes(api):
            return tr("not in the sample of preheating")
        if subject.communication is not None:
            return tr("it exchanges tensors with other processes")
        if subject.compiled:
            return tr("it is a compiled graph")
        return unjudged(kind, self._tools.perturbation, self._config.fuzz_stage)

    def _end(self, call: CheckedCall, function: Function, output: Any) -> Any:
        """Check the call that is over; what the training gets."""
        repetition = call.repetition
        reason = ""
        if self._thread.drew:
            reason = "it draws random numbers whose state cannot be put back"
        elif not repetition.writes and self._guarded(call.api, lambda: repetition.was_written):
            self._writing.add(call.subject.base)
            reason = "it changes its arguments, which was seen only then"
        if reason:
            self._report.summary.of(call.api).left_out[reason] += 1
            self._settle(call)
            return output
        if call.gradients is not None:
            self._await_gradients(call, call.gradients, function, output)
            return output
        if self._config.handler_type == "fix":
            found = self._guarded(call.api, lambda: [fixed(self._tools, repetition, function, output)], quiet=False)
            if found is None:
                return output
            self._report.summary.of(call.api).fixed += 1
            return found[0]
        self._guarded(call.api, lambda: self._check(call, function, output))
        return output

    # -- checks ----------------------------------------------------------------------------------------------------

    def _check(self, call: CheckedCall, function: Function, output: Any) -> None:
        repetition, preheat = call.repetition, self._preheat
        result = repetition.result(output)
        if preheat is not None and preheat.goes_on:
            return self._check_beside_cpu(call, preheat, function, result)

        def threshold(name: str, limit: float) -> float:
            return limit if preheat is None else preheat.threshold(call.api, name, limit)

        found = list(repetition.compare(function, result, self._seed(call), threshold))
        self._tell(call, found, self._config.pert_mode)

    def _check_beside_cpu(self, call: CheckedCall, preheat: Preheat, function: Function, output: Any) -> None:
        """While preheating the CPU tells what is wrong, and how far the perturbation moves what is right."""
        beside = call.repetition.using(self._cpu)
        wrong = [each for each in beside.compare(function, output, 0, _as_it_is) if each.finding is not None]
        self._tell(call, wrong, "to_cpu")
        if not wrong:
            for each in call.repetition.compare(function, output, self._seed(call), _as_it_is):
                name = self._tools.repeater.float_name(each.tensor) or ""
                preheat.healthy(call.api, name, each.size)

    def _await_gradients(self, call: CheckedCall, gradients: GradientCheck, function: Function, output: Any) -> None:
        def begin() -> bool:
            gradients.await_from(function, output)
            return True

        if self._guarded(call.api, begin, quiet=False):
            call.gradients = None  # nothing holds the check but the graph, which may go without a backward
            self._waiting.add(gradients)
            self._awaited[call.api] += 1
        else:
            self._settle(call)

    def _settle(self, call: CheckedCall) -> None:
        """The call is over, and its gradients are not checked."""
        if call.gradients is not None:
            settle = call.gradients.settle
            self._guarded(call.api, lambda: settle(()))

    def _gradients_came(self, call: CheckedCall, gradients: GradientCheck) -> None:
        """The gradients of a call are known: check them."""
        if gradients not in self._waiting or not self._process.is_mine:
            return
        self._waiting.discard(gradients)
        self._awaited[call.api] -= 1
        if self._tools.repeater.differentiates_in_backward:
            return self._check_gradients(call, gradients)
        self._held += gradients.size
        if self._held > self._config.max_memory * MIB:
            self._report.summary.of(call.api).left_out["max_memory is used up"] += 1
            return gradients.release()
        if self._guarded(call.api, gradients.keep):
            self._ready.append((call, gradients))
        return None

    def pause(self) -> None:
        """The backward is over: check the gradients that could not be while it ran."""
        ready, self._ready, self._held = self._ready, [], 0
        for call, gradients in ready:
            self._check_gradients(call, gradients)

    def _check_gradients(self, call: CheckedCall, gradients: GradientCheck) -> None:
        was_busy, self._thread.busy = self._thread.busy, True
        try:
            found = self._guarded(call.api, lambda: list(gradients.compare(self._seed(call))))
            if found is not None:
                self._tell(call, found, self._config.pert_mode)
        finally:
            self._thread.busy = was_busy
            gradients.release()

    def _tell(self, call: CheckedCall, results: Sequence[Result], mode: str) -> None:
        counts = self._report.summary.of(call.api)
        counts.checked += 1
        wrong = [each for each in results if each.finding is not None]
        counts.inconsistent += bool(wrong)
        site = call.site or (self._site() if wrong else ())
        for each in wrong:
            assert each.finding is not None
            self._report.found(
                call.api, call.entry, each.finding, step=self._step, rank=self._rank, tensor=each.tensor,
                index=each.place, site=site, stage=self._config.fuzz_stage, mode=mode,
            )  # fmt: skip

    def _site(self) -> Sequence[tuple[CodeType, int]]:
        return self._sites.locate(sys._getframe(1), is_module=False).frames

    def _seed(self, call: CheckedCall) -> int:
        """Another for each call, the same in every run."""
        return zlib.crc32(f"{self._step} {call.entry}".encode("utf-8", "surrogatepass"))

    def _guarded(self, api: str, action: Callable[[], Any], *, quiet: bool = True) -> Any:
        """What ``action`` gives; None where the call cannot be checked, which is counted. ``quiet``: it enters no
        gradient graph."""
        silence = None
        try:
            silence = self._framework.quiet()
            with self._framework.unseen(), silence if quiet else nullcontext():
                return action()
        except NotRepeatableError as reason:
            self._report.summary.of(api).left_out[str(reason)] += 1
        except Exception as error:
            if silence is not None:
                silence.restore()
            self._report.failed(api, error)
        except BaseException:
            if silence is not None:
                silence.restore()
            raise
        return None

    # -- the step --------------------------------------------------------------------------------------------------

    @contextmanager
    def blind(self) -> Iterator[None]:
        """Nothing called inside is checked: a compiler at work, not the script's code."""
        was_busy, self._thread.busy = self._thread.busy, True
        try:
            yield
        finally:
            self._thread.busy = was_busy

    def failed(self, error: Exception, where: str) -> None:
        """Report an error of a hook's own."""
        self._report.failed(where, error)

    def close(self) -> None:
        """The step is over: gradients that come later belong to nothing."""
        self._closed = True
        waiting, self._waiting = list(self._waiting), WeakSet()
        awaited, self._awaited = self._awaited, Counter()
        for api, count in awaited.items():
            if count:
                self._report.summary.of(api).left_out["no gradient came"] += count
        for gradients in waiting:
            gradients.release()


def _writes(subject: Subject, kwargs: Mapping[str, Any]) -> bool:
    """Whether a call is known to change its arguments."""
    return subject.writes_in_place or kwargs.get("out") is not None or kwargs.get("inplace") is True


def _as_it_is(dtype: str, limit: float) -> float:
    return limit
