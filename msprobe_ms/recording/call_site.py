"""Where in the user's code a call was made, and whether backward made it again: walks of the Python stack."""

from __future__ import annotations

import linecache
import os
from collections.abc import Collection
from types import CodeType, FrameType

from msprobe_ms.support.files import PACKAGE_FOLDER

#: Kinds of frames, from the hook outwards.
_OWN, _MACHINERY, _PLUMBING, _RECOGNISABLE = range(4)

#: Innermost frames kept of one call site; a deeper stack is a runaway recursion, not information.
_MOST_FRAMES = 64


class CallSites:
    """Numbers call sites as they are met, so that each is written once.

    ``machinery`` are the framework files a module call runs through on its way to the hooks (``nn/cell.py``).
    ``plumbing`` are path fragments of framework files (dispatch, autograd) that mean nothing to a user; a layer's own
    source (``mindspore/nn/layer/conv.py``, ``torch/nn/modules/conv.py``) is kept.
    """

    def __init__(self, machinery: tuple[str, ...], plumbing: tuple[str, ...], *, keep_frames: bool) -> None:
        self._machinery = tuple(part.replace("/", os.sep) for part in machinery)
        self._plumbing = tuple(part.replace("/", os.sep) for part in plumbing) + self._machinery
        self._keep_frames = keep_frames
        self._kinds: dict[CodeType, int] = {}
        self._numbers: dict[tuple[tuple[CodeType, int], ...], int] = {}

    def locate(self, frame: FrameType | None, *, is_module: bool) -> tuple[int, list[tuple[CodeType, int]]]:
        """Walk outwards from ``frame``: the depth of the caller's frame, and the recognisable frames, innermost first.

        Depth orders calls: a call made inside another always has a deeper caller. A module's caller is beyond the
        machinery that brought the call to the hook.
        """
        kinds = self._kinds
        skipped = _MACHINERY if is_module else _OWN
        depth, arrived = 0, False
        frames: list[tuple[CodeType, int]] = []
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(code)
            if kind is None:
                kind = kinds[code] = self._kind(code)
            arrived = arrived or kind > skipped
            if arrived:
                depth += 1
            if kind == _RECOGNISABLE and self._keep_frames and len(frames) < _MOST_FRAMES:
                frames.append((code, frame.f_lineno))
            frame = frame.f_back
        return depth, frames

    def depth(self, frame: FrameType | None) -> int:
        """The depth ``locate`` gives a module's caller."""
        kinds = self._kinds
        depth, arrived = 0, False
        while frame is not None:
            if not arrived:
                code = frame.f_code
                kind = kinds.get(code)
                if kind is None:
                    kind = kinds[code] = self._kind(code)
                arrived = kind > _MACHINERY
            if arrived:
                depth += 1
            frame = frame.f_back
        return depth

    def number(self, frames: list[tuple[CodeType, int]]) -> tuple[int, list[str] | None]:
        """The call site's number, and its frames as text when it is met for the first time."""
        key = tuple(frames)
        if (known := self._numbers.get(key)) is not None:
            return known, None
        number = self._numbers[key] = len(self._numbers)
        return number, [_frame_text(code, line) for code, line in frames]

    def _kind(self, code: CodeType) -> int:
        name = code.co_filename
        if name.startswith(PACKAGE_FOLDER):
            return _OWN
        if any(part in name for part in self._machinery):
            return _MACHINERY
        if name.startswith("<frozen") or any(part in name for part in self._plumbing):
            return _PLUMBING
        return _RECOGNISABLE


def _frame_text(code: CodeType, line: int) -> str:
    source = linecache.getline(code.co_filename, line).strip()
    return f"File {code.co_filename}, line {line}, in {code.co_name}, \n {source}"


class Recomputation:
    """Tells by the functions through which a framework recomputes: ``(path fragment of the file, function name)``."""

    def __init__(self, functions: Collection[tuple[str, str]]) -> None:
        self._functions = [(part.replace("/", os.sep), name) for part, name in functions]
        self._known: dict[CodeType, bool] = {}

    def runs(self, frame: FrameType | None) -> bool:
        """Whether ``frame`` was reached through one of them."""
        known = self._known
        while frame is not None:
            code = frame.f_code
            recomputes = known.get(code)
            if recomputes is None:
                recomputes = known[code] = any(
                    code.co_name == name and part in code.co_filename for part, name in self._functions
                )
            if recomputes:
                return True
            frame = frame.f_back
        return False
