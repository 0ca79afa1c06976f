"""Look at the interpreter, its packages, the frameworks and the disk; each finding says what to do about it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

import msprobe_ms
from msprobe_ms.config.values import Rejected, writable_folder
from msprobe_ms.frameworks import FRAMEWORKS

_NAME = "msprobe-ms"
#: Seconds in which a framework has to be imported: some seconds, on a busy machine a minute.
_LONGEST_IMPORT = 180
#: Bytes that a disk should have free: a step of tensors of a small network takes some hundred megabytes.
_LITTLE = 1 << 30
#: Extras → what they are for.
_EXTRAS = {
    "dataframe": "comparison.frame, a table for notebooks",
    "cluster": "compare --scheduler, many machines",
    "onnx": "export --to onnx",
    "completion": "msprobe completion",
}


class State(Enum):
    """Whether something works, works not here and need not, or has to be put right."""

    GOOD = "ok"
    ABSENT = "--"
    WRONG = "!!"


class Finding(NamedTuple):
    """One line of the examination; ``advice`` says what to do, "" where nothing is to be done."""

    state: State
    text: str
    advice: str = ""


def examine(dump_path: Path) -> Iterator[Finding]:
    """Yield what is found, as it is found; ``dump_path`` is where dumps are to be written. Changes nothing."""
    yield Finding(State.GOOD, f"msprobe_ms {msprobe_ms.__version__} in {Path(msprobe_ms.__file__).parent}")
    yield _python()
    yield from _packages()
    for package, (name, extra) in FRAMEWORKS.items():
        yield from _framework(package, name, extra)
    folder = _folder(dump_path)
    yield folder
    if folder.state is State.GOOD:
        yield _disk(dump_path)


def _python() -> Finding:
    text = f"Python {platform.python_version()} ({sys.executable}), {platform.system()} {platform.machine()}"
    if sys.version_info >= (3, 13):
        return Finding(State.ABSENT, f"{text}: MindSpore has no wheels for it", "use 3.10 to 3.12 to record MindSpore")
    return Finding(State.GOOD, text)


def _packages() -> Iterator[Finding]:
    try:
        required = [Requirement(text) for text in metadata.requires(_NAME) or []]
    except metadata.PackageNotFoundError:
        advice = "pip install it, or its dependencies may be missing"
        yield Finding(State.ABSENT, f"{_NAME} is not installed, it runs from its folder", advice)
        return
    wrong = [each for each in required if each.marker is None and not _is_met(each)]
    for each in wrong:
        yield Finding(State.WRONG, f"{each.name} {_version(each.name) or 'is missing'}", f'pip install "{each}"')
    if not wrong:
        yield Finding(State.GOOD, "every package that it requires is there")
    for extra, purpose in _EXTRAS.items():
        wanted = [each for each in required if each.marker is not None and each.marker.evaluate({"extra": extra})]
        if wanted and not all(map(_is_met, wanted)):
            yield Finding(State.ABSENT, f"{purpose}: not here", f'if wanted: pip install "{_NAME}[{extra}]"')


def _is_met(required: Requirement) -> bool:
    version = _version(required.name)
    return version is not None and required.specifier.contains(version, prereleases=True)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _framework(package: str, name: str, extra: str) -> Iterator[Finding]:
    try:
        there = find_spec(package) is not None
    except (ImportError, ValueError):
        there = False
    if not there:
        yield Finding(State.ABSENT, f"{name} is not installed", f'to record it: pip install "{_NAME}[{extra}]"')
        return
    if package == "mindspore" and (numpy := _version("numpy") or "").split(".")[0] not in ("", "1"):
        yield Finding(State.WRONG, f"numpy {numpy} beside MindSpore, which needs 1.x", 'pip install "numpy<2"')
    told = _probe(extra)
    if isinstance(told, str):
        again = f'python -c "import {package}" shows all of it'
        yield Finding(State.WRONG, f"{name} cannot be used: {told}", again)
        return
    yield Finding(State.GOOD, f"{name} {told['version']} on {told['device']}")
    for mode, levels in told["modes"].items():
        left_out = [level for level in ("L0", "L1", "mix", "L2", "debug") if level not in levels]
        without = f"; not {', '.join(left_out)}" if left_out else ""
        yield Finding(State.GOOD, f"{name}, {mode}: level {', '.join(levels)}{without}")


def _probe(extra: str) -> dict[str, dict[str, list[str]]] | str:
    """What `msprobe_ms.doctor.probe` says of a framework; else why it cannot be used."""
    command = [sys.executable, "-m", "msprobe_ms.doctor.probe", extra]
    search = os.pathsep.join(filter(None, (str(Path(msprobe_ms.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_LONGEST_IMPORT, check=False,
            env={**os.environ, "PYTHONPATH": search},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it could not be imported within {_LONGEST_IMPORT} seconds"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    if done.returncode == 0 and lines:
        answer: dict[str, dict[str, list[str]]] = json.loads(lines[-1])
        return answer
    return lines[-1] if lines else f"importing it ended with status {done.returncode}"


def _folder(dump_path: Path) -> Finding:
    try:
        return Finding(State.GOOD, f"{writable_folder(dump_path)} can be written")
    except Rejected as rejected:
        ((_, text), *_) = rejected.mistakes
        return Finding(State.WRONG, f"dump_path {text}", "give another dump_path, or ask for access")
    except (OSError, ValueError) as error:
        return Finding(State.WRONG, f"dump_path {dump_path}: {error}", "give another dump_path")


def _disk(dump_path: Path) -> Finding:
    path = dump_path.absolute()
    there = next(each for each in (path, *path.parents) if each.exists())
    free = shutil.disk_usage(there).free
    text = f"{free / 1e9:.1f} GB free where {dump_path} lies"
    advice = "tensors of one step may fill it: task statistics takes little, or give another dump_path"
    return Finding(State.WRONG, text, advice) if free < _LITTLE else Finding(State.GOOD, text)
