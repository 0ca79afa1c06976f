"""One call of a dump as a script with its tensors."""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.accuracy.calls import ApiCall
from msprobe_ms.accuracy.error_data import ErrorData
from msprobe_ms.accuracy.execution.sides import Sides, Skip
from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.scripts import no_script
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr


def save_call(call: ApiCall, options: Options, folder: Path) -> Path:
    """Write a script of one call with its tensors, and the reference's results; returns the script.

    Where there is no script, nothing is written.

    :raises UsageError: its arguments cannot be made, or the function cannot be named in a script
    """
    sides = Sides(call, options)
    try:
        data = sides.data()
        reference = sides.reference(data)
    except Skip as skip:
        raise UsageError(tr("{name}: {skip}", name=call.name, skip=skip)) from skip
    results, gradients = (None, None)
    if reference is not None:
        results, gradients = reference.outputs[0], reference.gradients[0] if reference.gradients else None
    try:
        script = ErrorData(folder, call, options.framework).save(
            data.arguments, data.gradients or (), [results, None], [gradients, None], script_needed=True
        )
    except OSError as error:
        raise UsageError(
            tr("{folder}: cannot be written: {strerror}", folder=folder, strerror=error.strerror or error)
        ) from error
    if script is None:
        raise UsageError(no_script(call.name, call.prefix))
    return script
