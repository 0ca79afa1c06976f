"""Record the calls of one step: name them, summarise what they were given and gave, hand entries to the sinks.

Hooks call it in this order for every call, on the thread that makes the call::

    call = recorder.enter(subject)
    args, kwargs = recorder.before(call, args, kwargs)
    output = recorder.after(call, args, kwargs, output, parameters)      # or recorder.abandon(call)

and gradients come back through the watches that ``before`` and ``after`` set; ``recorder.run(subject, function, args,
kwargs)`` is all of it for a function. No method raises: an error of ours is reported once and the host's values pass
unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.names import ATTRIBUTES, DEBUG, FORWARD, LOSS, RECOMPUTE
from msprobe_ms.dump.writing.json_text import Value, Whole
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.quiet import Quiet
from msprobe_ms.recording.calls import Call, CallSites, OpenCalls, Parameters, Place, Recomputation, Subject
from msprobe_ms.recording.containers import results
from msprobe_ms.recording.gradients import Backward, Watch
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.step_recorder import StepRecorder
from msprobe_ms.recording.updates import Updates

if TYPE_CHECKING:
    from msprobe_ms.config import Config


class Recorder(StepRecorder):
    """Records the calls of one step into its dump."""

    def __init__(self, config: Config, framework: Framework, dump: StepDump) -> None:
        super().__init__(config, framework, dump)
        self._keeps_inputs, self._keeps_output, self._keeps_parameters, self._keeps_attributes = (
            self._filter.kept[FORWARD, field] for field in ("input_args", "output", "parameters", "input")
        )
        self._sites = CallSites(
            framework.machinery,
            framework.plumbing,
            framework.tracers,
            keep_frames=config.extra_info and config.call_sites,
        )
        self._recomputation = Recomputation(framework.recomputing)
        self._thread = OpenCalls()
        #: The first call to be recorded that raised; "" while none has.
        self._raised = ""
        shared = self._sink, self._values, self._filter
        self.backward = Backward(*shared, self._recorded, self._count)
        self.updates = Updates(*shared, self._guarded, self._is_open, self._count)
        self._can_watch = partial(framework.can_watch, parameters=True)
        self._can_watch_results = partial(framework.can_watch, parameters=False)
        # Made once, where each call would have its own.
        self._input_gradients, self._output_gradients = self.backward.input_gradients, self.backward.output_gradients

    def resume(self) -> None:
        """Calls come in from here on."""
        self._thread.busy = False  # an interrupt may have left it so
        self.backward.resume()

    def pause(self) -> None:
        """No more calls until `resume`, only gradients of those that were recorded."""
        self.backward.pause()

    def close(self) -> None:
        super().close()
        # They hold this recorder, which would stay, with all of the step, until Python looks for cycles.
        self.backward.close()
        self.updates.close()

    @property
    def unfinished(self) -> str:
        """The innermost call to be recorded that began first and did not return; "" for none."""
        return self._raised or next((call.forward for call in reversed(self._thread.calls) if _is_kept(call)), "")

    def _guarded(self, where: str, action: Callable[[], Any]) -> Any:
        """What ``action`` gives, which records and calls nothing of the user's; None where it fails."""
        was_busy, quiet = self._thread.busy, None
        try:
            quiet = self._framework.quiet()
            self._thread.busy = True
            with self._framework.unseen(), quiet:
                return action()
        except BaseException as error:
            self._failed(error, where, quiet)
            return None
        finally:
            self._thread.busy = was_busy

    def _recorded(self, where: str, action: Callable[..., None], *given: Any) -> None:
        """Call ``action``, which has the framework do nothing itself, while the step takes records."""
        if self._closed or not self._process.is_mine:
            return
        thread = self._thread
        was_busy = thread.busy
        try:
            thread.busy = True
            action(*given)
        except BaseException as error:
            self._failed(error, where)
        finally:
            thread.busy = was_busy

    def _failed(self, error: BaseException, where: str, quiet: Quiet | None = None) -> None:
        """Report what recording did not come to its end for; raises what must arrive at the script.

        That may have come as ``quiet`` began or ended.
        """
        if quiet is not None:
            quiet.restore()
        self.errors.report(error, where)

    def failed(self, error: Exception, where: str) -> None:
        """Report an error of a hook's own."""
        self.errors.report(error, where)

    # -- forward ---------------------------------------------------------------------------------------------------

    def run(
        self,
        subject: Subject,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        parameters: Parameters = tuple,
    ) -> Any:
        """Call ``function`` and record it as ``subject``, unless it is no call of its own; its result or exception."""
        call = None
        try:
            if (call := self.enter(subject)) is not None:
                args, kwargs = self.before(call, tuple(args), dict(kwargs))
        except Exception as error:  # of ours: nothing of the user's has been called
            self._failed(error, subject.base)
        if call is None:
            return function(*args, **kwargs)
        try:
            output = function(*args, **kwargs)
        except BaseException:
            self.abandon(call)
            raise
        try:
            return self.after(call, tuple(args), dict(kwargs), output, parameters)
        except Exception as error:
            self._failed(error, call.forward)
            return output

    def enter(self, subject: Subject) -> Call | None:
        """Open a call; None when it is not one of its own: inside another API, or the tool's own doing."""
        thread = self._thread
        if thread.busy or self._sink.full or self._closed or not self._process.is_mine or self._framework.is_tracing():
            return None
        if not subject.is_module and thread.calls and not thread.calls[-1].subject.is_module:
            return None  # said before the walk of the stack: APIs and operators call each other a lot
        try:
            thread.busy = True
            return self._enter(subject, thread.calls)
        except Exception as error:
            self.errors.report(error, subject.base)
            return None
        finally:
            thread.busy = False

    def _enter(self, subject: Subject, calls: list[Call]) -> Call | None:
        around = calls[-1].stack if calls else None
        stack = self._sites.locate(sys._getframe(2), is_module=subject.is_module, around=around)
        depth = stack.depth
        if depth < 0:
            return None
        # An enclosing call always stands on a shallower stack; a deeper one left by an exception and never said so.
        while calls and calls[-1].depth >= depth:
            self._note_raised(calls[-1])
            self._close(calls[-1], calls)
        parent = calls[-1] if calls else None
        if parent is not None and not parent.subject.is_module:
            parent = next((call for call in reversed(calls) if call.subject.is_module), None)
        call = Call(subject, self._number(subject.base), parent, depth)
        if self._framework.in_backward():
            call.recomputed = self._recomputation.runs(sys._getframe(2))
        else:
            self._framework.backward_ended()
        self._filter.call_begins(call)
        if stack.frames and self._needs_site(call):
            call.site = self._site(stack.frames)
        call.stack = stack
        calls.append(call)
        return call

    def _needs_site(self, call: Call) -> bool:
        return call.keep_forward

    def _site(self, frames: list[Place]) -> int:
        number, new = self._sites.number(frames)
        if new is not None:  # a call without its site is still a call
            self._guarded("call site", partial(self._sink.call_site, number, new))
        return number

    def innermost(self, subject: Subject) -> Call | None:
        """The open call of this module that the current hook ends; None if it was never opened or has raised."""
        thread = self._thread
        if thread.busy:
            return None
        try:
            depth = self._sites.depth(sys._getframe(1), thread.calls[-1].stack if thread.calls else None)
            call = next((call for call in reversed(thread.calls) if call.depth <= depth), None)
            if call is None or call.subject is not subject or call.depth != depth:
                return None
            if sys.exc_info()[1] is call.handled:
                return call
            self.abandon(call)
        except Exception as error:
            self.errors.report(error, subject.base)
        return None

    def before(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Record the inputs as they are now and watch their gradients; the arguments to call with."""
        if not (call.keep_forward or call.keep_backward):
            return args, kwargs
        thread, quiet = self._thread, None
        try:
            quiet = self._framework.quiet()
            thread.busy = True
            self._record_inputs(call, args, kwargs)
            with self._framework.unseen():
                return self._watch_inputs(call, args, kwargs)
        except BaseException as error:
            self._failed(error, call.forward, quiet)
            return args, kwargs
        finally:
            thread.busy = False

    def _record_inputs(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not call.keep_forward:
            return
        if call.subject.communication is not None:
            args, kwargs = call.subject.communication.recorded(args, kwargs)
        if self._keeps_inputs:
            save = self._filter.saves_files and self._filter.saves(call.forward)
            positional = self._values.build_all(args, call.forward, "input", save)
            named = self._values.build_named(kwargs, call.forward, "kwargs", save) if kwargs else {}
            call.inputs = [("input_args", positional), ("input_kwargs", named)]

    def _watch_inputs(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not call.keep_backward:
            return args, kwargs
        if not self._framework.watches_in_place and (
            call.subject.writes_in_place or "out" in kwargs or kwargs.get("inplace") is True
        ):
            return args, kwargs
        watch = self._new_watch(parameters=not call.subject.is_module)
        values = [*args, *kwargs.values()] if kwargs else args
        call.plan = watch.plan(values)
        if not watch.tensors:
            return args, kwargs
        call.input_watch = self._framework.watch_inputs(
            watch.tensors, partial(self._input_gradients, call), is_module=call.subject.is_module
        )
        call.watch = watch
        swapped = watch.swap(values, call.input_watch.tensors)
        if swapped is values:
            return args, kwargs
        return tuple(swapped[: len(args)]), dict(zip(kwargs, swapped[len(args) :], strict=True))

    def _new_watch(self, *, parameters: bool) -> Watch:
        return Watch(self._framework.is_tensor, self._can_watch if parameters else self._can_watch_results)

    def after(
        self,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        parameters: Parameters = tuple,
    ) -> Any:
        """Close the call and record it; the value to return instead of ``output`` (equal to it)."""
        thread, quiet = self._thread, None
        try:
            quiet = self._framework.quiet()
            thread.busy = True
            # What an API without a result wrote to stands for its output.
            result = args[0] if output is None and call.subject.writes_in_place and args else output
            if call.subject.communication is not None and call.keep_forward:
                result = call.subject.communication.complete(args, kwargs, output)
            with self._framework.unseen():
                watch, inputs = self._plan_output(call, result), call.input_watch
                tensors = () if watch is None else watch.tensors
                self._close(call, thread.calls, tensors)
            if call.keep_forward:
                self._record_output(call, result, parameters)
            if watch is None or not tensors:
                return output
            with self._framework.unseen():
                twins = self._framework.watch_outputs(tensors, partial(self._output_gradients, call), inputs)
            return output if twins is tensors else watch.swap([output], twins)[0]
        except BaseException as error:
            self.abandon(call)
            self._failed(error, call.forward, quiet)
            return output
        finally:
            thread.busy = False

    def losses(self, roots: Iterable[Any] | Exception) -> None:
        """Record the scalars among the tensors that gradients are about to be computed of, each as if it were saved."""
        if not (self._thread.busy or self._sink.full or self._framework.is_tracing()) and self._is_open():
            self._guarded(LOSS, partial(self._record_losses, roots))

    def _record_losses(self, roots: Iterable[Any] | Exception) -> None:
        if isinstance(roots, Exception):
            raise roots
        for root in roots:
            if self._framework.is_tensor(root) and all(size == 1 for size in self._framework.plain(root).shape):
                with self._lock:
                    entry, self._losses = f"{LOSS}.{self._losses}.{DEBUG}", self._losses + 1
                if self._filter.keeps_loss(entry):
                    save, fields = self._filter.saves(entry), list[tuple[str, Whole]]()
                    if self._filter.keeps_values:
                        fields = [("", Whole(self._values.build(root, entry, "", (), save)))]
                    self._sink.entry(EntryPart(entry, fields))

    @contextmanager
    def blind(self) -> Iterator[None]:
        """Nothing called inside is recorded: a compiler at work, not the user's code."""
        thread = self._thread
        was_busy, thread.busy = thread.busy, True
        try:
            yield
        finally:
            thread.busy = was_busy

    def abandon(self, call: Call) -> None:
        """The call raised: it is closed without a record, and the exception goes its way."""
        try:
            self._note_raised(call)
            self._close(call, self._thread.calls)
            self._sink.forget(call.forward)
        except Exception as error:
            self.errors.report(error, call.forward)

    def _note_raised(self, call: Call) -> None:
        if not self._raised and _is_kept(call):
            self._raised = call.forward

    def _close(self, call: Call, calls: list[Call], outputs: Sequence[Any] = ()) -> None:
        """End the call, and those in it that an exception left open."""
        if calls and calls[-1] is call:
            calls.pop()
        while call in calls and (left := calls.pop()) is not call:
            self._settle(left, ())
            self._sink.forget(left.forward)
        self._settle(call, outputs)

    def _settle(self, call: Call, outputs: Sequence[Any]) -> None:
        self._filter.ends(call.forward)
        if call.watch is not None and call.input_watch is not None:
            call.watch.restore()
            call.input_watch.settle(outputs)
        call.watch = call.input_watch = call.handled = call.stack = None

    def _record_output(self, call: Call, output: Any, parameters: Parameters) -> None:
        save, fields = self._filter.saves_files and self._filter.saves(call.forward), [*call.inputs]
        if self._keeps_output:
            shown, scratch = results(output), call.subject.scratch
            if scratch:
                shown = [None if place in scratch else value for place, value in enumerate(shown)]
            fields.append(("output", self._values.build_all(shown, call.forward, "output", save)))
        if self._keeps_parameters and (own := dict(parameters())):
            fields.append(("parameters", self._values.build_named(own, call.forward, "parameters", save)))
        if call.recomputed:
            fields.append((RECOMPUTE, True))
        if call.subject.attributes and self._keeps_attributes:
            fields.append((ATTRIBUTES, self._attributes(call)))
        if fields or not self._filter.parameters_alone:
            self._sink.entry(EntryPart(call.forward, fields, call.parent_entry(FORWARD), call.site))
        call.inputs = ()

    def _attributes(self, call: Call) -> Value:
        subject = call.subject
        if subject.attributes_value is None:
            given = subject.attributes, call.forward, ATTRIBUTES, (), False
            subject.attributes_value = self._framework.quietly(self._values.build, *given)
        return subject.attributes_value

    def _plan_output(self, call: Call, output: Any) -> Watch | None:
        if not call.keep_backward or (call.subject.writes_in_place and not self._framework.watches_in_place):
            return None
        watch = self._new_watch(parameters=False)
        call.output_fields = watch.plan(results(output))
        return watch


def _is_kept(call: Call) -> bool:
    return call.keep_forward or call.keep_backward
