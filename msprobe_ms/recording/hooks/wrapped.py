"""One call of something wrapped, brought to the recorder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msprobe_ms.recording.calls import Subject
from msprobe_ms.recording.recorder import Recorder


def call_recorded(
    recorder: Recorder, subject: Subject, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call ``function`` and record it as ``subject``, unless it is no call of its own; its result or exception."""
    call = recorder.enter(subject)
    if call is None:
        return function(*args, **kwargs)
    try:
        watched_args, watched_kwargs = recorder.before(call, tuple(args), dict(kwargs))
        output = function(*watched_args, **watched_kwargs)
    except BaseException:
        recorder.abandon(call)
        raise
    return recorder.after(call, watched_args, watched_kwargs, output)
