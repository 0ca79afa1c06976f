"""What each Python below ``msprobe run --exec`` runs before its script, as the first ``sitecustomize`` of its path.

Any Python may run it, also one that is older than the package allows or does not have it: such a one is left alone. It
takes itself off the path, runs the user's own ``sitecustomize``, if there is one, and leaves nothing behind.
"""

import os
import sys


def _leave():
    # type: () -> None
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != folder]
    sys.path_importer_cache.pop(folder, None)
    sys.modules.pop("sitecustomize", None)


def _record():
    # type: () -> None
    request = os.environ.get("MSPROBE_RUN")
    if not request or sys.version_info < (3, 10):
        return
    try:
        from msprobe_ms.recording.entry_points.every_python import record_this_process
    except ImportError:  # a Python without the package
        return
    try:
        record_this_process(request)
    except Exception as error:
        sys.stderr.write("msprobe run: this Python is not recorded: " + repr(error) + "\n")


_leave()
_record()
# Where there is none, site is told so, and takes this one for not found.
__import__("sitecustomize")
